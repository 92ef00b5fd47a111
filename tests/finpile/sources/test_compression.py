"""Decompression: whole files equal the peers' output, intact frames after damage are read, limits hold."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
import subprocess
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import lz4.block
import lz4.frame
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config.limits import LimitsConfig
from finpile.sources.bytes.compression import decompress
from finpile.sources.bytes.streams import BrokenStream, ByteStream

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lz4": lambda data: bytes(lz4.frame.compress(data, content_checksum=True)),
}
DRAW = random.Random(3)
#: Frames of 15 lines each; every line is distinct.
FRAMES = [
    b"".join(b"%d %s\n" % (number, DRAW.randbytes(40).hex().encode()) for number in range(first, first + 15))
    for first in range(0, 300, 15)
]


def blocks(data: bytes, size: int = 1 << 16) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def runs(data: bytes, codec: str, limits: LimitsConfig | None = None) -> tuple[list[bytes], list[BrokenStream]]:
    """What is decoded, cut at each gap, and the gaps."""
    stream = ByteStream(decompress(blocks(data), codec, "a", limits), "a", LimitsConfig(record="1 GiB"))
    decoded: list[bytes] = []
    gaps: list[BrokenStream] = []
    while True:
        try:
            decoded.append(stream.read())
            return decoded, gaps
        except BrokenStream as broken:
            decoded.append(broken.partial)
            gaps.append(broken)
            if not broken.can_resume:
                return decoded, gaps
            stream.resume()


# --- whole files


@pytest.mark.parametrize("codec", COMPRESS)
@settings(max_examples=40)
@given(st.lists(st.binary(max_size=300), max_size=4), st.integers(1, 80), st.integers(1, 400))
def test_frames_decompress_to_their_input(codec: str, contents: list[bytes], repeat: int, size: int) -> None:
    data = b"".join(COMPRESS[codec](content * repeat) for content in contents)
    stream = ByteStream(decompress(blocks(data, size), codec, "a"))
    assert stream.read() == b"".join(content * repeat for content in contents)


@pytest.mark.parametrize(
    ("command", "codec"),
    [
        (["lz4", "-q", "-c"], ".lz4"),
        (["lz4", "-q", "-BD", "-B4", "-c"], ".lz4"),
        (["lz4", "-q", "-l", "-c"], ".lz4"),
        (["zstd", "-q", "--long=27", "-c"], ".zst"),
        (["bzip2", "-1", "-c"], ".bz2"),
        (["xz", "--block-size=100000", "-c"], ".xz"),
        (["gzip", "-c"], ".gz"),
    ],
)
def test_output_of_the_command_line_tools_is_read(tmp_path: Path, command: list[str], codec: str) -> None:
    content = b"".join(FRAMES) * 40 + bytes(200_000)
    (tmp_path / "a").write_bytes(content)
    try:
        done = subprocess.run([*command, str(tmp_path / "a")], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"no {command[0]} here")
    assert runs(done.stdout, codec) == ([content], [])


def test_bz2_blocks_that_begin_at_any_bit_are_found() -> None:
    content = b"".join(DRAW.randbytes(3).hex().encode() for _ in range(60_000))
    for level in (1, 2):  # blocks of 100 and 200 kB
        for shift in range(8):
            data = bz2.compress(content[shift:], level)
            assert runs(data, ".bz2") == ([content[shift:]], [])


# --- damaged files


@pytest.mark.parametrize("codec", COMPRESS)
def test_one_flipped_bit_costs_one_frame_and_gives_a_row(codec: str) -> None:
    """At 60 places: all lines of the other frames are read, and no altered byte passes without a gap."""
    frames = [COMPRESS[codec](content) for content in FRAMES]
    data = b"".join(frames)
    for number in range(60):
        at = (2 * number + 1) * len(data) // 120
        damaged = bytearray(data)
        damaged[at] ^= 1 << number % 8
        decoded, gaps = runs(bytes(damaged), codec)
        start = hit = 0
        for ordinal, frame in enumerate(frames):
            if start <= at < start + len(frame):
                hit = ordinal
            start += len(frame)
        found = {line for part in decoded for line in part.splitlines(keepends=True)}
        intact = {line for part in FRAMES[:hit] + FRAMES[hit + 1 :] for line in part.splitlines(keepends=True)}
        assert intact <= found, (at, number % 8)
        assert len(gaps) == 1 or b"".join(decoded) == b"".join(FRAMES), (at, number % 8)
        for gap in gaps:
            assert gap.reason in ("corrupt_file", "truncated_file", "too_large")
            assert f"{gap.skipped_bytes} compressed bytes are skipped" in gap.detail


def test_bytes_decoded_before_the_damage_are_kept() -> None:
    """All that zlib gives, fed byte by byte, of one member of 200 kB that is damaged in the middle."""
    content = b"".join(FRAMES) * 8
    data = bytearray(COMPRESS[".gz"](content + DRAW.randbytes(70_000)))
    data[len(data) - 60_000 : len(data) - 59_990] = b"\xff" * 10
    decoder, expected = zlib.decompressobj(31), b""
    with pytest.raises(zlib.error):
        for byte in bytes(data):
            expected += decoder.decompress(bytes([byte]))
    [decoded], [gap] = runs(bytes(data), ".gz")
    assert decoded == expected and decoded.startswith(content)
    assert (gap.reason, gap.can_resume) == ("corrupt_file", False) and "check" in gap.detail


def test_a_wrong_checksum_loses_no_byte_and_is_reported() -> None:
    frames = [bytearray(COMPRESS[".gz"](content)) for content in FRAMES[:3]]
    frames[1][-8] ^= 1
    decoded, [gap] = runs(b"".join(frames), ".gz")
    assert b"".join(decoded) == b"".join(FRAMES[:3]) and decoded[0] == b"".join(FRAMES[:2])
    assert (gap.reason, gap.can_resume, gap.skipped_bytes) == ("corrupt_file", True, 0)


def test_a_damaged_block_of_lz4_or_bz2_costs_no_other_block() -> None:
    content = b"".join(FRAMES) * 30
    whole = lz4.frame.compress(content, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_checksum=True)
    for codec, data, block in ((".lz4", whole, 1 << 16), (".bz2", bz2.compress(content, 1), 100_000)):
        damaged = bytearray(data)
        damaged[len(data) // 2] ^= 4
        decoded, [gap] = runs(bytes(damaged), codec)
        assert gap.can_resume and content.startswith(decoded[0]) and content.endswith(decoded[1])
        assert 0 < len(content) - len(decoded[0]) - len(decoded[1]) <= block


def test_a_cut_file_whose_content_looks_like_frames_is_cut_and_not_entered_again() -> None:
    """A .tar.zst of .zst files, cut: what the last block holds of them is not a frame of the outer file."""
    inner = b"".join(COMPRESS[".zst"](content) for content in FRAMES)
    data = COMPRESS[".zst"](inner)
    decoded, [gap] = runs(data[:-3000], ".zst")
    assert (gap.reason, gap.can_resume) == ("truncated_file", False)
    assert inner.startswith(b"".join(decoded))


def test_work_on_a_file_of_false_starts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: bytes read again. 48 kB of marks of frames, none of which can be decoded."""
    num_back = 0
    back = ByteStream.unread

    def counted(stream: ByteStream, data: bytes) -> None:
        nonlocal num_back
        num_back += 1
        back(stream, data)

    monkeypatch.setattr(ByteStream, "unread", counted)
    for codec, mark in ((".gz", b"\x1f\x8b\x08\0"), (".zst", b"\x28\xb5\x2f\xfd"), (".lz4", b"\x04\x22\x4d\x18")):
        num_back = 0
        _, [gap] = runs(mark * 12_000, codec)
        assert gap.reason == "unreadable_file"
        assert num_back < 40_000  # a few for each mark


# --- limits


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_bomb_is_never_in_memory(codec: str) -> None:
    """64 MiB of zeros against a limit of 8 MiB; tracemalloc counts what Python allocates."""
    bomb = COMPRESS[codec](bytes(1 << 26))
    limits = LimitsConfig(member="8 MiB")
    tracemalloc.start()
    num_out = 0
    with pytest.raises(BrokenStream) as caught:
        for piece in decompress(blocks(bomb), codec, "a", limits):
            num_out += len(piece) if isinstance(piece, bytes) else 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.reason == "too_large" and "8388608" in caught.value.detail
    assert num_out <= 8 << 20
    # a block of bz2 is decoded whole, and holds up to 46 MB of equal bytes
    assert peak < (60 if codec == ".bz2" else 20) << 20


@pytest.mark.parametrize("codec", [".gz", ".zst"])
def test_expansion_above_the_ratio_is_a_bomb_beyond_64_mib(codec: str) -> None:
    bomb = COMPRESS[codec](bytes(80 << 20))
    _, [gap] = runs(bomb, codec, LimitsConfig(ratio=200))
    assert gap.reason == "decompression_bomb" and "limits.ratio is 200" in gap.detail
    small = COMPRESS[codec](bytes(60 << 20))
    assert runs(small, codec, LimitsConfig(ratio=200))[1] == []


@pytest.mark.parametrize("codec", [".zst", ".xz"])
def test_a_window_above_the_limit_is_refused_before_it_is_allocated(codec: str) -> None:
    if codec == ".zst":
        settings_of = zstandard.ZstdCompressionParameters(window_log=23)
        writer = zstandard.ZstdCompressor(compression_params=settings_of).compressobj()
        data = writer.compress(b"x" * 100) + writer.flush()
    else:
        data = lzma.compress(b"x" * 100, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 8 << 20}])
    _, [gap] = runs(data, codec, LimitsConfig(window="1 MiB"))
    assert gap.reason == "too_large" and "limits.window" in gap.detail
    assert runs(data, codec)[1] == []


@pytest.mark.parametrize("is_packed", [False, True])
def test_dictionary_in_the_first_frame(is_packed: bool, tmp_path: Path) -> None:
    """As .warc.zst files have it; `zstd -D` reads the same frames."""
    texts = [f"WARC/1.0 record {number}: oil and gas rose by {number * 7} percent\n".encode() for number in range(3000)]
    dictionary = zstandard.train_dictionary(4096, texts)
    packer = zstandard.ZstdCompressor(dict_data=dictionary)
    frames = b"".join(packer.compress(b"".join(texts[at : at + 100])) for at in range(0, 3000, 100))
    held = zstandard.compress(dictionary.as_bytes()) if is_packed else dictionary.as_bytes()
    data = b"\x5d\x2a\x4d\x18" + len(held).to_bytes(4, "little") + held + frames
    items = list(decompress(iter([data]), ".zst", "a.warc.zst"))
    assert b"".join(item for item in items if isinstance(item, bytes)) == b"".join(texts)
    (tmp_path / "dictionary").write_bytes(dictionary.as_bytes())
    command = ["zstd", "-dcq", "-D", str(tmp_path / "dictionary")]
    assert subprocess.run(command, input=frames, capture_output=True, check=True).stdout == b"".join(texts)
    without = list(decompress(iter([frames + zstandard.compress(b"end")]), ".zst", "a.zst"))
    assert b"".join(item for item in without if isinstance(item, bytes)) == b"end"
