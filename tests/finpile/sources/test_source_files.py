"""Finding input files, and reading whole and cut ones through compression and archives."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import re
import socket
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import DocumentBuilder, RawDocument, document_id
from finpile.documents.ledger import Removal, ledger_table
from finpile.errors import InputError
from finpile.plugins.format import FORMATS
from finpile.sources import BrokenStream, ByteStream, list_inputs, read_file, reasons_of, removal
from finpile.sources.bytes.compression import decompress, split_codecs
from finpile.sources.readers.finding import find_documents
from tests.support.archives import tar_of, zip_of
from tests.support.reading import Items, read_folder

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lz4": lambda data: bytes(lz4.frame.compress(data, content_checksum=True)),
}
# Random words: every record costs compressed bytes, so that a cut in the middle loses some and leaves some.
WORDS = random.Random(7)
TEXTS = ["".join(WORDS.choices("abcdefghij ", k=400)) for _ in range(500)]
LINES = [b'{"text": "%s"}\n' % text.encode() for text in TEXTS]


def source(format_name: str = "jsonl", paths: tuple[str, ...] = ("*",), **keys: object) -> SourceConfig:
    return SourceConfig(name="News", dataset="FinPile", format=format_name, paths=paths, **keys)  # type: ignore[arg-type]


def read(folder: Path, config: SourceConfig) -> Items:
    documents, rows, _ = read_folder(config, folder)
    write_out(config, documents, rows)
    return documents, rows


def write_out(config: SourceConfig, documents: list[RawDocument], rows: list[Removal]) -> None:
    """Whatever a reader gives must fit into Arrow, and no id may occur twice."""
    builder = DocumentBuilder(config.dataset, config.name)
    for document in documents:
        builder.append(document)
    assert builder.flush().num_rows == len(documents)
    assert ledger_table(rows).num_rows == len(rows)
    assert all(row.reason in reasons_of(config.format) and row.stage == "ingest" for row in rows)
    ids = [document_id(config.name, document.locator) for document in documents] + [row.id for row in rows]
    assert len(set(ids)) == len(ids)


# --- finding files


def test_inputs_are_sorted_by_locator_and_listed_once(tmp_path: Path) -> None:
    for name in ("b/2.txt", "b/1.txt", "a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    found = list_inputs(source("text", ("b/*.txt", "*.txt", "b/1.txt")), str(tmp_path))
    assert [file.locator for file in found] == ["a.txt", "b/1.txt", "b/2.txt"]
    assert {file.size_bytes for file in found} == {5}
    assert found[0].url == str(tmp_path / "a.txt")


def test_version_changes_with_the_content(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("x")
    os.utime(file, ns=(1, 1))
    before = list_inputs(source("text"), str(tmp_path))
    os.utime(file, ns=(2, 2))
    assert [entry.version for entry in before] == ["1"]
    assert [entry.version for entry in list_inputs(source("text"), str(tmp_path))] == ["2"]


def test_names_with_pattern_characters_are_taken_by_their_letters(tmp_path: Path) -> None:
    for name in ("a[1].txt", "b!c#d.txt", "e::f.txt", "100%.txt"):
        (tmp_path / name).write_text(name)
        documents, _ = read(tmp_path, source("text", (name,)))
        assert [document.text for document in documents] == [name]
        assert [document.locator for document in documents] == [name]


def test_a_server_that_does_not_answer_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/a.txt"
        for find in (lambda: list_inputs(source("text", paths=(url,)), "."), lambda: find_documents(url, (".txt",))):
            with pytest.raises(InputError, match=r"a\.txt.+; its server does not answer, or lists no files: check the"):
                find()


@pytest.mark.parametrize("status", [401, 403, 404, 500])
@pytest.mark.parametrize("name", ["a.txt", "*.txt"])
def test_a_server_that_refuses_a_file_is_an_error_with_its_answer(status: int, name: str) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(status)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{name}"
        said = f"its server answers {status} {HTTPStatus(status).phrase}"
        said = "matches no file;|no such file|holds no documents; expected" if status == 404 else said
        for find in (lambda: list_inputs(source("text", paths=(url,)), "."), lambda: find_documents(url, (".txt",))):
            with pytest.raises(InputError, match=said):
                find()
        server.shutdown()


@pytest.mark.parametrize("pattern", ["*.txt", "**/*.txt"])
def test_a_symbolic_link_that_leads_nowhere_is_an_error(tmp_path: Path, pattern: str) -> None:
    """Its file would be missing from the corpus without a word."""
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b.txt").symlink_to(tmp_path / "gone.txt")
    for find in (
        lambda: list_inputs(source("text", paths=(pattern,)), str(tmp_path)),
        lambda: find_documents(str(tmp_path / pattern), (".txt",)),
        lambda: find_documents(str(tmp_path), (".txt",)),
    ):
        with pytest.raises(InputError, match=r"matches \S+b\.txt, which is a link to a file that does not exist"):
            find()
    for find in (
        lambda: list_inputs(source("text", paths=("b.txt",)), str(tmp_path)),
        lambda: find_documents(str(tmp_path / "b.txt"), (".txt",)),
    ):
        with pytest.raises(InputError, match=r"b\.txt\S* .*is a link to a file that does not exist: restore or remove"):
            find()


def test_a_pipe_is_named_as_such(tmp_path: Path) -> None:
    """Reading it would wait for its writer; "matches no file" would be contradicted by the folder."""
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "device.txt").symlink_to(os.devnull)
    for name in ("pipe.txt", "device.txt"):
        for find in (
            lambda name=name: list_inputs(source("text", paths=(name,)), str(tmp_path)),
            lambda name=name: find_documents(str(tmp_path / name), (".txt",)),
        ):
            with pytest.raises(InputError, match=rf"{name}\S* .*is a pipe, a socket or a device: write what it gives"):
                find()
    (tmp_path / "a.txt").write_text("x")
    for find in (
        lambda: list_inputs(source("text", paths=("*.txt",)), str(tmp_path)),
        lambda: find_documents(str(tmp_path / "*.txt"), (".txt",)),
        lambda: find_documents(str(tmp_path), (".txt",)),
    ):
        with pytest.raises(InputError, match=r"matches \S+/(pipe|device)\.txt, which is a pipe, a socket or a device"):
            find()


@pytest.mark.parametrize("pattern", ["data/**/*.txt", "data/*/*.txt"])
def test_a_linked_folder_is_read_unless_its_files_are_read_anyway(tmp_path: Path, pattern: str) -> None:
    for folder in ("data/2021", "disk/2022"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.txt").write_text("x")
    (tmp_path / "data" / "latest").symlink_to("2021")
    (tmp_path / "data" / "2022").symlink_to(tmp_path / "disk" / "2022")
    (tmp_path / "disk" / "2022" / "up").symlink_to(tmp_path / "disk" / "2022")
    (tmp_path / "disk" / "2022" / "data").symlink_to(tmp_path / "data")
    found = list_inputs(source("text", paths=(pattern,)), str(tmp_path))
    assert [file.locator for file in found] == ["data/2021/a.txt", "data/2022/a.txt"]
    files = find_documents(str(tmp_path / "data"), (".txt",)).files
    assert [file.locator for file in files] == ["2021/a.txt", "2022/a.txt"]


def test_a_symbolic_link_is_read_as_the_file_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("oil")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real" / "a.txt")
    found = list_inputs(source("text", ("*.txt",)), str(tmp_path))
    assert [(file.locator, file.size_bytes) for file in found] == [("link.txt", 3)]


def test_a_file_outside_of_the_root_is_located_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "a.txt").write_text("x")
    found = list_inputs(source("text", ("../root2/a.txt",)), str(tmp_path / "root"))
    assert [file.locator for file in found] == [str(tmp_path / "root2" / "a.txt")]


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ("newz/*.txt", "in .* there is: news"),
        ("news/juli.txt", "there is: july.txt"),
        ("news", r"is a folder.*write news/\*"),
        ("new*", r"matches only folders: write new\*/\*"),
    ],
)
def test_a_path_that_names_no_file_is_an_error_with_a_remedy(tmp_path: Path, entry: str, remedy: str) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "july.txt").write_text("x")
    with pytest.raises(InputError, match=remedy) as caught:
        list_inputs(source("text", (entry,)), str(tmp_path))
    assert repr(entry) in str(caught.value) and str(tmp_path) in str(caught.value)


def test_remote_files_are_found_and_read() -> None:
    fs = fsspec.filesystem("memory")
    fs.pipe("/corpus/a/1.jsonl.gz", COMPRESS[".gz"](b"".join(LINES[:3])))
    fs.pipe("/other/2.jsonl", LINES[3])
    config = source("jsonl", ("a/*.jsonl.gz", "memory://other/2.jsonl"))
    found = list_inputs(config, "memory://corpus")
    assert [file.locator for file in found] == ["a/1.jsonl.gz", "memory:///other/2.jsonl"]
    assert all(file.version for file in found)
    texts = [entry.text for file in found for entry in read_file(file, config) if isinstance(entry, RawDocument)]
    assert texts == TEXTS[:4]


def test_a_file_that_has_vanished_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    [file] = list_inputs(source("text"), str(tmp_path))
    (tmp_path / "a.txt").unlink()
    [row] = read_file(file, source("text"))
    assert isinstance(row, Removal) and (row.reason, row.locator) == ("unreadable_file", "a.txt")


def test_license_of_the_source_applies_to_documents_without_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n{"text": "y", "license": "MIT"}\n')
    documents, _ = read(tmp_path, source(license="CC0"))
    assert [document.license for document in documents] == ["CC0", "MIT"]


# --- compression


def test_suffixes_of_compression_come_off_from_the_right() -> None:
    assert split_codecs("a.jsonl") == ("a.jsonl", [])
    assert split_codecs("a.jsonl.gz.ZST") == ("a.jsonl", [".zst", ".gz"])
    assert split_codecs("a.tgz") == ("a.tar", [".gz"])
    assert split_codecs("gz") == ("gz", [])


@pytest.mark.parametrize("codec", COMPRESS)
def test_all_frames_of_a_compressed_file_are_read(tmp_path: Path, codec: str) -> None:
    frames = [COMPRESS[codec](b"".join(LINES[i : i + 100])) for i in range(0, 500, 100)]
    (tmp_path / f"a.jsonl{codec}").write_bytes(b"".join(frames))
    documents, rows = read(tmp_path, source())
    assert [document.text for document in documents] == TEXTS
    assert rows == []
    starts = [sum(map(len, LINES[:i])) for i in range(500)]
    assert [document.locator for document in documents] == [f"a.jsonl{codec}#{start}" for start in starts]


@pytest.mark.parametrize("frame_lines", [500, 100])
@pytest.mark.parametrize("codec", COMPRESS)
def test_a_cut_keeps_whole_records_and_gives_one_row_with_the_rest(
    tmp_path: Path, codec: str, frame_lines: int
) -> None:
    data = b"".join(COMPRESS[codec](b"".join(LINES[i : i + frame_lines])) for i in range(0, 500, frame_lines))
    for cut in (len(data) - 1, len(data) * 7 // 10, 20):
        (tmp_path / f"a.jsonl{codec}").write_bytes(data[:cut])
        documents, [row] = read(tmp_path, source())
        assert [document.text for document in documents] == TEXTS[: len(documents)]
        assert (row.reason, row.locator) == ("truncated_file", f"a.jsonl{codec}")
        assert f"cut after {cut} bytes" in row.detail
        read_bytes = b"".join(LINES[: len(documents)]) + row.removed_text
        assert b"".join(LINES).startswith(read_bytes) and b"\n" not in row.removed_text
        assert (f"{len(row.removed_text)} bytes of an unfinished record" in row.detail) == bool(row.removed_text)


def test_no_byte_before_a_cut_is_lost(tmp_path: Path) -> None:
    data = COMPRESS[".gz"](b"".join(LINES))
    cut = len(data) * 7 // 10
    (tmp_path / "a.jsonl.gz").write_bytes(data[:cut])
    documents, [row] = read(tmp_path, source())
    decoded = gzip_prefix(data[:cut])
    assert len(documents) > 300
    assert b"".join(LINES[: len(documents)]) + row.removed_text == decoded


def gzip_prefix(data: bytes) -> bytes:
    """All that zlib makes of a cut file, fed byte by byte."""
    decoder = zlib.decompressobj(31)
    return b"".join(decoder.decompress(data[i : i + 1]) for i in range(len(data)))


def test_a_cut_between_frames_is_no_cut(tmp_path: Path) -> None:
    frames = [COMPRESS[".zst"](line) for line in LINES[:3]]
    (tmp_path / "a.jsonl.zst").write_bytes(frames[0] + frames[1])
    documents, rows = read(tmp_path, source())
    assert len(documents) == 2 and rows == []


def test_zero_padding_and_skippable_frames_are_passed_over(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"xyz"  # RFC 8878 §3.1.2
    (tmp_path / "a.jsonl.zst").write_bytes(skippable + COMPRESS[".zst"](LINES[0]) + skippable)
    (tmp_path / "b.jsonl.gz").write_bytes(COMPRESS[".gz"](LINES[1]) + bytes(512))
    documents, rows = read(tmp_path, source())
    assert [document.text for document in documents] == TEXTS[:2] and rows == []


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_file_of_another_format_than_its_name_is_unreadable(tmp_path: Path, codec: str) -> None:
    (tmp_path / f"a.jsonl{codec}").write_bytes(b"".join(LINES[:5]))
    documents, [row] = read(tmp_path, source())
    assert documents == [] and row.reason == "unreadable_file" and codec in row.detail


@pytest.mark.parametrize("codec", [".gz", ".bz2", ".xz"])
def test_junk_behind_the_last_frame_is_a_row_and_loses_no_document(tmp_path: Path, codec: str) -> None:
    (tmp_path / f"a.jsonl{codec}").write_bytes(COMPRESS[codec](b"".join(LINES[:5])) + b"junk" * 20)
    documents, [row] = read(tmp_path, source())
    assert len(documents) == 5 and row.reason == "corrupt_file"


def test_a_flipped_bit_is_a_row(tmp_path: Path) -> None:
    data = bytearray(COMPRESS[".gz"](b"".join(LINES)))
    data[-6] ^= 1  # the checksum
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    _, [row] = read(tmp_path, source())
    assert row.reason == "corrupt_file" and "check" in row.detail


def test_empty_files_are_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"")
    (tmp_path / "b.jsonl.gz").write_bytes(b"")
    (tmp_path / "c.jsonl.zst").write_bytes(COMPRESS[".zst"](b""))
    (tmp_path / "d.tar").write_bytes(tar_of({"e.jsonl": b""}))
    documents, rows = read(tmp_path, source())
    assert documents == []
    assert [(row.locator, row.reason) for row in rows] == [
        (name, "empty_file") for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.tar!e.jsonl")
    ]


# --- limits


def test_a_line_above_the_limit_is_a_row_and_the_next_line_is_read(tmp_path: Path) -> None:
    long_line = b'{"text": "%s"}\n' % (b"x" * 200_000)
    for codec in ("", *COMPRESS):
        data = LINES[0] + long_line + LINES[1]
        (tmp_path / "a.jsonl").unlink(missing_ok=True)
        name = f"a.jsonl{codec}"
        (tmp_path / name).write_bytes(COMPRESS[codec](data) if codec else data)
        documents, [row] = read(tmp_path, source("jsonl", (name,), limits=LimitsConfig(record="100 KiB")))
        assert [document.text for document in documents] == TEXTS[:2]
        assert (row.reason, row.locator) == ("too_large", f"{name}#{len(LINES[0])}")
        assert f"{len(long_line)} bytes" in row.detail and row.removed_text == long_line[:65536]


def test_a_document_above_the_limit_costs_only_itself(tmp_path: Path) -> None:
    members = {"a.txt": b"1", "b.txt": b"x" * 200_000, "c.txt": b"3"}
    for name, data in (("a.tar", tar_of(members)), ("a.zip", zip_of(members))):
        (tmp_path / name).write_bytes(data)
        documents, [row] = read(tmp_path, source("text", (name,), limits=LimitsConfig(record="100 KiB")))
        assert [document.text for document in documents] == ["1", "3"]
        assert (row.reason, row.locator) == ("too_large", f"{name}!b.txt") and "200000 bytes" in row.detail
        assert len(row.removed_text) == 65536


def test_a_bomb_gives_the_data_before_the_limit_and_one_row(tmp_path: Path) -> None:
    for codec in COMPRESS:
        (tmp_path / f"a.jsonl{codec}").write_bytes(COMPRESS[codec](LINES[0] + bytes(6 << 20) + LINES[1]))
    documents, rows = read(tmp_path, source(limits=LimitsConfig(member="2 MiB", record="1 MiB")))
    assert [document.text for document in documents] == [TEXTS[0]] * len(COMPRESS)
    assert [row.reason for row in rows] == ["too_large"] * len(COMPRESS)
    assert all(len(row.removed_text) <= 65536 and "compressed bytes are skipped" in row.detail for row in rows)


# --- archives

MEMBERS = {f"news/{i:02}.txt": (TEXTS[i] * 60).encode() for i in range(20)}


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tgz", "a.tar.zst", "a.tar.bz2", "a.tar.xz", "a.zip"])
def test_members_are_read_in_archive_order(tmp_path: Path, name: str) -> None:
    members = dict(reversed(MEMBERS.items()))
    data = zip_of(members) if name == "a.zip" else tar_of(members)
    for codec in reversed(split_codecs(name)[1]):
        data = COMPRESS[codec](data)
    (tmp_path / name).write_bytes(data)
    documents, rows = read(tmp_path, source("text"))
    assert [document.locator for document in documents] == [f"{name}!{member}" for member in members]
    assert [document.text.encode() for document in documents] == list(members.values())
    assert rows == []


@pytest.mark.parametrize("codec", ["", ".gz", ".zst"])
def test_a_cut_tar_keeps_the_members_before_the_cut(tmp_path: Path, codec: str) -> None:
    whole = tar_of(MEMBERS)
    data = COMPRESS[codec](whole) if codec else whole
    for cut in (len(data) // 2, len(data) - 1 if codec else len(data.rstrip(b"\0")) - 100):
        (tmp_path / f"a.tar{codec}").write_bytes(data[:cut])
        documents, [row] = read(tmp_path, source("text"))
        assert [document.text.encode() for document in documents] == list(MEMBERS.values())[: len(documents)]
        assert (row.reason, row.locator) == ("truncated_file", f"a.tar{codec}")
        if len(documents) < len(MEMBERS):
            assert list(MEMBERS.values())[len(documents)].startswith(row.removed_text)
    assert len(documents) >= 14  # a block of zstd, 128 KiB, is decoded as a whole or not at all


def test_a_record_before_the_cut_in_a_member_is_kept(tmp_path: Path) -> None:
    data = COMPRESS[".gz"](tar_of({"a.jsonl": b"".join(LINES)}))
    (tmp_path / "a.tar.gz").write_bytes(data[: len(data) // 2])
    documents, [row] = read(tmp_path, source())
    decoded = gzip_prefix(data[: len(data) // 2])[tarfile.BLOCKSIZE :]
    assert b"".join(LINES[: len(documents)]) + row.removed_text == decoded
    assert row.locator == "a.tar.gz" and row.detail.count("in a.jsonl") == 1


def test_a_tar_cut_at_every_place_is_noticed(tmp_path: Path) -> None:
    data = tar_of({"a.txt": b"x" * 700, "b.txt": b"y" * 512, "c.txt": b"z"})
    end_of_members = 6 * 512 + 1024  # 3 headers, 2 + 1 + 1 blocks; then zeros, of which one block is the end mark
    for cut in range(1, end_of_members, 256):
        (tmp_path / "a.tar").write_bytes(data[:cut])
        documents, rows = read(tmp_path, source("text"))
        assert [row.reason for row in rows] == ["truncated_file"], cut
        assert [document.text[0] for document in documents] == list("xyz")[: len(documents)]


def test_data_after_the_end_of_a_tar_is_reported(tmp_path: Path) -> None:
    """Archives that were joined by `cat` are read one after the other; anything else is a row."""
    (tmp_path / "a.tar").write_bytes(tar_of({"a.txt": b"1"}) + tar_of({"b.txt": b"2"}))
    documents, rows = read(tmp_path, source("text"))
    assert [document.text for document in documents] == ["1", "2"] and rows == []
    (tmp_path / "a.tar").write_bytes(tar_of({"a.txt": b"1"}) + b"junk" * 300)
    documents, [row] = read(tmp_path, source("text"))
    assert [document.text for document in documents] == ["1"]
    assert row.reason == "corrupt_archive" and "1200 bytes from byte 10240 on" in row.detail


def test_a_broken_header_in_the_middle_of_a_tar_is_a_row(tmp_path: Path) -> None:
    data = bytearray(tar_of({"a.txt": b"x" * 512, "b.txt": b"y"}))
    data[1024:1034] = b"!" * 10
    (tmp_path / "a.tar").write_bytes(data)
    documents, [row] = read(tmp_path, source("text"))
    assert len(documents) == 1 and (row.reason, row.locator) == ("corrupt_archive", "a.tar#1024/gap")
    assert row.removed_text.startswith(b"y") and "1024 bytes from byte 1024 on" in row.detail


@pytest.mark.parametrize("name", ["a.tar", "a.zip"])
def test_no_archive_under_an_archive_name_is_unreadable(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"plain text" * 100)
    documents, [row] = read(tmp_path, source("text"))
    assert documents == [] and (row.reason, row.locator) == ("unreadable_file", name)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_a_cut_zip_keeps_the_members_before_the_cut(tmp_path: Path, method: int) -> None:
    data = zip_of(MEMBERS, method)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        offsets = {info.filename: info.header_offset for info in archive.infolist()}
    for cut in (len(data) - 5, offsets["news/07.txt"] + 300, offsets["news/07.txt"] + 10, 50):
        (tmp_path / "a.zip").write_bytes(data[:cut])
        documents, [row] = read(tmp_path, source("text"))
        ends = [*list(offsets.values())[1:], data.find(b"PK\x01\x02")]
        whole = [MEMBERS[name].decode() for name, end in zip(offsets, ends, strict=True) if end <= cut]
        assert [document.text for document in documents] == whole
        assert (row.reason, row.locator) == ("truncated_file", "a.zip")


def test_a_cut_zip_that_was_streamed_is_read(tmp_path: Path) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
    data = pipe.getvalue()
    (tmp_path / "a.zip").write_bytes(data[: data.find(b"PK\x01\x02")])
    documents, [row] = read(tmp_path, source("text"))
    assert [document.text.encode() for document in documents] == list(MEMBERS.values())
    assert row.reason == "truncated_file"


def test_one_broken_member_of_a_zip_does_not_take_the_others_along(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.txt": b"first", "b.txt": b"second", "c.txt": b"third"}, zipfile.ZIP_STORED))
    data[data.find(b"second")] ^= 1
    (tmp_path / "a.zip").write_bytes(data)
    documents, [row] = read(tmp_path, source("text"))
    assert [document.text for document in documents] == ["first", "third"]
    assert (row.reason, row.locator) == ("corrupt_archive", "a.zip!b.txt") and "CRC" in row.detail


def test_one_cut_member_of_a_tar_does_not_take_the_others_along(tmp_path: Path) -> None:
    cut = COMPRESS[".gz"](b"".join(LINES))[:-100]
    (tmp_path / "a.tar").write_bytes(tar_of({"a.jsonl.gz": cut, "b.jsonl": LINES[0]}))
    documents, [row] = read(tmp_path, source())
    assert documents[-1].locator == "a.tar!b.jsonl#0" and documents[-1].text == TEXTS[0]
    assert (row.reason, row.locator) == ("truncated_file", "a.tar!a.jsonl.gz")


def test_members_are_chosen_by_whole_path_or_by_name(tmp_path: Path) -> None:
    members = {"x/a.txt": b"1", "x/b.md": b"2", "y/c.txt": b"3"}
    (tmp_path / "a.tar").write_bytes(tar_of(members))

    def chosen(*patterns: str) -> list[str]:
        return [document.text for document in read(tmp_path, source("text", members=patterns))[0]]

    assert chosen("*.txt") == ["1", "3"]
    assert chosen("x/*") == ["1", "2"]
    assert chosen("a.*", "c.*") == ["1", "3"]


def test_patterns_that_no_member_matches_give_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tar_of({"a.text": b"1"}))
    documents, [row] = read(tmp_path, source("text", members=("*.txt",)))
    assert documents == [] and row.reason == "no_members"
    assert "*.txt" in row.detail and "a.text" in row.detail


def test_archives_in_archives_are_walked(tmp_path: Path) -> None:
    inner = {"in.zip": zip_of({"a.txt": b"1"}), "in.tar.gz": COMPRESS[".gz"](tar_of({"b.txt": b"2"}))}
    (tmp_path / "out.tar").write_bytes(tar_of(inner))
    documents, rows = read(tmp_path, source("text"))
    assert [document.locator for document in documents] == ["out.tar!in.zip!a.txt", "out.tar!in.tar.gz!b.txt"]
    assert rows == []


def test_only_regular_files_are_members(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.txt").write_text("1")
    (tmp_path / "x" / "link.txt").symlink_to("a.txt")
    os.mkfifo(tmp_path / "x" / "pipe.txt")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "x", "x")
    documents, _ = read(tmp_path, source("text", ("a.tar",)))
    assert [document.locator for document in documents] == ["a.tar!x/a.txt"]


def test_odd_member_names_do_no_harm(tmp_path: Path) -> None:
    names = ["a!b.txt", "c#d.txt", "é.txt", "n" * 200 + ".txt", "caf\udce9.txt"]
    (tmp_path / "a.tar").write_bytes(tar_of(dict.fromkeys(names, b"x"), kind=tarfile.GNU_FORMAT))
    documents, rows = read(tmp_path, source("text"))
    assert [document.locator for document in documents] == [f"a.tar!{name}" for name in [*names[:4], "caf\\xe9.txt"]]
    assert rows == []


def test_members_of_the_same_name_are_different_documents(tmp_path: Path) -> None:
    members = [("a.txt", b"1"), ("a.txt", b"2"), ("a.txt~2", b"3"), ("a.txt~3", b"4"), ("a.txt", b"5")]
    (tmp_path / "a.tar").write_bytes(tar_of(members))
    documents, _ = read(tmp_path, source("text"))
    assert [(document.locator, document.text) for document in documents] == [
        ("a.tar!a.txt", "1"),
        ("a.tar!a.txt~2", "2"),
        ("a.tar!a.txt~2~2", "3"),
        ("a.tar!a.txt~3", "4"),
        ("a.tar!a.txt~4", "5"),
    ]


def test_a_sparse_member_is_read_in_full(tmp_path: Path) -> None:
    with open(tmp_path / "a.txt", "wb") as file:
        file.write(b"head")
        file.seek(1 << 20)
        file.write(b"tail")
    made = subprocess.run(["tar", "--sparse", "-cf", "a.tar", "a.txt"], cwd=tmp_path, capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no tar that writes sparse files")
    [document], _ = read(tmp_path, source("text", ("a.tar",)))
    assert document.text.encode() == (tmp_path / "a.txt").read_bytes()


# --- the stream and the list of reasons


@given(st.lists(st.binary(max_size=9)), st.lists(st.integers(1, 12)))
def test_a_stream_reads_as_a_file_of_the_same_bytes(blocks: list[bytes], sizes: list[int]) -> None:
    data = b"".join(blocks)
    assert ByteStream(iter(blocks)).read() == data
    assert list(ByteStream(iter(blocks))) == list(io.BytesIO(data))
    ours, oracle = ByteStream(iter(blocks)), io.BytesIO(data)
    for size in sizes:
        assert ours.read(size) == oracle.read(size)
        assert ours.readline() == oracle.readline()
        assert ours.tell() == oracle.tell()
        assert oracle.getvalue()[oracle.tell() :].startswith(ours.peek())


@given(st.lists(st.binary(max_size=5), max_size=20), st.integers(0, 60), st.integers(0, 60))
def test_the_last_read_can_be_returned_again(blocks: list[bytes], start: int, length: int) -> None:
    data = b"".join(blocks)
    stream = ByteStream(iter(blocks))
    stream.read()
    assert stream.recall(start, start + length) == data[start : start + length]


def test_a_stream_discards_old_reads() -> None:
    """Of a gigabyte it holds a megabyte or two; of what is forgotten it returns nothing, not a part."""
    stream = ByteStream(iter([bytes([number]) * 50_000 for number in range(100)]))
    while stream.read(1 << 16):
        pass
    assert stream.recall(0, 10) == b"" and stream.recall(3_800_000, 3_900_001) == b""
    assert stream.recall(4_000_000, 4_000_003) == bytes([80]) * 3
    assert sum(len(block) for _, block in stream._recent) <= 1 << 21


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_broken_stream_gives_every_byte_before_it_raises(data: bytes, draw: st.DataObject) -> None:
    def blocks() -> Iterator[bytes]:
        yield from (data[i : i + 7] for i in range(0, len(data), 7))
        raise BrokenStream("truncated_file", "a", "cut")

    whole = ByteStream(blocks())
    with pytest.raises(BrokenStream) as caught:
        whole.read()
    assert caught.value.partial == data
    pieces, stream = [], ByteStream(blocks())
    with pytest.raises(BrokenStream):
        while True:
            pieces.append(stream.read(draw.draw(st.integers(1, 20))))
    assert b"".join(pieces) == data


def test_decoding_stops_at_the_same_byte_however_the_input_is_split() -> None:
    data = (COMPRESS[".zst"](b"".join(LINES)) + COMPRESS[".zst"](LINES[0]))[:-2]
    for size in (1, 1000, len(data)):
        parts: list[bytes] = []
        with pytest.raises(BrokenStream, match=f"cut after {len(data)} bytes"):
            blocks = decompress((data[i : i + size] for i in range(0, len(data), size)), ".zst", "a")
            parts.extend(block for block in blocks if isinstance(block, bytes))
        assert b"".join(parts).startswith(b"".join(LINES))


@pytest.mark.parametrize("codec", COMPRESS)
def test_a_stream_gives_the_stored_position_of_the_frame_of_a_byte(codec: str) -> None:
    texts = [b"a" * 1000, b"b", b"c" * 70_000]
    frames = [COMPRESS[codec](text) for text in texts]
    stream = ByteStream(decompress(iter([b"".join(frames)]), codec, "a"))
    assert stream.stored_offset(0) == 0
    assert stream.read() == b"".join(texts)
    for number, text in enumerate(texts):
        for position in (0, len(text) - 1):
            stored = stream.stored_offset(sum(map(len, texts[:number])) + position)
            assert stored == sum(map(len, frames[:number]))
    assert ByteStream(iter([b"plain"])).stored_offset(3) == 3


@pytest.mark.parametrize("codec", sorted(COMPRESS))
def test_streams_that_are_read_in_turn_do_not_disturb_each_other(codec: str) -> None:
    """As a compressed member of a compressed archive is, and files in several threads."""
    draw = random.Random(5)
    contents = [draw.randbytes(5000) for _ in range(3)]

    def blocks(data: bytes) -> Iterator[bytes]:
        return (data[i : i + 100] for i in range(0, len(data), 100))

    decoded = [ByteStream(decompress(blocks(COMPRESS[codec](content)), codec, "a")) for content in contents]
    found = [b"", b"", b""]
    while any(pieces := [stream.read1() for stream in decoded]):
        found = [before + piece for before, piece in zip(found, pieces, strict=True)]
    assert found == contents


def test_every_reason_in_the_readers_is_documented() -> None:
    import finpile.sources

    folder = Path(finpile.sources.__file__).parent
    code = "\n".join(file.read_text() for file in sorted(folder.rglob("*.py")) if file.name != "base.py")
    used = set(re.findall(r'(?:removal\(source, [^")]*?|BrokenStream\(|Refused\()"([a-z_]+)"', code))
    documented = {reason for name in FORMATS.built_in for reason in reasons_of(name)}
    assert {"broken_json", "truncated_file", "empty_text", "not_text"} <= used <= documented


def test_an_undocumented_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="'bad_luck' is not a reason of format"):
        removal(source(), "a", "bad_luck")
