"""`finpile plan`: laws of the model, and its jobs and bytes beside those of builds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus.ingest import find_inputs
from finpile_pipelines.corpus.ingest import plan as plan_tasks
from finpile_pipelines.exchange.packed import split_by_partition
from finpile_pipelines.exchange.segments import Segments
from finpile_pipelines.plan.exchanges import Exchange, filled
from finpile_pipelines.plan.inputs import SourceInput, measure_inputs, sample_inputs, scaled
from finpile_pipelines.plan.jobs import num_jobs
from finpile_pipelines.plan.limits import limits
from finpile_pipelines.plan.model import Plan, StagePlan, plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.plan.token_counts import TokenCounts, count_samples
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import SMALL_BYTES

from finpile.config import CleanConfig, CorpusConfig, SourceConfig, TemplatesConfig, load_config
from finpile.config.mixture import WeightConfig
from finpile.config.rows import RowsConfig
from finpile.errors import RunError
from finpile.sources.readers.finding import InputFile, list_inputs
from finpile.storage.sizes import num_partitions

RATES = load_rates()
_EVERYTHING = {
    "dedup": {"near": "fast", "substring": {"min_length": 60}},
    "heldout": {"after": date(2020, 1, 1), "undated": "train", "overlap": {}},
    "mixture": {"News": 1.5},
}


def _inputs(config: CorpusConfig) -> tuple[SourceInput, ...]:
    return measure_inputs(config, [list_inputs(source, config.root) for source in config.sources], RATES)


def _grouped(config: CorpusConfig, *labels: str) -> CorpusConfig:
    """The corpus with templates, for which each of these rows is a group; without labels, every row."""
    groups = {source.label: "source" for source in config.sources if not labels or source.label in labels}
    sources = (replace(source, template_group=groups.get(source.label)) for source in config.sources)
    return replace(config, sources=tuple(sources), dedup=replace(config.dedup, templates=TemplatesConfig()))


@pytest.fixture
def sample(sample_config: Path) -> CorpusConfig:
    return load_config(sample_config)


def _plan(config: CorpusConfig, size: float, workers: int) -> Plan:
    return plan_build(config, scaled(_inputs(config), size), workers, RATES)


def test_more_workers_take_no_more_time_and_the_same_work(sample: CorpusConfig) -> None:
    plans = [_plan(sample, 1e12, workers) for workers in (1, 2, 16, 64, 1000)]
    for fewer, more in pairwise(plans):
        assert more.seconds < fewer.seconds
        for one, other in zip(fewer.stages, more.stages, strict=True):
            assert other.seconds <= one.seconds
            started = other.start_cpu_seconds - one.start_cpu_seconds
            assert other.cpu_seconds - one.cpu_seconds == pytest.approx(started)
            assert fewer.workers == 1 or started == 0, "one worker is the process of the command"


def test_the_time_is_that_of_the_start_and_all_stages(sample: CorpusConfig) -> None:
    plan = _plan(sample, 1e9, 2)
    assert plan.seconds == pytest.approx(plan.start_seconds + sum(stage.seconds for stage in plan.stages))
    assert plan.disk_bytes >= sum(stage.disk_bytes for stage in plan.stages)
    delayed = plan_build(sample, scaled(_inputs(sample), 1e9), 2, RATES, job_seconds=60)
    assert delayed.seconds - plan.seconds == pytest.approx(60 * sum(stage.jobs for stage in plan.stages))


def test_more_text_takes_more_of_everything(sample: CorpusConfig) -> None:
    names = ("cpu_seconds", "seconds", "memory_bytes", "shuffled_bytes", "disk_bytes")
    for smaller, larger in pairwise(_plan(sample, size, 8) for size in (1e7, 1e8, 1e9, 1e11, 1e13)):
        assert larger.text_bytes > smaller.text_bytes
        assert larger.shards >= smaller.shards
        for one, other in zip(smaller.stages, larger.stages, strict=True):
            # Above the sample of the tokenizer, its figures are equal but for rounding.
            assert all(getattr(other, name) >= getattr(one, name) * (1 - 1e-9) for name in names)
            assert (other.cpu_seconds > one.cpu_seconds) == (one.cpu_seconds > 0), one.stage


def test_a_tokenizer_of_a_sample_takes_bounded_memory(sample: CorpusConfig) -> None:
    def tokenizer(sample_size: str, size: float) -> StagePlan:
        settings = replace(sample.tokenizer, sample=sample_size)
        stages = _plan(replace(sample, tokenizer=settings), size, 8).stages
        return next(stage for stage in stages if stage.stage == "tokenizer")

    assert tokenizer("10 GB", 1e12).memory_bytes == pytest.approx(tokenizer("10 GB", 1e11).memory_bytes)
    assert tokenizer("all", 1e12).memory_bytes > 5 * tokenizer("all", 1e11).memory_bytes
    assert tokenizer("10 GB", 1e12).cpu_seconds < 0.05 * tokenizer("all", 1e12).cpu_seconds


def test_a_stage_ends_no_earlier_than_its_longest_task(sample: CorpusConfig) -> None:
    source = replace(_inputs(sample)[0], largest_share=1.0)
    alone, many = (plan_build(sample, [source], workers, RATES) for workers in (1, 1000))
    ingest = [next(stage for stage in plan.stages if stage.stage == "ingest") for plan in (alone, many)]
    assert ingest[0].seconds == pytest.approx(ingest[1].seconds), "one file is read by one task"


def test_tasks_of_ingest_are_those_of_a_build(sample: CorpusConfig) -> None:
    planned = next(stage for stage in plan_build(sample, _inputs(sample), 1, RATES).stages if stage.stage == "ingest")
    assert planned.tasks == len(plan_tasks(sample, find_inputs(sample)))


def test_a_dump_with_an_index_is_several_tasks(tmp_path: Path) -> None:
    dump = tmp_path / "x-pages-articles-multistream.xml.bz2"
    source = SourceConfig(name="Wikipedia", dataset="Wikipedia", format="wikipedia", paths=(dump.name,))
    config = CorpusConfig(name="dump", root=str(tmp_path), sources=(source,))
    with dump.open("wb") as file:
        file.truncate(160 << 20)
    [whole] = _inputs(config)
    assert (whole.num_files, whole.largest_share) == (1, 1.0)
    (tmp_path / "x-pages-articles-multistream-index.txt.bz2").write_bytes(b"")
    [ranges] = _inputs(config)
    assert (ranges.num_files, ranges.largest_share) == (16, pytest.approx(1 / 16))
    assert replace(ranges, num_files=1, largest_share=1.0) == whole
    tasks = [plan_build(config, [one], 1, RATES).stages[0].tasks for one in (whole, ranges)]
    assert tasks == [1, 16]


def test_the_stages_are_those_of_a_build_and_disabled_ones_take_nothing(
    sample: CorpusConfig, sample_build: Path
) -> None:
    built = json.loads((sample_build / "manifest.json").read_text())["stages"]
    plan = _plan(sample, 1e9, 1)
    assert [stage.stage for stage in plan.stages] == [stage["stage"] for stage in built]
    for stage, record in zip(plan.stages, built, strict=True):
        if stage.stage == "reports" or not record["counts"].get("asked", True):
            assert {value for name, value in asdict(stage).items() if name != "stage"} == {0}
        else:
            assert (stage.jobs == 0) == (stage.stage == "clean"), "the job of `ingest` also cleans"
            assert stage.cpu_seconds > 0


def test_documents_text_and_tokens_of_the_sample_are_those_of_its_build(
    sample: CorpusConfig, sample_build: Path
) -> None:
    """All of it is read as a sample; of its text, duplicates are an eighth."""
    built = {row["stage"]: row for row in json.loads((sample_build / "manifest.json").read_text())["stages"]}
    files = [list_inputs(source, sample.root) for source in sample.sources]
    samples = sample_inputs(sample, files)
    inputs = measure_inputs(sample, files, RATES, samples)
    plan = plan_build(sample, inputs, 1, RATES, counts=count_samples(sample.tokenizer, inputs, samples))
    documents = sum(row["documents"] for row in built["ingest"]["counts"]["sources"])
    assert plan.documents == pytest.approx(documents, rel=0.02)
    text = sum(row["text_bytes"] for row in built["clean"]["counts"]["sources"])
    assert plan.text_bytes == pytest.approx(text, rel=0.05)
    groups = [group for part in built["tokens"]["counts"]["statistics"] for group in part["groups"]]
    assert plan.tokens == pytest.approx(sum(one["num_tokens"] + one["num_docs"] for one in groups), rel=0.15)
    assert plan.shards == len(sample.sources), "each is smaller than a shard"


@pytest.mark.parametrize(
    ("changes", "until"),
    [
        ({**_EVERYTHING, "tokenizer": {"vocab_size": 400}}, "reports"),
        pytest.param({"tokenizer": {"vocab_size": 400, "mode": "refit"}}, "tokenizer", marks=pytest.mark.slow),
        pytest.param({"tokenizer": {"vocab_size": 400, "mode": "global"}}, "tokenizer", marks=pytest.mark.slow),
    ],
)
def test_jobs_are_those_of_a_build(
    changes: dict[str, Any],
    until: str,
    write_corpus: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, ran = load_config(write_corpus(tmp_path, **changes)), Counter[str]()
    config = _grouped(config) if "dedup" in changes else config
    run = Engine.run

    def counted(engine: Engine, label: str, construct: Any) -> None:
        ran[label.partition(":")[0]] += 1
        run(engine, label, construct)

    monkeypatch.setattr(Engine, "run", counted)
    monkeypatch.setattr(Engine, "runs_jobs", True)
    build(config, str(tmp_path / "out"), Engine(), until=until)
    assert {stage: num_jobs(stage, config) for stage in ran} == ran
    planned = {stage.stage: stage.jobs for stage in plan_build(config, _inputs(config), 1, RATES).stages if stage.jobs}
    assert {name: jobs for name, jobs in planned.items() if name in ran or until == "reports"} == ran


def test_templates_are_counted_in_the_sources_that_have_groups(sample: CorpusConfig) -> None:
    assert "templates" not in {stage.stage for stage in _plan(sample, 1e9, 4).stages}
    inputs, stages = _inputs(sample), {}
    for labels in (("News",), ("News", "Press"), ()):
        config = _grouped(sample, *labels)
        plan = plan_build(config, _inputs(config), 4, RATES)
        [stages[labels]] = [stage for stage in plan.stages if stage.stage == "templates"]
        read = sum(source.clean_bytes for source in inputs if not labels or source.source in labels)
        rate = RATES.stage("templates")
        assert stages[labels].shuffled_bytes == pytest.approx(rate.exchanged_per_text * read)
        assert stages[labels].cpu_seconds == pytest.approx(
            stages[labels].start_cpu_seconds + rate.cpu_seconds_per_mb * read / 1e6
        )
    assert stages[("News",)].cpu_seconds < stages[("News", "Press")].cpu_seconds < stages[()].cpu_seconds
    assert {stage.jobs for stage in stages.values()} == {1}


def test_copies_multiply_tokens_their_bytes_and_their_shards(sample: CorpusConfig) -> None:
    def planned(mixture: Any) -> Plan:
        return _plan(replace(sample, mixture=mixture), 1e12, 16)

    def of_tokens(plan: Plan) -> StagePlan:
        return next(stage for stage in plan.stages if stage.stage == "tokens")

    once, thrice = planned(None), planned({dataset: 3.0 for dataset, _ in sample.rows})
    assert planned({}).tokens == pytest.approx(once.tokens)
    assert thrice.tokens == pytest.approx(3 * once.tokens)
    assert thrice.token_shards == pytest.approx(3 * once.token_shards, rel=0.001)
    assert of_tokens(thrice).disk_bytes == pytest.approx(3 * of_tokens(once).disk_bytes)
    assert of_tokens(thrice).shuffled_bytes == pytest.approx(3 * of_tokens(once).shuffled_bytes)
    more = of_tokens(thrice).cpu_seconds - of_tokens(once).cpu_seconds
    assert more == pytest.approx(2 * 1e6 * RATES.tokens_cpu_seconds_per_mb_and_copy)
    unchanged = [stage for stage in thrice.stages if stage.stage != "tokens"]
    assert unchanged == [stage for stage in once.stages if stage.stage != "tokens"], "documents are as they were"


def test_fractions_and_shares_are_of_the_text_of_their_rows_and_are_counted_first(sample: CorpusConfig) -> None:
    whole = _plan(sample, 1e12, 16)
    news = sum(source.clean_bytes for source in whole.inputs if source.source == "News") / whole.text_bytes
    half = _plan(replace(sample, mixture={"News": 0.5}), 1e12, 16)
    assert half.tokens == pytest.approx(whole.tokens * (1 - news / 2))
    share = _plan(replace(sample, mixture={"News": WeightConfig(share=0.5)}), 1e12, 16)
    assert share.tokens == pytest.approx(whole.tokens * (1 - news) * 2)
    counted = [stage.shuffled_bytes for stage in half.stages if stage.stage == "tokens"]
    more = RATES.tokens_exchanged_per_text_counted * whole.text_bytes
    [before] = [stage.shuffled_bytes for stage in whole.stages if stage.stage == "tokens"]
    assert counted == [pytest.approx(before * (1 - news / 2) + more)]


def test_a_share_that_no_text_can_have_is_an_error(sample: CorpusConfig) -> None:
    tiny = replace(sample, mixture={"C4/C4": WeightConfig(share=0.999999)})
    with pytest.raises(RunError, match="at most 400"):
        plan_build(tiny, _inputs(tiny), 1, RATES)


def test_rows_from_records_are_domains_of_their_own(sample: CorpusConfig) -> None:
    rows = RowsConfig(field="meta.set", allow=("A", "B", "C"))
    config = replace(sample, sources=(replace(sample.sources[1], name=rows),), mixture={"A": 4.0})
    plan = plan_build(config, scaled(_inputs(config), 3e6), 1, RATES)
    assert [stage.tasks for stage in plan.stages if stage.stage == "tokenizer"] == [3 * int(config.tokenizer.chunks)]
    once = 3e6 * RATES.tokens_of_byte(config.tokenizer.vocab_size) + plan.documents
    assert plan.tokens == pytest.approx(2 * once), "a third of the text four times"


def test_tokens_are_those_of_the_vocabulary_and_an_end_for_each_document(sample: CorpusConfig) -> None:
    def tokens(vocab_size: int, documents: float = 0.0) -> float:
        config = replace(sample, tokenizer=replace(sample.tokenizer, vocab_size=vocab_size))
        inputs = [replace(source, documents=documents) for source in scaled(_inputs(config), 1e9)]
        return plan_build(config, inputs, 1, RATES).tokens

    sizes = (300, 512, 700, 4_096, 65_536, 131_072, 250_000)
    found = [tokens(size) for size in sizes]
    assert found == sorted(found, reverse=True)
    assert found[0] == found[1] == pytest.approx(1e9 * RATES.tokens_per_byte["512"])
    assert found[4] == found[5] == found[6], "beyond the sizes that are measured"
    assert found[1] > found[2] > found[3]
    assert tokens(4_096, 1e6) - found[3] == pytest.approx(1e6 * len(sample.sources))


def test_text_that_is_not_trained_on_has_more_tokens() -> None:
    counts = TokenCounts(per_byte=0.3, trained_per_byte=0.2, trained_bytes=1e6)
    assert counts.tokens(1e6) == pytest.approx(0.2e6), "all of it was trained on"
    assert counts.tokens(0.5e6) == pytest.approx(0.1e6)
    assert counts.tokens(1e12) == pytest.approx(0.3e12, rel=1e-6)
    sizes = [counts.tokens(size) / size for size in (1e5, 1e6, 2e6, 1e7, 1e9)]
    assert sizes == sorted(sizes)


def test_a_small_corpus_starts_no_workers(sample: CorpusConfig) -> None:
    def start(size: float, workers: int) -> dict[str, float]:
        return {stage.stage: stage.start_cpu_seconds for stage in _plan(sample, size, workers).stages}

    below, above = (start(SMALL_BYTES * factor, 2) for factor in (0.999, 1.001))
    for name in (name for name, seconds in below.items() if seconds):
        assert above[name] - below[name] == pytest.approx(RATES.stage(name).workers_cpu_seconds)
    assert start(1e7, 1)["ingest"] < start(1e7, 2)["ingest"], "nor does one worker"


def test_hash_values_cost_by_text_and_bands_by_document(sample: CorpusConfig) -> None:
    def near(rows: int, bands: int, documents: float) -> float:
        config = replace(sample, dedup=replace(sample.dedup, near=replace(sample.dedup.near, rows=rows, bands=bands)))
        inputs = [replace(source, documents=documents) for source in scaled(_inputs(config), 1e9)]
        return next(one.cpu_seconds for one in plan_build(config, inputs, 2, RATES).stages if one.stage == "near")

    more_hashes = near(20, 48, 0) - near(10, 48, 0)
    assert more_hashes == pytest.approx(1e3 * 480 * RATES.near_cpu_seconds_per_mb_and_hash)
    assert near(20, 48, 1e6) - near(10, 48, 1e6) == pytest.approx(more_hashes)
    more_documents = near(20, 48, 1e6) - near(20, 48, 0)
    expected = 1e6 * len(sample.sources) * 48 * RATES.near_cpu_seconds_per_document_and_band
    assert more_documents == pytest.approx(expected)


def test_rows_of_documents_cost_by_document_and_texts_by_byte(sample: CorpusConfig) -> None:
    """Ten times as many documents of the same text cost more in `exact` and `near`, and in no other stage."""
    few = scaled(_inputs(sample), 1e9)
    many = [replace(source, documents=10 * source.documents) for source in few]
    plans = [plan_build(sample, inputs, 2, RATES) for inputs in (few, many)]
    expected = {"exact": (True, True), "near": (True, True), "split": (True, True)}  # they fill more files
    for one, other in zip(plans[0].stages, plans[1].stages, strict=True):
        is_more = (other.shuffled_bytes > one.shuffled_bytes, other.cpu_seconds > one.cpu_seconds)
        assert is_more == expected.get(one.stage, (False, False)), one.stage
    [exact] = [stage for stage in plans[1].stages if stage.stage == "exact"]
    rows = plans[1].documents * RATES.exact_exchanged_per_document
    assert rows < exact.shuffled_bytes == pytest.approx(rows, rel=0.01)
    folded = replace(sample, dedup=replace(sample.dedup, exact_fold="whitespace"))
    [read] = [stage for stage in plan_build(folded, many, 2, RATES).stages if stage.stage == "exact"]
    assert read.cpu_seconds > exact.cpu_seconds


def test_splitting_grows_with_segments_of_documents_and_their_ranges_alone(sample: CorpusConfig) -> None:
    """From 1 GB to 1 PB: no segment, 256, and 2,048 of each shard at most."""
    rate = RATES.stage("split")
    per_mb = []
    for size in (1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15):
        (stage,) = (stage for stage in _plan(sample, size, 100).stages if stage.stage == "split")
        per_mb.append((stage.cpu_seconds - stage.start_cpu_seconds) / size * 1e6)
    bound = rate.cpu_seconds_per_mb + RATES.split_cpu_seconds_per_mb_of_ranges
    bound += RATES.split_cpu_seconds_per_segment * 1e6 / (64 << 10)
    assert per_mb[0] == pytest.approx(rate.cpu_seconds_per_mb, rel=0.25)
    assert per_mb[1] < per_mb[3] <= max(per_mb) <= bound * 1.2


@pytest.mark.parametrize(("partitions", "most", "rows"), [(40, 64, 500), (40, 64, 10), (900, 64, 500), (900, 64, 20)])
def test_the_bytes_of_an_exchange_are_those_of_its_segments(partitions: int, most: int, rows: int) -> None:
    schema = pa.schema([("key", pa.uint64()), ("document", pa.int32())])
    segments, draw, sent, count = Segments(schema, partitions, most), np.random.default_rng(3), 0, 0
    for _ in range(200):
        table = pa.table([draw.integers(0, 1 << 62, rows), draw.integers(0, 99, rows)], names=schema.names).cast(schema)
        split = split_by_partition(table, draw.integers(0, partitions, rows))
        encoded = [segment for _, segment in segments.encode(segments.rows(split), None)]
        count, sent = count + len(encoded), sent + sum(map(len, encoded))
    planned = Exchange(
        row_bytes=200 * rows * 12, rows=200 * rows, origins=200, partitions=partitions, most_segments=most
    )
    assert planned.segments == pytest.approx(count, rel=0.1)
    assert planned.sent_bytes == pytest.approx(sent + 20 * count, rel=0.05), "a directory has 20 bytes of a segment"


def test_exchanges_grow_with_segments_and_with_ranges_that_are_written_again(sample: CorpusConfig) -> None:
    def exact(size: float) -> StagePlan:
        return next(stage for stage in _plan(sample, size, 100).stages if stage.stage == "exact")

    small, large, huge = (exact(size) for size in (1e9, 1e12, 1e14))
    assert small.shuffled_bytes == small.scratch_bytes, "no range is written again"
    assert 1000 * small.shuffled_bytes < large.shuffled_bytes < 1200 * small.shuffled_bytes
    assert 2e5 * small.shuffled_bytes < huge.shuffled_bytes < 2.5e5 * small.shuffled_bytes
    assert huge.scratch_bytes < 0.6 * huge.shuffled_bytes, "each worker has one range on disk"


def test_filled_files_are_those_that_random_documents_fill() -> None:
    draw = np.random.default_rng(5)
    for files, documents in ((8, 3), (100, 50), (100, 400), (1000, 10)):
        found = [len(set(draw.integers(0, files, documents).tolist())) for _ in range(200)]
        assert filled(files, documents) == pytest.approx(sum(found) / len(found), rel=0.1)


@pytest.mark.parametrize(
    ("kind", "html", "expected"),
    [
        ("jsonl", "auto", "jsonl"),
        ("jsonl", "always", "warc"),
        ("text", "never", "jsonl"),
        ("warc", "never", "jsonl"),
        ("warc", "always", "warc"),
        ("edgar", "always", "edgar"),
    ],
)
def test_documents_are_cleaned_at_the_rate_of_what_the_corpus_file_says_they_are(
    kind: Any, html: Any, expected: str, sample: CorpusConfig
) -> None:
    source = SourceConfig(name="News", dataset="A", format=kind, paths=("*",), clean=CleanConfig(html=html))
    file = InputFile(url="news", locator="news", size_bytes=1_000_000, version="1")
    (found,) = measure_inputs(replace(sample, sources=(source,)), [[file]], RATES)
    assert found.clean_bytes == found.text_bytes * RATES.format(expected).clean_per_text
    (stage,) = (one for one in plan_build(sample, [found], 1, RATES).stages if one.stage == "clean")
    expected_seconds = found.text_bytes / 1e6 * RATES.format(expected).clean_cpu_seconds_per_mb
    assert stage.cpu_seconds - stage.start_cpu_seconds == pytest.approx(expected_seconds)


def test_limits_are_exceeded_from_the_size_at_which_they_are_reached(sample: CorpusConfig) -> None:
    inputs = _inputs(sample)
    found = limits(sample, inputs, 64, RATES)
    sizes = [limit.reached_at_text_bytes or float("inf") for limit in found]
    assert sizes == sorted(sizes)
    for limit in found:
        if limit.reached_at_text_bytes is not None:
            for factor, is_exceeded in ((0.9, False), (1.1, True)):
                text = scaled(inputs, factor * limit.reached_at_text_bytes)
                [same] = [one for one in limits(sample, text, 64, RATES) if one.name == limit.name]
                assert (same.value > same.bound) is is_exceeded, limit.name


def test_a_partition_has_the_rows_of_two_shards_at_most() -> None:
    for shards in (1, 2, 3, 4095, 4096, 4097, 32_768, 32_769, 10**6):
        partitions = num_partitions(shards)
        assert partitions >= 2
        assert partitions <= max(2, shards)
        assert shards <= 2 * partitions
        for unit in (4, 8):
            assert 2 <= num_partitions(shards, unit) <= partitions
            assert shards <= 2 * unit * num_partitions(shards, unit)
