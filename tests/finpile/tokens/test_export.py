"""Exported tokens are those of the store, as readers see them that share no code with the writers."""

from __future__ import annotations

import json
import struct
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from finpile_cli.export_tokens import export_tokens_command
from finpile_cli.main import finpile
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile import storage
from finpile.errors import ConfigError
from finpile.tokens.export import EXPORTS, export_tokens
from finpile.tokens.exports import mds
from finpile.tokens.store import TokenStore, write_token_shard
from tests.support.packages import installed

EOT = 9


def write(folder: Path, ids: np.ndarray, cuts: list[int], padding: int = 0, vocab_size: int = 50) -> TokenStore:
    parts = np.split(ids, cuts)
    for number, part in enumerate(parts):
        rest = padding if number == len(parts) - 1 and len(part) else 0
        write_token_shard(
            f"{folder}/{number:03d}.arrow", part, vocab_size=vocab_size, eot_id=EOT, tokenizer="ab", padding=rest
        )
    return TokenStore.open(str(folder))


def read_megatron(prefix: Path) -> tuple[list[list[int]], type[np.generic]]:
    """The documents of an indexed dataset, one number at a time, from the layout of Megatron's files."""
    index, data = prefix.with_suffix(".idx").read_bytes(), prefix.with_suffix(".bin").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    (version,) = struct.unpack_from("<Q", index, 9)
    (code,) = struct.unpack_from("<B", index, 17)
    count, boundaries = struct.unpack_from("<QQ", index, 18)
    assert version == 1
    kinds: dict[int, tuple[str, type[np.generic]]] = {8: ("H", np.uint16), 4: ("i", np.int32)}
    letter, kind = kinds[code]
    place = 34
    lengths = struct.unpack_from(f"<{count}i", index, place)
    place += 4 * count
    pointers = struct.unpack_from(f"<{count}q", index, place)
    place += 8 * count
    documents = struct.unpack_from(f"<{boundaries}q", index, place)
    assert place + 8 * boundaries == len(index)
    assert documents == tuple(range(count + 1)), "each sequence is a document"
    found = [
        list(struct.unpack_from(f"<{length}{letter}", data, at)) for length, at in zip(lengths, pointers, strict=True)
    ]
    assert sum(lengths) * struct.calcsize(letter) == len(data)
    return found, kind


@given(
    flat=st.lists(st.sampled_from([1, 2, 3, EOT]), min_size=0, max_size=60),
    cuts=st.lists(st.integers(0, 15), max_size=3).map(sorted),
    padding=st.integers(0, 3),
)
@settings(max_examples=60, deadline=None)
def test_megatron_has_the_documents_of_the_stream(
    tmp_path_factory: pytest.TempPathFactory, flat: list[int], cuts: list[int], padding: int
) -> None:
    ids = np.array(flat[: len(flat) // 4 * 4], int).reshape(-1, 4)
    folder = tmp_path_factory.mktemp("tokens")
    cuts = [min(cut, len(ids)) for cut in cuts]
    if cuts and cuts[-1] == len(ids):
        padding = 0
    store = write(folder / "in", ids, cuts, padding)
    result = export_tokens(store, str(folder / "out"), "megatron")
    stream = ids.reshape(-1).tolist()
    stream = stream[: len(stream) - padding] if stream else []
    expected: list[list[int]] = [[]]
    for token in stream:
        expected[-1].append(token)
        if token == EOT:
            expected.append([])
    if not expected[-1]:
        expected.pop()
    documents, kind = read_megatron(folder / "out" / "tokens")
    assert documents == expected
    assert kind is np.uint16
    assert (result.num_tokens, result.num_entries, result.entries) == (len(stream), len(expected), "documents")


def test_a_large_vocabulary_is_int32_in_megatron_and_uint32_elsewhere(tmp_path: Path) -> None:
    ids = np.array([[70_000, EOT, 5, 6]])
    store = write(tmp_path / "in", ids, [], vocab_size=131_072)
    for to in ("megatron", "npy"):
        export_tokens(store, str(tmp_path / to), to)
    documents, kind = read_megatron(tmp_path / "megatron" / "tokens")
    assert (documents, kind) == ([[70_000, EOT], [5, 6]], np.int32)
    flat = np.load(tmp_path / "npy" / "tokens.npy", mmap_mode="r")
    assert (flat.dtype, flat.tolist()) == (np.uint32, ids.reshape(-1).tolist())


@pytest.mark.parametrize("padding", [0, 3])
def test_npy_is_all_tokens_in_one_row(tmp_path: Path, padding: int) -> None:
    ids = np.random.default_rng(0).integers(0, 50, (20, 8))
    store = write(tmp_path / "in", ids, [7, 7, 15], padding)
    export_tokens(store, str(tmp_path / "out"), "npy")
    flat = np.load(tmp_path / "out" / "tokens.npy", mmap_mode="r")
    assert isinstance(flat, np.memmap)
    assert (flat.dtype, flat.tolist()) == (np.uint16, ids.reshape(-1)[: 160 - padding].tolist())
    about = json.loads((tmp_path / "out" / "finpile.json").read_text())
    assert about == {
        "vocab_size": 50,
        "sequence_length": 8,
        "eot_id": EOT,
        "tokenizer": "ab",
        "num_tokens": 160 - padding,
        "format": "npy",
    }


@pytest.mark.parametrize("vocab_size", [50, 131_072])
def test_streaming_reads_every_sequence(tmp_path: Path, vocab_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """MosaicML's own reader, and its own checks of the shards."""
    streaming = pytest.importorskip(
        "streaming",
        reason="mosaicml-streaming is not installed; its requirements exclude transformers 5, so it is not an extra: "
        "pip install --no-deps mosaicml-streaming torchvision xxhash zstd python-snappy cramjam catalogue",
    )
    monkeypatch.setattr(mds, "SHARD_BYTES", 100)
    ids = np.random.default_rng(0).integers(0, vocab_size, (25, 8))
    store = write(tmp_path / "in", ids, [3, 19], vocab_size=vocab_size)
    result = export_tokens(store, str(tmp_path / "out"), "mds")
    assert len(result.files) > 4
    found: Any = streaming.LocalDataset(str(tmp_path / "out"))
    assert len(found) == 25
    for index in range(25):
        sample = found[index]["tokens"]
        assert (sample.dtype, sample.tolist()) == (store.meta.dtype, ids[index].tolist())


def test_mds_has_the_layout_of_its_description(tmp_path: Path) -> None:
    """A reader of our own, for machines without the library."""
    ids = np.random.default_rng(0).integers(0, 50, (6, 8))
    export_tokens(write(tmp_path / "in", ids, []), str(tmp_path / "out"), "mds")
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    (shard,) = index["shards"]
    data = (tmp_path / "out" / shard["raw_data"]["basename"]).read_bytes()
    assert (len(data), shard["samples"], index["version"]) == (shard["raw_data"]["bytes"], 6, 2)
    assert shard["column_encodings"] == ["ndarray:uint16:8"]
    (count,) = struct.unpack_from("<I", data)
    offsets = struct.unpack_from(f"<{count + 1}I", data, 4)
    samples = [
        list(struct.unpack(f"<{shard['column_sizes'][0] // 2}H", data[begin:end])) for begin, end in pairwise(offsets)
    ]
    assert samples == ids.tolist()
    assert json.loads(data[4 + 4 * (count + 1) : offsets[0]])["column_names"] == ["tokens"]


def test_an_export_touches_no_folder_that_holds_files(tmp_path: Path) -> None:
    store = write(tmp_path / "in", np.zeros((2, 4), int), [])
    with pytest.raises(ConfigError, match="holds files; expected a new or an empty folder"):
        export_tokens(store, str(tmp_path / "in"), "npy")
    with pytest.raises(ConfigError, match="--format: 'tfrecord' is not known"):
        export_tokens(store, str(tmp_path / "out"), "tfrecord")


@pytest.mark.parametrize("to", EXPORTS.built_in)
def test_an_interrupted_export_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str) -> None:
    store = write(tmp_path / "in", np.full((4, 4), EOT), [2])

    def interrupt(path: str, value: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(storage, "write_json", interrupt)
        export_tokens(store, str(tmp_path / "out"), to)
    assert export_tokens(store, str(tmp_path / "out"), to).num_tokens == 16


def test_the_command_exports_the_splits_of_a_build(sample_build: Path, tmp_path: Path) -> None:
    for split in ("train", "heldout"):
        store = TokenStore.open(str(sample_build / f"tokens/split={split}"))
        for to in ("megatron", "mds", "npy"):
            out = tmp_path / split / to
            arguments = [str(sample_build), "-o", str(out), "--format", to, "--split", split, "--json"]
            done = CliRunner().invoke(export_tokens_command, arguments, catch_exceptions=False)
            assert done.exit_code == 0, done.output
            said = json.loads(done.output)
            assert said["num_tokens"] == store.num_tokens
            assert sorted(said["files"]) == sorted(str(path) for path in out.iterdir())
        documents, _ = read_megatron(tmp_path / split / "megatron" / "tokens")
        flat = np.load(tmp_path / split / "npy" / "tokens.npy")
        assert [token for document in documents for token in document] == flat.tolist()
        assert Counter(flat.tolist())[store.eot_id] in (len(documents), len(documents) - 1)


# --- of another package ----------------------------------------------------------------------------------------------

#: A line of ids for each sequence.
EXPORT_FILE = """
from finpile import storage
from finpile.tokens.export import Export


def write(store, folder):
    lines = [" ".join(map(str, ids)) + "\\n" for shard in store.shards() for ids in shard.tolist()]
    storage.write_bytes(storage.join(folder, "tokens.txt"), "".join(lines).encode())
    return ["tokens.txt"], len(lines)


EXPORT = Export(name="lines", write=write, entries="lines")
"""


def test_an_export_of_another_package_is_one_file(
    sample_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert EXPORTS.names() == EXPORTS.built_in == ("mds", "megatron", "npy")
    monkeypatch.delitem(sys.modules, export_tokens_command.callback.__module__)  # it lists the formats once
    with installed(tmp_path / "site", {"lines_export": EXPORT_FILE}, {EXPORTS: "lines = lines_export:EXPORT"}):
        assert "[lines|mds|megatron|npy]" in CliRunner().invoke(finpile, ["export", "tokens", "--help"]).output
        arguments = ["export", "tokens", str(sample_build), "-o", str(tmp_path / "out"), "--format", "lines"]
        done = CliRunner().invoke(finpile, arguments, catch_exceptions=False)
    store = TokenStore.open(str(sample_build / "tokens/split=train"))
    found = [list(map(int, line.split())) for line in (tmp_path / "out/tokens.txt").read_text().splitlines()]
    assert found == store.batch(range(len(store))).tolist()
    assert done.output.endswith(f"{len(store):,} lines, {store.num_tokens:,} tokens\n")
    assert json.loads((tmp_path / "out/finpile.json").read_text())["format"] == "lines"
