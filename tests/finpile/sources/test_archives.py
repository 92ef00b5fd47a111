"""Walking damaged archives: intact members are found, and every byte is a member's, a gap's or structure."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest

from finpile.config.limits import LimitsConfig
from finpile.sources.archives.archive import Gap, Member, Structure, walk
from finpile.sources.bytes.compression import decompress
from finpile.sources.bytes.streams import BrokenStream, ByteStream
from tests.support.archives import tar_of, zip_of

DRAW = random.Random(9)
MEMBERS = {f"news/{n:02}.txt": DRAW.randbytes(DRAW.randint(1, 1500)).hex().encode() for n in range(12)}


class Walked:
    """Members by path, their defects, gaps, and the sums of bytes."""

    def __init__(self, kind: str, stream: Any, limits: LimitsConfig | None = None) -> None:
        self.members: dict[str, bytes] = {}
        self.broken: list[BrokenStream] = []
        self.gaps: list[Gap] = []
        self.num_bytes = 0
        try:
            for item in walk(kind, stream, "a", limits):
                if isinstance(item, Member):
                    self.members[item.path] = self._content(item)
                    self.num_bytes += len(self.members[item.path])
                else:
                    self.num_bytes += item.num_bytes
                    self.gaps += [item] if isinstance(item, Gap) else []
                    assert item.num_bytes >= 0 and isinstance(item, (Gap, Structure))
        except BrokenStream as broken:
            self.broken.append(broken)

    def _content(self, member: Member) -> bytes:
        content = b""
        try:
            for block in member.blocks:
                if isinstance(block, bytes):
                    content += block
                elif isinstance(block, BrokenStream):
                    self.broken.append(block)
        except BrokenStream as broken:
            if broken.locator != member.locator:
                raise
            self.broken.append(broken)
        return content


def stream(data: bytes) -> ByteStream:
    return ByteStream(data[at : at + 1000] for at in range(0, len(data), 1000))


# --- tar


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_tar_is_its_members_and_structure(kind: int) -> None:
    members = MEMBERS if kind == tarfile.USTAR_FORMAT else {"long/" * 60 + name: text for name, text in MEMBERS.items()}
    data = tar_of(members, kind)
    walked = Walked(".tar", stream(data))
    assert walked.members == members and not walked.gaps and not walked.broken
    assert walked.num_bytes == len(data)


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_damaged_tar_header_costs_one_member(kind: int) -> None:
    """At every header block, those of long names included."""
    members = {("long/" * 40 if n % 4 == 0 else "") + name: text for n, (name, text) in enumerate(MEMBERS.items())}
    data = tar_of(members, kind)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        infos = archive.getmembers()
    for info in infos:
        for header in range(info.offset, info.offset_data, 512):
            damaged = bytearray(data)
            damaged[header + 20] ^= 1
            walked = Walked(".tar", stream(bytes(damaged)))
            intact = {name: text for name, text in members.items() if name != info.name}
            assert intact.items() <= walked.members.items()
            assert len(walked.gaps) <= 1 and not walked.broken
            assert walked.gaps or info.name not in walked.members  # of a long name, part may be left
            assert walked.num_bytes == len(data)


def test_a_tar_with_a_gap_in_its_compressed_bytes_is_read_on_at_the_next_header() -> None:
    data = tar_of({name: text * 4 for name, text in MEMBERS.items()})
    frames = [bytearray(gzip.compress(data[at : at + 3000], mtime=0)) for at in range(0, len(data), 3000)]
    num_lost = []
    for number in range(len(frames) - 4):  # the last ones are padding
        damaged = [bytes(frame) for frame in frames]
        damaged[number] = damaged[number][:30] + b"\xff" * 20 + damaged[number][50:]
        blocks = decompress(iter([b"".join(damaged)]), ".gz", "a")
        walked = Walked(".tar", ByteStream(blocks))
        right = [name for name, text in walked.members.items() if text == MEMBERS[name] * 4]
        num_lost.append(len(MEMBERS) - len(right))
        assert len(walked.gaps) + len(walked.broken) == 1
    assert max(num_lost) <= 3  # those that the 3,000 bytes are part of


def test_a_wrong_checksum_of_the_compression_moves_no_member() -> None:
    data = tar_of(MEMBERS)
    frames = [bytearray(gzip.compress(data[at : at + 3000], mtime=0)) for at in range(0, len(data), 3000)]
    frames[2][-8] ^= 1
    walked = Walked(".tar", ByteStream(decompress(iter([b"".join(frames)]), ".gz", "a")))
    assert walked.members == MEMBERS
    assert len(walked.gaps) + len(walked.broken) == 1 and walked.num_bytes == len(data)


def test_joined_tars_are_read_one_after_the_other() -> None:
    data = tar_of({"a.txt": b"1"}) + tar_of({"b.txt": b"2"})
    walked = Walked(".tar", stream(data))
    assert walked.members == {"a.txt": b"1", "b.txt": b"2"} and walked.num_bytes == len(data)


def test_a_header_of_a_huge_extension_is_a_gap_and_is_not_read_into_memory() -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    data = info.tobuf(tarfile.GNU_FORMAT) + tar_of({"a.txt": b"1"})
    walked = Walked(".tar", stream(data))
    assert walked.members == {"a.txt": b"1"} and "8589934592" in walked.gaps[0].detail
    assert walked.num_bytes == len(data)


def test_a_sparse_file_of_holes_is_a_bomb() -> None:
    """GNU's old format: 8 GiB, of which one block is there."""
    info = tarfile.TarInfo("holes.txt")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % ((1 << 33) - 512 - 1, 512)
    header[483:495] = b"%011o\0" % ((1 << 33) - 1)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data = bytes(header) + b"x" * 512 + tar_of({"a.txt": b"1"})
    num_out = 0
    reasons = []
    for item in walk(".tar", stream(data), "a", LimitsConfig(ratio=10)):
        if isinstance(item, Member):
            try:
                for block in item.blocks:
                    num_out += len(block) if isinstance(block, bytes) else 0
            except BrokenStream as broken:
                reasons.append((broken.locator, broken.reason))
    assert reasons == [("a!holes.txt", "decompression_bomb")]
    assert num_out <= (64 << 20) + 2


# --- zip


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_of_every_method_are_read(method: int) -> None:
    assert Walked(".zip", io.BytesIO(zip_of(MEMBERS, method))).members == MEMBERS
    assert Walked(".zip", stream(zip_of(MEMBERS, method))).members == MEMBERS


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_one_flipped_bit_of_a_zip_costs_one_member_at_most(method: int) -> None:
    """At 300 places, of which a third are headers and directory."""
    members = {name: text[:200] for name, text in MEMBERS.items()}
    data = zip_of(members, method)
    for number in range(300):
        damaged = bytearray(data)
        damaged[number * len(data) // 300] ^= 1 << number % 8
        walked = Walked(".zip", io.BytesIO(bytes(damaged)))
        right = sum(text in members.values() for text in walked.members.values())
        assert right >= len(members) - 1, (number, walked.broken, walked.gaps)
        altered = set(walked.members.values()) - set(members.values())
        assert not altered or walked.broken or walked.gaps


def test_a_zip_without_its_directory_is_read_over_a_damaged_header() -> None:
    data = zip_of(MEMBERS)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offset = archive.infolist()[5].header_offset
    damaged = bytearray(data[: data.find(b"PK\x01\x02")])
    damaged[offset] ^= 1
    walked = Walked(".zip", io.BytesIO(bytes(damaged)))
    assert walked.members == {name: text for name, text in MEMBERS.items() if name != "news/05.txt"}
    assert [gap.locator for gap in walked.gaps] == [f"a#{offset}/gap"]
    assert walked.gaps[0].num_bytes > 100 and [broken.reason for broken in walked.broken] == ["truncated_file"]


class Pipe(io.BytesIO):
    """To which `zipfile` writes the sizes of members behind them."""

    def seek(self, *_: Any) -> int:
        raise OSError


class Counted(io.BytesIO):
    """Counts the bytes that are read."""

    num_read = 0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.num_read += len(data)
        return data


def test_a_zip_of_damaged_members_without_its_directory_is_read_a_few_times() -> None:
    target = Pipe()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(60):
            archive.writestr(f"{number:02}.txt", DRAW.randbytes(100_000))
        offsets = [info.header_offset for info in archive.infolist()]
    data = bytearray(target.getvalue().partition(b"PK\x01\x02")[0])
    for offset in offsets:
        data[offset + 36] = 0xFF  # no kind of block
    source = Counted(bytes(data))
    walked = Walked(".zip", source)
    assert len(walked.members) == len(offsets) - 1 and not any(walked.members.values())  # the last one is cut
    assert source.num_read <= 20 * len(data)


@pytest.mark.parametrize("mark", [b"", b"PK\7\10" + bytes(8)])
def test_a_zip_of_stored_members_without_descriptors_is_read_a_few_times(mark: bytes) -> None:
    header = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 8, 0, 0, 0x21, 0, 0, 0, 1, 0) + b"a"
    source = Counted((header + mark) * 20_000)
    with pytest.raises(BrokenStream):
        list(walk(".zip", source, "a", LimitsConfig()))
    assert source.num_read <= 20 * len(source.getvalue())


def test_data_before_the_damage_in_a_zip_member_is_kept() -> None:
    content = b"".join(b"%d %s\n" % (n, DRAW.randbytes(30).hex().encode()) for n in range(4000))
    data = bytearray(zip_of({"a.txt": content, "b.txt": b"whole"}))
    data[100_000:100_004] = b"\xff" * 4
    walked = Walked(".zip", io.BytesIO(bytes(data)))
    kept = walked.members["a.txt"]
    assert kept.startswith(content[:120_000]) and walked.members["b.txt"] == b"whole"
    [broken] = walked.broken
    assert broken.reason == "corrupt_archive"
    assert f"{len(kept)} bytes were decoded" in broken.detail and f"of its {len(content)} bytes" in broken.detail


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_in_a_zip_is_a_row_and_its_neighbours_are_read(method: int) -> None:
    data = zip_of({"a.txt": b"1", "bomb.txt": bytes(80 << 20), "c.txt": b"3"}, method)
    limits = LimitsConfig(ratio=200)
    num_out = 0
    for item in walk(".zip", io.BytesIO(data), "a", limits):
        assert isinstance(item, Member)
        blocks: Iterator[Any] = item.blocks
        if item.path == "bomb.txt":
            with pytest.raises(BrokenStream, match=r"limits\.ratio is 200") as caught:
                for block in blocks:
                    num_out += len(block)
            assert caught.value.reason == "decompression_bomb"
        else:
            assert len(b"".join(blocks)) == 1
    assert num_out <= 66 << 20


def test_overlapping_members_of_a_zip_do_not_expand_without_end() -> None:
    """Sixty entries of one directory lead to the same 3 MiB of zeros."""
    one = zip_of({"a.txt": bytes(3 << 20)})
    at = one.find(b"PK\x01\x02")
    directory, end = one[at:-22], bytearray(one[-22:])
    struct.pack_into("<HHI", end, 8, 60, 60, 60 * len(directory))
    walked = Walked(".zip", io.BytesIO(one[:at] + directory * 60 + bytes(end)), LimitsConfig(ratio=100))
    assert sum(map(len, walked.members.values())) <= 129 << 20
    assert {broken.reason for broken in walked.broken} == {"decompression_bomb"}
