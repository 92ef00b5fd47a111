"""The stages of a corpus as of a day that decides about undated documents again.

Undated documents come after all others, so documents after the day may have shaped what a build decided about them.

    ingest      rows of the ledger up to the day
    clean       rows of the ledger, and clean documents up to the day, from the clean shards of the build
    takedown    tombstones up to the day
    dedup       the stages of a build
    split       that of a build; then documents and ledger are counted

Decision: docs/decisions/0070-undated-documents-are-decided-again.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.as_of import Cut, count_again, parts_of_day
from finpile.documents.document import CLEAN_SCHEMA, Label, label_of
from finpile.documents.ledger import LEDGER_SCHEMA, count_removed
from finpile.documents.sums import add_counts
from finpile.errors import ConfigError, command_line
from finpile.filings.facts import fact_counts, flat_facts
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.manifest import CERTIFICATE, counts_by_stage
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.stage_record import StageRecord
from finpile.output.takedowns import by_shard, read_takedowns
from finpile.output.work_folder import WorkFolder
from finpile.plugins import stages
from finpile.plugins.stages import DEDUPLICATED
from finpile_pipelines.progress import report_progress
from finpile_pipelines.shard_refs import ShardRef, read_clean_rows, shard_file, write_shard
from finpile_pipelines.snapshots.base import clean_shards
from finpile_pipelines.snapshots.new_inputs import check_version, same_stage
from finpile_pipelines.stage import Context, Outcome, Stage, Work, all_processes, removed_bytes

_I32 = npt.NDArray[np.int32]
_FACTS = ("facts", "facts_found")


@dataclass(frozen=True, kw_only=True, slots=True)
class DayStages:
    """The stages `ingest` and `clean` of a corpus as of a day, which take the documents of a build."""

    whole: Layout
    manifest: Mapping[str, Any]
    cut: Cut
    refs: tuple[ShardRef, ...]
    """The clean shards of the build, named by their URLs."""
    gone: Mapping[int, _I32]
    """The rows of documents that were taken down, by shard."""

    @classmethod
    def of(cls, whole: Layout, manifest: Mapping[str, Any], cut: Cut) -> "DayStages":
        """Raises: ConfigError if `.work` lacks the clean shards, or another version of FinPile made them."""
        check_version(manifest)
        refs = _clean_shards(whole, manifest)
        gone = {shard: listed["row"].to_numpy() for shard, listed in by_shard(read_takedowns(whole, manifest))}
        return cls(whole=whole, manifest=manifest, cut=cut, refs=refs, gone=gone)

    @property
    def table(self) -> dict[str, Stage]:
        """The two stages."""
        mark = [self.cut.certificate(self.manifest)]
        ingest = Stage(
            name="ingest",
            settings=lambda context: mark,
            run=self._ingest,
            work=all_processes,
            ledger_bytes=removed_bytes,
        )
        size = Work(size_bytes=sum(ref.text_bytes for ref in self.refs))
        return {"ingest": ingest, "clean": replace(ingest, name="clean", run=self._clean, work=lambda context: size)}

    def check(self, dedup: Iterable[Stage], context: Context) -> None:
        """Raises: ConfigError for a dedup stage with other settings than in the build: a file that it reads differs."""
        for before, stage in pairwise(dedup):
            settings = stage.settings(replace(context, info=stages.find(stage.name)))
            if not same_stage(self.manifest, stage.name, before.name, [None] if settings is None else settings):
                raise ConfigError(
                    f"a file that the stage {stage.name} reads is not that of the build: restore it, or leave "
                    "--undated out"
                )

    def counted(self, records: Mapping[str, StageRecord], layout: Layout) -> dict[str, StageRecord]:
        """The records of `ingest` and `clean` with all counts, once `split` has run; they are stored."""
        found = {name: records[name] for name in ("ingest", "clean")}
        if all("removed" in record.counts["sources"][0] for record in found.values()):
            return found  # an earlier run counted
        counts = count_again(layout, self.manifest, records[DEDUPLICATED].counts)
        cleaned = found["clean"].counts["sources"]
        facts = {label_of(row): {name: row[name] for name in _FACTS if name in row} for row in cleaned}
        for row in counts["clean"]["sources"]:
            row.update(facts[label_of(row)])
        for name, record in found.items():
            found[name] = replace(record, counts=counts[name])
            stage_record.save_stage(layout.work(name), found[name])
        return found

    def _ingest(self, context: Context) -> Outcome:
        outcomes = [
            {"entry": ref.entry, "row": ref.row, "shards": [_name(ref)], "text_bytes": ref.text_bytes}
            for ref in self.refs
        ]
        storage.write_json(context.folder.file("tasks.json"), outcomes)
        return Outcome(counts={"sources": self._sources(context, "ingest", [])})

    def _clean(self, context: Context) -> Outcome:
        sources, folder, cut = context.config.sources, context.folder, self.cut
        tasks, url = [(ref, self.gone.get(ref.index)) for ref in self.refs], folder.file("tasks.json")

        def cut_shard(task: tuple[ShardRef, _I32 | None]) -> dict[str, Any]:
            ref, gone = task
            source = ref.source(sources)
            return {"dataset": source.dataset, "source": source.label, **_cut_shard(ref, gone, cut, folder)}

        outcomes = context.engine.run_tasks("clean", tasks, cut_shard, url, "clean documents")
        counted = add_counts(outcomes, ("dataset", "source"))
        return Outcome(counts={"sources": self._sources(context, "clean", counted)})

    def _sources(self, context: Context, stage: str, counted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Writes the stage's rows of the ledger; returns what the dedup stages and `split` read of its counts."""
        whole = counts_by_stage(self.manifest)[stage]["sources"]
        removed_bytes = {label_of(row): 0 for row in whole}
        for number, file in enumerate(PublishedFiles(self.whole, self.manifest).below(f"removed/stage={stage}")):
            storage.write_parquet_parts(context.folder.numbered("removed", number), self._removed(file, removed_bytes))
        kept = {label_of(row): row for row in counted}
        nothing = {"documents": 0, "text_bytes": 0}
        return [
            {"dataset": dataset, "source": source, "removed_bytes": size, **nothing, **kept.get((dataset, source), {})}
            for (dataset, source), size in removed_bytes.items()
        ]

    def _removed(self, file: PublishedFile, removed_bytes: dict[Label, int]) -> Iterator[pa.Table]:
        """The rows of a file of the ledger up to the day; adds their bytes to those of their sources."""
        for part in parts_of_day(file, self.cut):
            rows = part.select(LEDGER_SCHEMA.names).cast(LEDGER_SCHEMA)
            for row in count_removed(rows):
                removed_bytes[label_of(row)] += row["num_bytes"]
            yield rows


def _clean_shards(whole: Layout, manifest: Mapping[str, Any]) -> tuple[ShardRef, ...]:
    """Raises: ConfigError if `.work` lacks them."""
    recorded = {stage["stage"]: stage["fingerprint"] for stage in manifest["stages"]}
    try:
        refs = clean_shards(whole, manifest)
    except FileNotFoundError:
        refs = ()
    is_there = stage_record.is_done(whole.work("clean"), recorded["clean"])
    if not refs or not is_there or not all(ref.file.exists() for ref in refs):
        again = command_line("build", "CONFIG.yaml", "-o", whole.root, "--fresh")
        remedy = f"build the corpus again (`{again}`) and keep .work"
        if CERTIFICATE in manifest:
            remedy = "name the whole build"
        raise ConfigError(
            f"{whole.root}: later documents may have shaped what was decided about undated ones, and .work there lacks "
            f"the clean shards from which these are decided again: leave --undated out, or {remedy}"
        )
    return refs


def _cut_shard(ref: ShardRef, gone: _I32 | None, cut: Cut, folder: WorkFolder) -> dict[str, int]:
    """Writes the documents of a clean shard that are of the day; returns counts."""
    counts = Counter(documents=0, text_bytes=0)

    def batches() -> Iterator[pa.RecordBatch]:
        for first, batch in read_clean_rows(ref, None):
            mask = cut.has(pa.chunked_array([batch["timestamp"]]))
            if gone is not None:
                mask &= ~np.isin(np.arange(first, first + batch.num_rows), gone)
            mine = batch.filter(pa.array(mask))
            size = pc.sum(pc.binary_length(mine["text"])).as_py() or 0
            report_progress(mine.num_rows, size)
            counts.update({"documents": mine.num_rows, "text_bytes": size, **fact_counts(flat_facts(mine))})
            yield mine

    write_shard(shard_file(folder, _name(ref)), CLEAN_SCHEMA, batches())
    return counts


def _name(ref: ShardRef) -> str:
    """The name of the shard of the day's documents."""
    return f"{ref.index:06d}"
