"""Reports from the counts of the other stages: the tables and the HTML page of a build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from finpile import storage
from finpile.config import NearConfig
from finpile.dedup import s_curve
from finpile.documents.document import label_of
from finpile.documents.split import HELDOUT, TRAIN
from finpile.errors import ConfigError
from finpile.output import stage_record
from finpile.output.build_state import BuildState, read_state, write_state
from finpile.output.layout import Layout
from finpile.output.lock import hold_to_write
from finpile.output.manifest import CHECKSUM, counts_by_stage, load_manifest, write_manifest
from finpile.output.stage_record import StageRecord, file_records
from finpile.plugins import stages
from finpile.report.dataset_card import write_card
from finpile.report.dates import date_statistics
from finpile.report.eval_sets import EvalSetFacts
from finpile.report.facts import fact_statistics
from finpile.report.files import write_reports
from finpile.report.html import BuildFacts
from finpile.report.licenses import license_statistics
from finpile.report.near import JACCARDS, near_table
from finpile.report.statistics import (
    CorpusStatistics,
    HeldoutStatistics,
    RemovalCount,
    SourceStatistics,
    SubSourceStatistics,
    YearStatistics,
    summed,
)
from finpile.report.summary import source_rows
from finpile.report.table import Table
from finpile.report.table3 import Comparison
from finpile.report.warnings import build_warnings
from finpile.version import __version__

_SOURCE = ("dataset", "source")
#: Counts of the documents of a source.
_COUNTS = {name: name for name in ("num_docs", "num_chars", "num_tokens", "num_bytes")}


def write_from_manifest(
    layout: Layout,
    manifest: Mapping[str, Any],
    comparison: Comparison | None = None,
    quality: Sequence[Table] = (),
) -> list[str]:
    """Writes `reports/` of the output folder from a manifest, with Table 3 if there is a `comparison`.

    `quality` are further tables, of tokenizers.

    Uses `name`, `config`, `finpile` (this version if the manifest is not written yet) and `stages` up to `tokens` of
    the manifest, of a build without tokens what `reports` counts, and no values that differ between two builds of the
    same input (times, memory, workers, packages): the same input gives the same reports. Returns the files.
    """
    config = manifest["config"]
    counts = counts_by_stage(manifest)
    counted = counts["tokens"] if "tokens" in counts else counts["reports"]
    parts = counted["statistics"]
    groups = [
        {"num_tokens": 0, **group, "dataset": part["dataset"], "source": part["source"]}
        for part in parts
        for group in part["groups"]
    ]
    removals = count_removals(counts["split"]["ledger"])
    read = {label_of(row): row["read"] for row in source_rows(manifest) if row["read"]}  # of a day, not all have some
    facts = BuildFacts(
        name=manifest["name"],
        num_read=sum(read.values()),
        read_by_source=read,
        num_heldout=sum(group["num_docs"] for group in groups if group["split"] == HELDOUT),
        heldout_after=config["heldout"]["after"] or "",
        comparison=comparison,
        quality=quality,
        near=_near(config["dedup"]["near"], counts.get("near", {})),
        evaluation=[EvalSetFacts(**counted) for counted in counts["contamination"].get("sets", ())],
        warnings=tuple(build_warnings(manifest)),
        charts=tuple(config["reports"]["charts"]),
        details=_details(counts, manifest.get("finpile", __version__)),
    )
    private = tuple(config["reports"]["private"])
    cleaned = [row for row in counts["clean"]["sources"] if label_of(row) in read]
    published = counts["split"]["documents"]
    statistics = corpus_statistics(groups, private, cleaned, counted.get("mixture"), published, read)
    statistics = replace(
        statistics,
        sub_sources=sub_source_statistics(parts),
        has_tokens="tokens" in counts,
        licenses=license_statistics(published),
    )
    return write_reports(layout.reports, statistics, removals, facts)


def corpus_statistics(
    groups: Iterable[Mapping[str, Any]],
    private: tuple[str, ...],
    cleaned: Sequence[Mapping[str, Any]] = (),
    mixture: Iterable[Mapping[str, Any]] | None = None,
    published: Iterable[Mapping[str, Any]] = (),
    read: Iterable[tuple[str, str]] = (),
) -> CorpusStatistics:
    """The sums of the `tokens` stage's counts of documents, by source, and of training documents by year.

    `cleaned` has the counts of the clean stage by source, including those of dates, `published` those of the published
    files; `mixture` those of the `tokens` stage by class of documents, None for a corpus without a mixture. `read` has
    (dataset, source) of all sources, also of those of which nothing is in training.
    """
    groups = list(groups)
    training = [group for group in groups if group["split"] == TRAIN]
    heldout = [group for group in groups if group["split"] != TRAIN]
    known = [dict(zip(_SOURCE, row, strict=True)) for row in {*read, *map(label_of, groups)}]
    sources = summed([*({**row, **dict.fromkeys(_COUNTS, 0)} for row in known), *training], _SOURCE, _COUNTS)
    of_copies = summed(mixture or (), _SOURCE, {"tokens": "effective_tokens"})
    effective = {label_of(row): row["tokens"] for row in of_copies}
    years = summed(training, (*_SOURCE, "year"), {name: name for name in ("num_docs", "num_tokens")}, with_days=True)
    return CorpusStatistics(
        sources=tuple(
            SourceStatistics(**row, num_effective_tokens=None if mixture is None else effective.get(label_of(row), 0))
            for row in sources
        ),
        heldout=tuple(HeldoutStatistics(**row) for row in summed(heldout, _SOURCE, _COUNTS, with_days=True)),
        years=tuple(YearStatistics(**row) for row in years),
        dates=date_statistics(cleaned),
        facts=fact_statistics(cleaned, published),
        private=private,
    )


def sub_source_statistics(parts: Iterable[Mapping[str, Any]]) -> tuple[SubSourceStatistics, ...]:
    """The counts of training documents by sub-source, of the rows that have some, summed over files."""
    entries = ({"num_tokens": 0, **part, **entry} for part in parts for entry in part.get("sub_sources", ()))
    sums = summed(entries, (*_SOURCE, "sub_source"), _COUNTS)
    named = {label_of(row) for row in sums if row["sub_source"] is not None}
    return tuple(SubSourceStatistics(**row) for row in sums if label_of(row) in named)


def count_removals(ledger: Iterable[Mapping[str, Any]]) -> list[RemovalCount]:
    """The counts of the ledger's files by the stage `split`, summed by source, stage and reason."""
    rows = ({**removed, "stage": part["stage"]} for part in ledger for removed in part["removed"])
    counts = {name: name for name in ("num_docs", "num_spans", "num_bytes")}
    sums = summed(rows, (*_SOURCE, "stage", "reason"), counts)
    order = stages.ledger_stages()
    return [RemovalCount(**row) for row in sorted(sums, key=lambda row: order.index(row["stage"]))]


def _near(setting: Mapping[str, Any] | None, counts: Mapping[str, Any]) -> Table | None:
    if not setting or "candidate_pairs" not in counts:
        return None
    near = NearConfig(**setting)
    return near_table(near, s_curve(near, JACCARDS).tolist(), counts)


def _details(counts: Mapping[str, Mapping[str, Any]], finpile: str) -> tuple[tuple[str, str], ...]:
    ingested = counts["ingest"]["sources"]
    num_files, input_bytes = (sum(row[name] for row in ingested) for name in ("files", "input_bytes"))
    made = []
    if "tokens" in counts:
        training, tokens = counts["tokenizer"], counts["tokens"]
        made = [
            ("Vocabulary", _vocabulary(training)),
            ("Training sequences", f"{tokens['sequences']:,}; {tokens['tokens_left_over']:,} tokens left over"),
            ("Tokenizer", training["checksum"]),
        ]
    return (("Input", f"{num_files:,} files of {input_bytes:,} bytes"), *made, ("FinPile", finpile))


def _vocabulary(training: Mapping[str, Any]) -> str:
    if "kind" in training:
        return f"{training['vocab_size']:,} ids, not trained: {training['kind']}, {training['library']}"
    found, requested = training["vocab_size"], training["vocab_size_asked_for"]
    entries = f"{found:,} entries" if found >= requested else f"{found:,} of {requested:,} entries requested"
    return f"{entries}, from {training['chunks']:,} chunk models{_sampled(training)}"


def _sampled(training: Mapping[str, Any]) -> str:
    share = training.get("share_of_text")
    return "" if share is None else f", trained on a sample of {share:.2%} of the text"


def rewrite(
    layout: Layout,
    manifest: dict[str, Any],
    comparison: Comparison | None = None,
    quality: Sequence[Table] = (),
) -> list[str]:
    """Rewrites the reports of a finished build as `write_from_manifest` does; returns the files.

    Updates the manifest.

    Raises: ConfigError if another command is running in the folder, or the folder is read-only, or another command has
    changed the corpus since the manifest was read.
    """
    state = read_state(layout) or BuildState.of_config(manifest["config"], is_whole=True)
    refusal = f"{layout.root}: the folder is read-only: copy it to a writable disk to write its reports"
    with hold_to_write(layout, "report", refusal):
        if load_manifest(layout)[CHECKSUM] != manifest[CHECKSUM]:
            raise ConfigError(f"{layout.root}: the corpus has changed meanwhile: run the same command again")
        write_state(layout, replace(state, is_whole=False))
        storage.remove_tree(layout.reports)
        files = write_from_manifest(layout, manifest, comparison, quality)
        records = [StageRecord.from_json(stage) for stage in manifest["stages"]]
        measured = file_records(layout.root, "reports")
        record = replace(next(record for record in records if record.stage == "reports"), files=measured)
        stage_record.save_stage(layout.work("reports"), record)
        listed = [record.to_json() if stage["stage"] == "reports" else stage for stage in manifest["stages"]]
        write_manifest(layout.manifest, write_card(layout, {**manifest, "stages": listed}))
        write_state(layout, replace(state, is_whole=True))
    return files
