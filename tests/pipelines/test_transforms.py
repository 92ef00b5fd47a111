"""Public transforms: the documents of a build, from a pipeline of one's own."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.transforms import (
    CleanDocuments,
    ExactDuplicates,
    NearDuplicates,
    Outputs,
    ReadDocuments,
    RepeatedSubstrings,
)

from finpile.config import NearConfig, SubstringConfig, load_config
from finpile.dedup import deduplicate
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import ConfigError
from tests.pipelines.test_executors import write_to

_KEPT = ["id", "text", "num_copies"]
_CUTTING = SubstringConfig(min_length=60, rounds=2)
_WORDS = ("shares", "bond", "yield", "oil", "gold", "rate", "bank", "court", "trade", "profit", "loss", "wheat", "port")


def rows_of(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    """The rows in an order of their own."""
    return sorted(table.select(names).to_pylist(), key=lambda row: repr(list(row.values())))


def read(folder: Path) -> pa.Table:
    return ds.dataset(folder).to_table()


def test_pipeline_of_transforms_keeps_the_documents_of_a_build(
    sample_build: Path, sample_config: Path, tmp_path: Path
) -> None:
    config = load_config(sample_config)
    dedup = config.dedup
    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        documents, *removed = pipeline | ReadDocuments(config, batch_bytes=50_000)
        steps: list[beam.PTransform] = [
            CleanDocuments(config),
            ExactDuplicates(dedup.scope, dedup.exact_fold, partitions=3),
            NearDuplicates(dedup.near, dedup.scope, partitions=3),
        ]
        if dedup.substring is not None:
            steps.append(RepeatedSubstrings(dedup.substring, dedup.scope, dedup.exact_fold, partitions=3))
        for step in steps:
            documents, more = documents | step
            removed.append(more)
        _ = documents | "Kept" >> beam.Map(write_to(tmp_path / "kept"))
        _ = removed | beam.Flatten() | "Removed" >> beam.Map(write_to(tmp_path / "removed"))
    built = ds.dataset(sample_build / "documents", partitioning="hive").to_table()
    assert rows_of(read(tmp_path / "kept"), _KEPT) == rows_of(built, _KEPT)
    ledger = ds.dataset(sample_build / "removed", partitioning="hive").to_table()
    names = ["id", "reason", "start", "end", "removed_text"]
    assert rows_of(read(tmp_path / "removed"), names) == rows_of(ledger, names)


def documents(seed: int = 3) -> pa.Table:
    """Documents of two datasets: copies, near copies, shared paragraphs, and documents that are one paragraph."""
    draw = random.Random(seed)

    def sentence(size: int) -> str:
        return " ".join(draw.choices(_WORDS, k=size)).capitalize() + "."

    shared = [sentence(25) for _ in range(3)]
    texts = [" ".join(sentence(12) for _ in range(5)) for _ in range(30)]
    texts += [texts[index] for index in range(0, 30, 3)]
    texts += [texts[index].replace("gold", "gold and", 1) + " Fund." for index in range(5, 15)]
    texts += [f"{sentence(9)}\n{draw.choice(shared)}\n{sentence(9)}\n{draw.choice(shared)}" for _ in range(12)]
    texts += shared
    draw.shuffle(texts)
    columns = {
        "id": [f"{draw.getrandbits(128):032x}" for _ in texts],
        "dataset": pa.array(draw.choices(["a", "b"], k=len(texts))),
        "text": pa.array(texts, pa.large_string()),
        "priority": pa.array(draw.choices([0, 1], k=len(texts)), pa.int32()),
        "num_copies": pa.array(draw.choices([1, 2], k=len(texts)), pa.int32()),
        "note": [f"note {index}" for index in range(len(texts))],
    }
    return pa.table(columns)


def all_steps(batches: beam.PCollection, scope: Any, partitions: int) -> Outputs:
    near = NearConfig.named("fast")
    batches, exact = batches | ExactDuplicates(scope, partitions=partitions)
    batches, near_duplicates = batches | NearDuplicates(near, scope, partitions=partitions)
    batches, cut = batches | RepeatedSubstrings(_CUTTING, scope, partitions=partitions)
    return Outputs(batches, (exact, near_duplicates, cut) | beam.Flatten())


@pytest.mark.parametrize(
    ("scope", "batch_rows", "partitions"),
    [
        ("dataset", 7, 3),
        *(pytest.param(*some, marks=pytest.mark.slow) for some in (("corpus", 7, 5), ("dataset", 100, 1))),
    ],
)
def test_transforms_remove_the_documents_that_deduplicate_removes(
    scope: Any, batch_rows: int, partitions: int, tmp_path: Path
) -> None:
    table = documents()
    order = list(range(table.num_rows))
    random.Random(batch_rows).shuffle(order)
    batches = table.take(pa.array(order)).combine_chunks().to_batches(max_chunksize=batch_rows)
    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        created = pipeline | beam.Create(batches).with_output_types(pa.RecordBatch)
        outputs = all_steps(created, scope, partitions)
        _ = outputs.kept | "Kept" >> beam.Map(write_to(tmp_path / "kept"))
        _ = outputs.removed | "Removed" >> beam.Map(write_to(tmp_path / "removed"))
    expected = deduplicate(table, near="fast", substring=_CUTTING, scope=scope)
    stages = set(expected.removed["stage"].to_pylist())
    assert stages == {"exact", "near", "substring"}
    kept, removed = read(tmp_path / "kept"), read(tmp_path / "removed")
    assert rows_of(kept, table.schema.names) == rows_of(expected.kept, table.schema.names)
    names = [name for name in LEDGER_SCHEMA.names if name not in ("duplicate_of", "duplicate_offset", "detail")]
    assert rows_of(removed, names) == rows_of(expected.removed, names)  # only `deduplicate` sees later removals


def test_views_pass_at_any_depth(tmp_path: Path) -> None:
    view = pa.string_view()
    columns = {
        "id": pa.array(["1", "2", "3"], view),
        "text": pa.array(["same", "same", "other"], view),
        "dataset": pa.array(["a", "a", "b"], pa.dictionary(pa.int32(), pa.string())).cast(
            pa.dictionary(pa.int32(), view)
        ),
        "tags": pa.array([["x"], [], [None, "a tag of more than 12 bytes"]], pa.list_(view)),
        "facts": pa.array([{"by": "A"}, None, {"by": None}], pa.struct([("by", view)])),
        "raw": pa.array([b"1", None, b""], pa.binary_view()),
    }
    table = pa.table(columns)
    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        created = pipeline | beam.Create(table.to_batches()).with_output_types(pa.RecordBatch)
        kept, _ = all_steps(created, "dataset", 2)
        _ = kept | beam.Map(write_to(tmp_path / "kept"))
    assert rows_of(read(tmp_path / "kept"), table.schema.names) == rows_of(deduplicate(table).kept, table.schema.names)
    assert read(tmp_path / "kept").num_rows == 2


def test_rows_without_some_columns_pass(tmp_path: Path) -> None:
    batch = pa.record_batch({"id": ["1", "2", "3"], "text": ["same", "same", "other"], "score": [0.5, 0.7, 0.9]})
    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        created = pipeline | beam.Create([batch]).with_output_types(pa.RecordBatch)
        _ = created | ExactDuplicates(partitions=2) | _Kept() | beam.Map(write_to(tmp_path / "kept"))
    assert rows_of(read(tmp_path / "kept"), ["id", "text", "score"]) == [
        {"id": "1", "text": "same", "score": 0.5},
        {"id": "3", "text": "other", "score": 0.9},
    ]


class _Kept(beam.PTransform):
    def expand(self, outputs: Outputs) -> beam.PCollection:
        return outputs[0]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (pa.record_batch({"text": ["x"]}), "a batch has no column `id`; it has text"),
        (pa.record_batch({"id": ["1"]}), "a batch has no column `text`; it has id"),
        (pa.record_batch({"id": ["1", "1"], "text": ["x", "y"]}), "two documents have the same id"),
        (pa.record_batch({"id": ["1", "2"], "text": ["one text"] * 2}), "apply ExactDuplicates before NearDuplicates"),
    ],
)
def test_unusable_batches_fail_the_pipeline(batch: pa.RecordBatch, message: str) -> None:
    with pytest.raises(Exception, match=message), beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        _ = pipeline | beam.Create([batch]).with_output_types(pa.RecordBatch) | NearDuplicates("fast", partitions=2)


def test_number_of_rounds_is_fixed() -> None:
    with pytest.raises(ConfigError, match="needs a number of rounds"):
        RepeatedSubstrings(SubstringConfig(rounds="fixpoint"))


QUIET = """
import logging

from finpile_pipelines.transforms import (
    CleanDocuments, ExactDuplicates, NearDuplicates, ReadDocuments, RepeatedSubstrings,
)

from finpile import load_config

import apache_beam as beam

assert not logging.root.handlers, "the log is the caller's to set up"
config = load_config("corpus.yaml")
with beam.Pipeline("FnApiRunner") as pipeline:
    documents, _ = pipeline | ReadDocuments(config)
    for transform in (CleanDocuments(config), ExactDuplicates(), NearDuplicates(), RepeatedSubstrings()):
        documents, _ = documents | transform
"""


def test_transforms_log_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Oil rose."}\n{"text": "Gold fell."}\n')
    (tmp_path / "corpus.yaml").write_text(
        "name: a\nsources: [{name: News, dataset: FinPile, format: jsonl, paths: a.jsonl}]\n"
    )
    done = subprocess.run([sys.executable, "-c", QUIET], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
