"""Object stores as the library sees them, with a store in memory that counts requests and fails on demand."""

from __future__ import annotations

import io
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import TokenizerError, UnigramTokenizer, Vocabulary
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage
from finpile.config import SourceConfig, TokenizerConfig
from finpile.errors import ConfigError, InputError, StoreError
from finpile.output.layout import Layout
from finpile.sources.readers.finding import InputFile, find_documents
from finpile.sources.readers.reading import read_file
from finpile.storage import file_systems
from finpile.storage.file_systems import StoreFile, file_system_of, repeated
from finpile.tokens.tokenizer_files import load_tokenizer, save_tokenizer
from finpile.tokens.tokenizers.given import GivenTokenizer
from finpile.tokens.tokenizers.opening import open_build_tokenizer, open_tokenizer
from tests.support.other_tokenizers import TEXTS, WRITERS

SCHEME = "finpile-test-store"


class Store(MemoryFileSystem):
    """Objects in memory, under a scheme that counts as an object store."""

    protocol = SCHEME
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    calls: ClassVar[list[str]] = []
    failures: ClassVar[list[Exception]] = []
    """Raised by the next requests, in order."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        whole = path.replace(f"{SCHEME}:///", "memory://").replace(f"{SCHEME}://", "memory://bucket/")
        return str(super()._strip_protocol(whole))

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.failures:
            raise self.failures.pop(0)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self._called("read")
        return bytes(super().cat_file(path, start=start, end=end, **options))

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        self._called("write")
        super().put_file(lpath, rpath, **options)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self._called("describe")
        return dict(super().info(path, **options))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A URL of an empty folder."""
    fsspec.register_implementation(SCHEME, Store, clobber=True)
    monkeypatch.setattr(file_systems, "OBJECT_STORES", frozenset({*file_systems.OBJECT_STORES, SCHEME}))
    monkeypatch.setattr(file_systems, "PAUSES_SECONDS", (0.0, 0.0))
    yield f"{SCHEME}://{uuid.uuid4().hex}"
    Store.calls.clear()
    Store.failures.clear()
    Store.store.clear()


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_object_stores_are_opened_without_a_cache_of_listings(scheme: str) -> None:
    pytest.importorskip({"s3": "s3fs", "gs": "gcsfs"}[scheme])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
        fs, _ = file_system_of(f"{scheme}://bucket/key")
    assert fs.dircache.use_listings_cache is False


@given(st.binary(max_size=40), st.integers(1, 9), st.lists(st.tuples(st.integers(0, 45), st.integers(-1, 45))))
def test_reading_in_blocks_equals_reading_from_memory(data: bytes, block: int, reads: list[tuple[int, int]]) -> None:
    fs = Store(skip_instance_cache=True)
    fs.pipe_file("/file", data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_systems, "BLOCK_BYTES", block)
        found, expected = StoreFile(fs, "/file"), io.BytesIO(data)
        for position, size in reads:
            assert found.seek(position) == expected.seek(position)
            assert found.read(size) == expected.read(size)
            assert found.tell() == expected.tell()
        assert found.seek(0, io.SEEK_END) == len(data)


def test_small_file_takes_one_request(store: str) -> None:
    storage.write_bytes(f"{store}/file", b"abc")
    Store.calls.clear()
    assert storage.read_bytes(f"{store}/file") == b"abc"
    assert Store.calls == ["read"]
    Store.calls.clear()
    with file_systems.open_file(f"{store}/file") as stream:
        assert stream.seek(0, io.SEEK_END) == 3
        stream.seek(0)
        assert stream.read() == b"abc"
    assert Store.calls == ["read"]


def test_file_is_written_with_one_upload_and_not_after_an_error(store: str) -> None:
    with pytest.raises(ZeroDivisionError), storage.write_atomically(f"{store}/file") as stream:
        stream.write(b"half")
        raise ZeroDivisionError
    assert Store.calls == []
    assert not storage.is_file(f"{store}/file")
    Store.calls.clear()
    storage.write_bytes(f"{store}/file", b"whole")
    assert Store.calls == ["write"]


def test_passing_failures_are_repeated(store: str) -> None:
    Store.failures[:] = [OSError("503"), TimeoutError()]
    storage.write_bytes(f"{store}/file", b"abc")
    Store.failures[:] = [OSError("cut"), RuntimeError("cut")]
    assert storage.read_bytes(f"{store}/file") == b"abc"


def test_lasting_failure_is_one_error_with_the_path(store: str) -> None:
    storage.write_bytes(f"{store}/file", b"abc")
    Store.failures[:] = [OSError("503 Slow Down")] * 3
    with pytest.raises(StoreError, match=r"file: the store does not answer \(503 Slow Down\): run the same command"):
        storage.read_bytes(f"{store}/file")


@pytest.mark.parametrize("error", [FileNotFoundError("x"), PermissionError("x"), ConfigError("x")])
def test_final_errors_are_not_repeated(error: Exception) -> None:
    calls: list[int] = []

    def request() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        repeated("path", request)
    assert len(calls) == 1


def test_failing_store_ends_the_reading_of_an_input_and_removes_nothing(store: str) -> None:
    """A ledger row would make the output depend on the moment of the failure."""
    line = b'{"text": "a text of a few words"}\n'
    storage.write_bytes(f"{store}/news.jsonl", line * 3)
    source = SourceConfig(name="News", dataset="D", format="jsonl", paths=("*",))
    file = InputFile(url=f"{store}/news.jsonl", locator="news.jsonl", size_bytes=3 * len(line), version="1")
    assert len(list(read_file(file, source))) == 3
    Store.failures[:] = [OSError("503")] * 9
    with pytest.raises(StoreError):
        list(read_file(file, source))


def test_sizes_are_of_the_files_that_exist(store: str) -> None:
    for name in ("a/b/1", "a/2", "c/3"):
        storage.write_bytes(f"{store}/{name}", name.encode())
    Store.calls.clear()
    assert storage.sizes_of(store, ["a/b/1", "c/3", "c/4"]) == {"a/b/1": 5, "c/3": 3}
    assert "describe" not in Store.calls
    assert storage.sizes_of(store, ["manifest.json", "c/3"]) == {"c/3": 3}
    assert storage.list_files(store) == ["a/2", "a/b/1", "c/3"]
    storage.remove_tree(f"{store}/a")
    assert storage.list_files(store) == ["c/3"]


def test_a_file_that_another_process_moves_meanwhile_has_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write_bytes(f"{tmp_path}/1", b"1")

    def moved(self: LocalFileSystem, path: str) -> int:
        Path(path).unlink()
        raise FileNotFoundError(path)

    monkeypatch.setattr(LocalFileSystem, "size", moved)
    assert storage.sizes_of(str(tmp_path), ["1"]) == {}


def test_failing_store_is_no_folder_without_a_build(store: str) -> None:
    """Else the other files of an output folder would be read instead of its documents."""
    for name in ("out/manifest.json", "out/documents/dataset=D/source=S/part.parquet", "out/other.parquet"):
        storage.write_bytes(f"{store}/{name}", b"-")
    for num_failures in (0, 1, 2):
        Store.failures[:] = [OSError("503")] * num_failures
        (file,) = find_documents(f"{store}/out", [".parquet"]).files
        assert file.locator == "documents/dataset=D/source=S/part.parquet"
    Store.failures[:] = [OSError("503")] * 9
    with pytest.raises(StoreError):
        find_documents(f"{store}/out", [".parquet"])


@pytest.mark.parametrize("path", ["tokenizer", "tokenizer/tokenizer.json", ""])
def test_tokenizer_at_a_url_is_that_of_the_files(store: str, tmp_path: Path, path: str) -> None:
    pieces = pa.array([bytes([value]) for value in range(256)] + [b"gold"], pa.large_binary())
    log_probs = np.linspace(-9, -1, len(pieces))
    tokenizer = UnigramTokenizer(Vocabulary(pieces=pieces, log_probs=log_probs, num_models=None, num_requested=258))
    save_tokenizer(tokenizer.vocabulary, f"{store}/out/tokenizer")
    loaded = load_tokenizer(f"{store}/out/{path}")
    assert loaded.encode(b"gold rose") == tokenizer.encode(b"gold rose")
    assert open_tokenizer(f"{store}/out/{path}").name == "out"


@pytest.mark.parametrize("name", ["bpe", "sentencepiece", "gpt2", "tiktoken"])
def test_tokenizer_that_is_used_may_be_at_a_url(store: str, tmp_path: Path, name: str) -> None:
    place = WRITERS[name](tmp_path, [*TEXTS, *(f"gold rose {number}" for number in range(60))])
    local = GivenTokenizer.of_config(TokenizerConfig(use=str(place)), "/")
    names = {file: "mine.json" if file == "tokenizer.json" else file for file in local.contents}
    for file, content in local.contents.items():
        storage.write_bytes(f"{store}/given/{names[file]}", content)
    at = f"{store}/given" if name == "gpt2" else f"{store}/given/{names[local.record.files[0].name]}"
    again = GivenTokenizer.of_config(TokenizerConfig(use=at), "/")
    assert again == local
    again.write(f"{store}/out/tokenizer")
    assert open_build_tokenizer(Layout(f"{store}/out")).encode(["gold"]) == local.opened().encode(["gold"])


def test_error_about_a_tokenizer_at_a_url_names_the_url(store: str) -> None:
    storage.write_bytes(f"{store}/broken/tokenizer.json", b"{}")
    with pytest.raises(TokenizerError, match=f"^{store}/broken/tokenizer.json is not a tokenizer"):
        load_tokenizer(f"{store}/broken")
    with pytest.raises(InputError, match=f"^{store}/none: no tokenizer is there"):
        open_tokenizer(f"{store}/none")
