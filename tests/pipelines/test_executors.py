"""One plan, four executors: over shards, in memory, over elements and incremental give the same decisions.

All algorithms of this package are enabled, and one of another package, which is one module (`packages/simhash_stage`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.corpus.ingest import find_inputs
from finpile_pipelines.executors import shards
from finpile_pipelines.plan.inputs import measure_inputs
from finpile_pipelines.plan.model import plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.stage import Sizes
from finpile_pipelines.transforms import Deduplicate

from finpile import storage
from finpile.config import CorpusConfig, load_config
from finpile.dedup import Deduplicated, deduplicate, in_memory
from finpile.dedup.near.clusters import PAIR_SCHEMA
from finpile.dedup.plan import REMOVAL_SCHEMA, Answer, Exchange, Groups, Part, Plan, Sent, Settings, plan_of
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.plugins import stages
from tests.support.made_days import CORPUS, documents_of, failed, ledger_of, make_days, write_batch
from tests.support.work_folders import clean_documents

PACKAGES = Path(__file__).parent / "packages"
ENABLED = ("exact", "templates", "near", "simhash", "substring", "overlap", "contamination")
_KEPT = ["id", "text", "num_copies"]
#: Transforms name the copy that they keep themselves, also if a later one removes it.
_LEDGER = [name for name in LEDGER_SCHEMA.names if name not in ("duplicate_of", "duplicate_offset", "detail")]


pytestmark = pytest.mark.usefixtures("stage_packages")  # that with SimHash


@dataclass(frozen=True)
class Corpus:
    folder: Path
    config: CorpusConfig

    def build(self, name: str, **options: Any) -> Path:
        build(self.config, str(self.folder / name), Engine(), until="split", **options)
        return self.folder / name


def made_documents(item: str) -> list[tuple[str, dict[str, Any]]]:
    """Documents of words of their own, of which each algorithm after `near` removes some text."""
    draw = random.Random(9)

    def passage(num_words: int) -> str:
        words = ("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(num_words))
        return " ".join(words).capitalize() + "."

    def dated(source: str, day: int, *parts: str) -> tuple[str, dict[str, Any]]:
        return source, {"text": "\n".join(parts), "timestamp": f"2021-01-{day:02d}T09:00:00Z"}

    shared, quoted, changed = passage(40), passage(40), [passage(10) for _ in range(12)]
    numbered = [f"{line} {number}." for number, line in enumerate(changed)]
    return [
        dated("News", 1, *numbered),
        dated("News", 2, *numbered[:-1], f"{changed[-1]} 1000."),  # `near` keeps texts with other numbers
        dated("News", 2, passage(60), shared),
        dated("Web", 3, shared, passage(60)),
        dated("News", 3, passage(60), quoted),
        dated("Mail", 9, quoted, passage(60)),  # of another dataset, and held out
        dated("News", 4, passage(60), item),
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Documents of twelve days."""
    item = " ".join(f"word{number}" for number in range(30)).capitalize() + "."
    (tmp_path / "items.jsonl").write_text(f'{{"text": "{item}"}}\n')
    evaluation = {"name": "Items", "paths": ["items.jsonl"], "fields": ["text"]}
    dedup = {**CORPUS["dedup"], "order": "time", "simhash": {"max_bits": 4}}
    corpus = {**CORPUS, "dedup": dedup, "contamination": {"sets": [evaluation]}}
    path = tmp_path / "corpus.yaml"
    path.write_text(yaml.safe_dump(corpus, sort_keys=False))
    write_batch(tmp_path, "made", made_documents(item))
    write_batch(tmp_path, "all", *make_days(5, 12))
    return Corpus(tmp_path, load_config(path))


def decided(out: Path) -> list[Mapping[str, Any]]:
    """The ledger rows of the dedup stages."""
    return [row for row in ledger_of(out) if row["stage"] in stages.dedup_stages()]


def rows_of(rows: list[Mapping[str, Any]], names: list[str]) -> list[list[Any]]:
    return sorted(([row[name] for name in names] for row in rows), key=repr)


def test_all_executors_decide_alike(corpus: Corpus) -> None:
    out = corpus.build("shards")
    kept, removed = documents_of(out).to_pylist(), decided(out)
    assert failed(out) == []
    assert {row["stage"] for row in removed} == set(ENABLED)

    whole = in_memory_of(corpus, out)
    assert rows_of(whole.kept.to_pylist(), _KEPT) == rows_of(kept, _KEPT)
    assert rows_of(whole.removed.to_pylist(), LEDGER_SCHEMA.names) == rows_of(removed, LEDGER_SCHEMA.names)

    batches = [
        batch.slice(first, 5)
        for batch in clean_documents(out).combine_chunks().to_batches()
        for first in range(0, 60, 5)
    ]
    found = over_elements(corpus, [batch for batch in batches if batch.num_rows])
    assert rows_of(found["kept"], _KEPT) == rows_of(kept, _KEPT)
    assert rows_of(found["removed"], _LEDGER) == rows_of(removed, _LEDGER)


def in_memory_of(corpus: Corpus, out: Path) -> Deduplicated:
    config = corpus.config
    return deduplicate(
        clean_documents(out),
        near=config.dedup.near,
        substring=config.dedup.substring,
        templates=config.dedup.templates,
        template_group="source",
        heldout=config.heldout,
        contamination=config.contamination,
        added=config.dedup.added,
        scope="dataset",
        order="time",
        root=config.root,
    )


def over_elements(corpus: Corpus, batches: list[pa.RecordBatch]) -> dict[str, list[dict[str, Any]]]:
    random.Random(3).shuffle(batches)
    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        documents = pipeline | beam.Create(batches).with_output_types(pa.RecordBatch)
        removed = []
        for name in ENABLED:
            documents, more = documents | name >> Deduplicate(corpus.config, name, partitions=3)
            removed.append(more)
        _ = documents | "Kept" >> beam.Map(write_to(corpus.folder / "kept"))
        _ = removed | beam.Flatten() | "Removed" >> beam.Map(write_to(corpus.folder / "removed"))
    return {
        name: [row for path in (corpus.folder / name).iterdir() for row in pq.ParquetFile(path).read().to_pylist()]
        for name in ("kept", "removed")
    }


def write_to(folder: Path) -> Callable[[pa.RecordBatch], None]:
    """Writes batches to files with names of their own."""
    target = str(folder)

    def write(batch: pa.RecordBatch) -> None:
        name = f"{abs(hash(repr(batch.to_pylist())))}.parquet"
        pq.write_table(pa.Table.from_batches([batch]), Path(target, name))

    folder.mkdir(parents=True)
    return write


def test_appended_documents_are_decided_as_by_a_build(corpus: Corpus) -> None:
    expected = corpus.build("whole")
    (corpus.folder / "News-all.jsonl").rename(corpus.folder / "later")
    out = corpus.build("out")
    assert not documents_of(out).equals(documents_of(expected))
    (corpus.folder / "later").rename(corpus.folder / "News-all.jsonl")
    append(corpus.config, str(out), Engine())
    assert documents_of(out).equals(documents_of(expected))
    assert ledger_of(out) == ledger_of(expected)
    assert failed(out) == []
    counts = {stage["stage"]: stage["counts"] for stage in storage.read_json(str(out / "manifest.json"))["stages"]}
    assert "decided" in counts["simhash"], "it has an index, and was not run on all documents"


def test_shards_and_memory_of_tasks_do_not_matter(corpus: Corpus, snapshot: Callable[[Path], dict[str, bytes]]) -> None:
    expected = snapshot(corpus.build("one"))
    sizes = Sizes(shard_bytes=2000, pairs_in_memory=0, shards_in_memory=0)
    assert snapshot(corpus.build("many", sizes=sizes)) == expected


def test_the_plan_of_a_build_has_an_algorithm_of_another_package(corpus: Corpus) -> None:
    rates = load_rates()
    inputs = measure_inputs(corpus.config, find_inputs(corpus.config), rates)
    plan = {stage.stage: stage for stage in plan_build(corpus.config, inputs, 1, rates).stages}
    assert plan["simhash"].jobs == 1
    assert plan["simhash"].cpu_seconds == pytest.approx(
        plan["near"].cpu_seconds, rel=0.01
    )  # that of near has its hashes


def test_the_guide_has_the_size_of_the_package() -> None:
    guide = (PACKAGES.parents[2] / "docs" / "guide-python.md").read_text()
    for name in ("simhash_stage.py", "simhash_stage-1.0.dist-info/entry_points.txt"):
        num_lines = len((PACKAGES / name).read_text().splitlines())
        assert re.search(rf"^{re.escape(name)} +{num_lines} lines", guide, re.MULTILINE), f"{name}: {num_lines}"


def test_executors_name_no_algorithm() -> None:
    names = {f'"{algorithm.name}"' for algorithm in stages.algorithms()}
    modules = [*Path(shards.__file__).parent.glob("*.py"), Path(in_memory.__file__)]
    assert len(modules) > 5
    assert {path.name: name for path in modules for name in names if name in path.read_text()} == {}


def test_tables_have_the_schemas_of_their_exchange(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all rows, replies and kept tables; parts send and receive nothing else."""
    seen: dict[tuple[str, str], int] = {}

    def is_of(name: str, kind: str, table: pa.Table, schema: pa.Schema) -> None:
        assert [(field.name, field.type) for field in table.schema] == [(field.name, field.type) for field in schema]
        seen[name, kind] = seen.get((name, kind), 0) + table.num_rows

    def checked(name: str, step: Exchange | Groups) -> Exchange | Groups:
        def answer(given: Callable[..., Answer], schema: pa.Schema) -> Callable[..., Answer]:
            def run(*tables: pa.Table) -> Answer:
                answered = given(*tables)
                is_of(name, "replies", answered.rows, schema)
                return answered

            return run

        if isinstance(step, Groups):

            def keys(part: Part) -> pa.Table:
                is_of(name, "sends", step.keys(part), step.sends)
                return step.keys(part)

            pairs, resolve = answer(step.pairs, PAIR_SCHEMA), answer(step.resolve, REMOVAL_SCHEMA)
            return replace(step, keys=keys, pairs=pairs, resolve=resolve)

        def rows(part: Part) -> Sent:
            sent = step.rows(part)
            is_of(name, "sends", sent.rows, step.sends)
            assert (sent.kept is None) == (step.keeps is None)
            if sent.kept is not None:
                is_of(name, "keeps", sent.kept, step.keeps)
            return sent

        return replace(step, rows=rows, answer=answer(step.answer, step.replies))

    def checked_plan(algorithm: stages.Algorithm, settings: Settings) -> Plan | None:
        found = plan_of(algorithm, settings)
        return found and replace(
            found,
            passes=tuple(
                replace(one, steps=tuple(checked(f"{algorithm.name}.{step.name}", step) for step in one.steps))
                for one in found.passes
            ),
        )

    monkeypatch.setattr(in_memory, "plan_of", checked_plan)
    in_memory_of(corpus, corpus.build("shards"))
    assert {name for name, _ in seen} == {
        "exact.digests",
        "templates.blocks",
        "templates.digests",
        "near.groups",
        "simhash.groups",
        "substring.minimizers",
        "substring.contexts",
        "substring.digests",
        "overlap.minimizers",
        "overlap.contexts",
        "overlap.near",
        "contamination.grams",
    }
    assert all(seen[name, "sends"] for name, _ in seen)
