"""A build of data_samples matches data_samples/expected.json, and its artifacts agree with each other."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import tokenizers
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_tokenizer import END_OF_TEXT, UnigramTokenizer

from finpile.config import load_config
from finpile.documents.document import document_id
from finpile.output.layout import Layout, heldout_tokens
from finpile.tokens import TokenStore
from finpile.verify import verify
from tests.support.trees import assert_same, rows_below

ROOT = Path(__file__).resolve().parents[2]
EXPECTED: dict[str, Any] = json.loads((ROOT / "data_samples" / "expected.json").read_text(encoding="utf-8"))
ROWS = {(row["dataset"], row["source"]): row for row in EXPECTED["sources"]}
LAST_TRAIN_DAY = date(2022, 7, 31)
SEQUENCE_LENGTH = 512

Row = dict[str, Any]


@dataclass
class Found:
    """All documents and ledger rows of a build."""

    documents: list[Row]
    ledger: list[Row]
    by_source: defaultdict[tuple[str, str], tuple[list[Row], list[Row]]] = field(
        default_factory=lambda: defaultdict(lambda: ([], []))
    )

    def __post_init__(self) -> None:
        for kind, rows in enumerate((self.documents, self.ledger)):
            for row in rows:
                self.by_source[row["dataset"], row["source"]][kind].append(row)

    @property
    def train(self) -> list[Row]:
        return [row for row in self.documents if row["split"] == "train"]


def read_all(folder: Path) -> list[Row]:
    rows = rows_below(folder)
    assert rows
    return rows


@pytest.fixture(scope="module")
def found(sample_build: Path) -> Found:
    return Found(read_all(sample_build / "documents"), read_all(sample_build / "removed"))


@pytest.fixture(scope="module")
def peer(sample_build: Path) -> tokenizers.Tokenizer:
    """The build's tokenizer.json in Hugging Face's tokenizers."""
    return tokenizers.Tokenizer.from_file(str(sample_build / "tokenizer" / "tokenizer.json"))


def day_of(row: Row) -> date | None:
    moment = row["timestamp"]
    return None if moment is None else moment.astimezone(UTC).date()


def counted(rows: Iterator[Row]) -> dict[str, dict[str, int]]:
    """Rows by stage and reason."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row["stage"]][row["reason"]] += 1
    return {stage: dict(reasons) for stage, reasons in counts.items()}


def ids_of(peer: tokenizers.Tokenizer, row: Row) -> list[int]:
    ids: list[int] = peer.encode(row["text"], add_special_tokens=False).ids
    return ids


def in_stream_order(rows: list[Row]) -> list[Row]:
    """By the digest of the text; equal texts by id."""
    return sorted(rows, key=lambda row: (hashlib.blake2b(row["text"].encode(), digest_size=16).digest(), row["id"]))


@pytest.mark.parametrize("key", ROWS, ids="/".join)
def test_source_counts_equal_the_expected_counts(key: tuple[str, str], found: Found) -> None:
    kept, ledger = found.by_source[key]
    row = ROWS[key]
    whole = [entry for entry in ledger if entry["start"] is None]
    assert row["read"] == len(kept) + len(whole)
    assert row["removed"] == counted(iter(whole))
    cut = {entry["id"] for entry in ledger if entry["stage"] == "substring"}
    assert (len(cut), cut - {document["id"] for document in kept}) == (row["cut_documents"], set())
    spans = [entry for entry in ledger if entry["start"] is not None and entry["stage"] != "substring"]
    assert row["removed_spans"] == counted(entry for entry in spans if entry["start"] < entry["end"])
    assert row["notes"] == counted(entry for entry in spans if entry["start"] == entry["end"])
    splits = Counter(document["split"] for document in kept)
    assert (row["kept_train"], row["kept_heldout"]) == (splits["train"], splits["heldout"])
    days = [day for document in kept if (day := day_of(document))]
    assert (row["first_day"], row["last_day"]) == (min(days).isoformat(), max(days).isoformat())
    years = Counter("undated" if day is None else str(day.year) for day in map(day_of, kept))
    assert row["kept_by_year"] == years


def test_no_source_is_missing_and_none_was_invented(found: Found) -> None:
    assert set(found.by_source) == set(ROWS)
    assert len(found.documents) == EXPECTED["totals"]["kept_train"] + EXPECTED["totals"]["kept_heldout"]


def test_documents_are_held_out_by_day_and_undated_ones_are_trained_on(found: Found) -> None:
    for row in found.documents:
        day = day_of(row)
        assert row["split"] == ("heldout" if day is not None and day > LAST_TRAIN_DAY else "train")
        assert (day is None) == (row["timestamp_origin"] == "none")


def test_every_check_passes(sample_build: Path) -> None:
    checks = verify(str(sample_build))
    assert len(checks) > 1
    assert [check for check in checks if not check.ok] == []


def test_copies_count_documents_and_the_duplicates_removed_for_them(found: Found) -> None:
    copies = Counter(row["duplicate_of"] for row in found.ledger if row["duplicate_of"] and row["start"] is None)
    assert copies.total() == sum(
        row["removed"].get(stage, {}).get(f"{stage}_duplicate", 0)
        for row in ROWS.values()
        for stage in ("exact", "near")
    )
    assert {row["id"]: row["num_copies"] for row in found.documents} == {
        row["id"]: 1 + copies.pop(row["id"], 0) for row in found.documents
    }
    assert not copies


def test_documents_are_in_digest_order_within_each_split_of_a_source(found: Found) -> None:
    for documents, _ in found.by_source.values():
        for split in ("train", "heldout"):
            mine = [row for row in documents if row["split"] == split]
            assert [row["id"] for row in mine] == [row["id"] for row in in_stream_order(mine)]


def test_folder_names_give_dataset_and_source_of_each_document(sample_build: Path) -> None:
    table = ds.dataset(sample_build / "documents", partitioning="hive").to_table(columns=["id", "source", "locator"])
    for row in table.to_pylist():
        assert row["id"] == document_id(row["source"], row["locator"])


def test_tokenizer_gives_the_same_ids_as_its_peer_on_every_document(
    sample_build: Path, found: Found, peer: tokenizers.Tokenizer
) -> None:
    ours = UnigramTokenizer.load(sample_build / "tokenizer")
    texts = [row["text"] for row in found.documents]
    ids = ours.encode_array(pa.array(texts, pa.large_string())).to_pylist()
    assert peer.get_vocab_size() == ours.vocab_size == 4096
    assert peer.token_to_id(END_OF_TEXT) == ours.eot_id
    assert ids == [ids_of(peer, row) for row in found.documents]
    assert [ours.decode(one).decode() for one in ids] == texts


def test_token_shards_are_the_training_documents_in_digest_order(
    sample_build: Path, found: Found, peer: tokenizers.Tokenizer
) -> None:
    documents = in_stream_order(found.train)
    eot = peer.token_to_id(END_OF_TEXT)
    assert eot is not None
    stream = [number for row in documents for number in [*ids_of(peer, row), eot]]
    shards = [
        pa.ipc.open_file(path).read_all() for path in sorted((sample_build / "tokens/split=train").rglob("*.arrow"))
    ]
    shape = (-1, SEQUENCE_LENGTH)
    sequences = np.concatenate([np.array(shard["ids"].combine_chunks().flatten()).reshape(shape) for shard in shards])
    counts = {stage["stage"]: stage["counts"] for stage in manifest_of(sample_build)["stages"]}["tokens"]
    assert sequences.dtype == np.uint16
    assert len(sequences) == counts["sequences"] == len(stream) // SEQUENCE_LENGTH
    assert counts["stream_tokens"] == len(stream)
    assert counts["tokens_left_over"] == len(stream) - sequences.size < SEQUENCE_LENGTH
    assert sequences.ravel().tolist() == stream[: sequences.size]
    text = "".join(row["text"] + END_OF_TEXT for row in documents).encode()
    decoded = UnigramTokenizer.load(sample_build / "tokenizer").decode(sequences.ravel())
    assert decoded == text[: len(decoded)]
    tail = UnigramTokenizer.load(sample_build / "tokenizer").decode(stream[sequences.size :])
    assert decoded + tail == text


def test_held_out_shards_are_the_held_out_documents_of_each_source(
    sample_build: Path, found: Found, peer: tokenizers.Tokenizer
) -> None:
    counts = {stage["stage"]: stage["counts"] for stage in manifest_of(sample_build)["stages"]}["tokens"]
    eot = peer.token_to_id(END_OF_TEXT)
    assert eot is not None
    expected = []
    for (dataset, source), (documents, _) in sorted(found.by_source.items()):
        heldout = in_stream_order([row for row in documents if row["split"] == "heldout"])
        if not heldout:
            continue
        stream = [number for row in heldout for number in [*ids_of(peer, row), eot]]
        num_sequences = -(-len(stream) // SEQUENCE_LENGTH)
        store = TokenStore.open(heldout_tokens(Layout(str(sample_build)), dataset, source))
        ids = store.batch(range(len(store))).ravel().tolist()
        assert ids == stream + [eot] * (num_sequences * SEQUENCE_LENGTH - len(stream))
        assert store.num_tokens == sum(map(store.length_of, range(len(store)))) == len(stream)
        row = {"dataset": dataset, "source": source, "stream_tokens": len(stream), "sequences": num_sequences}
        expected.append(row)
    assert counts["heldout"] == expected
    assert len(expected) == 8


def test_table_1_counts_the_training_documents_on_disk(
    sample_build: Path, found: Found, peer: tokenizers.Tokenizer
) -> None:
    table = json.loads((sample_build / "reports" / "table1.json").read_text())
    rows = {(row["group"], row["values"]["name"]): row["values"] for row in table["rows"] if row["kind"] == "row"}
    totals = {row["values"]["name"]: row["values"] for row in table["rows"] if row["kind"] == "total"}
    expected: dict[tuple[str, str], tuple[int, int, int]] = {}
    for key, (documents, _) in found.by_source.items():
        train = [row for row in documents if row["split"] == "train"]
        num_chars = sum(len(row["text"]) for row in train)
        expected[key] = (len(train), num_chars, sum(len(ids_of(peer, row)) for row in train))
    sums = {"TOTAL": list(ROWS), "FinPile": [key for key in ROWS if key[0] == "FinPile"]}
    sums["PUBLIC"] = [key for key in ROWS if key[0] != "FinPile"]
    names = ("num_docs", "num_chars", "num_tokens")
    assert {key: tuple(row[name] for name in names) for key, row in rows.items()} == expected
    assert {key: tuple(row[name] for name in names) for key, row in totals.items()} == {
        name: tuple(map(sum, zip(*(expected[key] for key in keys), strict=True))) for name, keys in sums.items()
    }


def test_table_2_counts_each_year_and_adds_up_to_table_1(
    sample_build: Path, found: Found, peer: tokenizers.Tokenizer
) -> None:
    table = json.loads((sample_build / "reports" / "table2.json").read_text())
    expected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in found.train:
        if row["dataset"] == "FinPile":
            day = day_of(row)
            expected[str(day.year) if day else "undated"][f"FinPile/{row['source']}"] += len(ids_of(peer, row))
    shown = {row["values"]["year"].split(" ")[0]: row["values"] for row in table["rows"] if row["kind"] == "row"}
    assert len(shown) == len(expected)
    for year, counts in expected.items():
        values = shown.get(year) or next(row for name, row in shown.items() if not name[0].isdigit())
        assert {name: values[name] for name in counts} == counts
        assert values["total"] == counts.total()


def manifest_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return found


def test_manifest_names_every_published_file_with_its_checksum(sample_build: Path) -> None:
    recorded = {file["path"]: file for stage in manifest_of(sample_build)["stages"] for file in stage["files"]}
    folders = ("inputs", "documents", "removed", "tokenizer", "tokens", "reports")
    paths = [path for folder in folders for path in (sample_build / folder).rglob("*") if path.is_file()]
    assert {path.relative_to(sample_build).as_posix() for path in paths} == set(recorded)
    for path in paths:
        record, data = recorded[path.relative_to(sample_build).as_posix()], path.read_bytes()
        assert record["size_bytes"] == len(data)
        assert record["checksum"] == hashlib.sha256(data).hexdigest()


def test_table_on_the_terminal_is_that_of_the_tree(sample_build: Path) -> None:
    from finpile.report.summary import source_rows

    for row in source_rows(manifest_of(sample_build)):
        expected = ROWS[row["dataset"], row["source"]]
        removed = {stage: sum(reasons.values()) for stage, reasons in expected["removed"].items()}
        assert row["read"] == expected["read"]
        assert (row["unreadable"], row["cleaned_out"]) == (removed.get("ingest", 0), removed.get("clean", 0))
        assert (row["exact"], row["near"]) == (removed.get("exact", 0), removed.get("near", 0))
        assert (row["train"], row["held_out"]) == (expected["kept_train"], expected["kept_heldout"])
        assert +Counter(row["reasons"]) == sum((Counter(some) for some in expected["removed"].values()), Counter())


def test_page_shows_the_curve_of_the_near_setting_and_the_stage_counts(sample_build: Path) -> None:
    manifest = manifest_of(sample_build)
    near = manifest["config"]["dedup"]["near"]
    (counts,) = (stage["counts"] for stage in manifest["stages"] if stage["stage"] == "near")
    page = (sample_build / "reports" / "index.html").read_text(encoding="utf-8")
    for jaccard in (0.5, 0.6, 0.7, 0.8, 0.9):
        assert f"{jaccard}" in page
        assert f"{1 - (1 - jaccard ** near['rows']) ** near['bands']:.4f}" in page
    assert counts["candidate_pairs"] > 0
    assert f"Candidate pairs: {counts['candidate_pairs']:,}; compared: {counts['compared_pairs']:,}" in page


def test_output_does_not_depend_on_its_file_system(
    small_build: Path, snapshot: Callable[[Path], dict[str, bytes]]
) -> None:
    folder = f"memory://{uuid.uuid4().hex}/out"
    build(load_config(small_build / "corpus.yaml"), folder, Engine(), tables=True)
    assert [check for check in verify(folder) if not check.ok] == []
    memory = fsspec.filesystem("memory")
    root = folder.removeprefix("memory:/")
    paths = [path for path in memory.find(root) if not path.startswith((f"{root}/.work/", f"{root}/manifest.json"))]
    assert_same({path.removeprefix(f"{root}/"): memory.cat(path) for path in paths}, snapshot(small_build / "out"))
