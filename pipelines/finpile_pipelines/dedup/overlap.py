"""Removes held-out documents that overlap with training documents of any dataset.

    windows   a passage of `min_length` bytes that also occurs in a few training documents, found by minimizers
    near      near duplicates of training documents

Source: Lee et al. 2022, section 4: text that is in both splits makes evaluation results too good.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.config import CorpusConfig, HeldoutConfig, NearConfig, OverlapConfig, SubstringConfig, to_dict
from finpile.dedup.near import verify
from finpile.dedup.near.warmup import EARLIER_GROUP, NEAR_GROUPS
from finpile.dedup.substring import repeats
from finpile.dedup.substring.texts import Texts, shard_of
from finpile.dedup.substring.warmup import SUBSTRING_GROUPS
from finpile.document import text_views
from finpile.sizes import shards_of_contexts, shards_of_keys
from finpile.split import HELDOUT, assign_split
from finpile.splitmix import GOLDEN
from finpile_pipelines.dedup.near import DOCUMENT_BYTES, Comparison, NearStage, keys_of
from finpile_pipelines.dedup.remaining import RemainingDocuments, documents_of, order_setting, remaining_documents
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, REMOVAL_SCHEMA, removals_url
from finpile_pipelines.dedup.request_reply import RequestReply, read_reply
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage, Step, StepInput, all_processes

REASON = "heldout_overlap"
#: Documents of all datasets are compared.
_SCOPE = ""
_MINIMIZER_SCHEMA = repeats.MINIMIZER_SCHEMA.append(pa.field("heldout", pa.bool_()))
_CONTEXT_SCHEMA = repeats.CONTEXT_SCHEMA.append(pa.field("heldout", pa.bool_()))


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    heldout = context.config.heldout
    return None if heldout.overlap is None else [to_dict(heldout), *order_setting(context.config)]


def run(context: Context) -> Outcome:
    """Marks held-out documents that overlap with training documents, among those that earlier stages left."""
    config, refs, clean_folder, earlier = context.config, context.refs, context.clean_folder, context.earlier_removals
    overlap = config.heldout.overlap
    if overlap is None:
        return Outcome(counts=NOT_CONFIGURED)
    windows, near = removal_folders(context.folder, {})
    by_windows, by_keys = context.engine.parts(1, 1) if overlap.near is not None else context.engine.parts(1, 0)
    reader = RemainingDocuments(config, clean_folder, earlier)
    num_shared = _Windows(config, overlap, tuple(refs), reader, windows).run(by_windows)
    num_near = 0
    if overlap.near is not None:
        left = RemainingDocuments(config, clean_folder, (*earlier, windows))
        num_near = NearStage(by_keys, overlap.near, refs, _Sides(left, config.heldout), near, context.sizes).run()[
            "removed"
        ]
    return Outcome(counts={"removed": num_shared + num_near, "shared_text": num_shared, "near_duplicates": num_near})


def removal_folders(folder: str, counts: Mapping[str, Any]) -> list[str]:
    """The folders of the stage's two parts."""
    return [storage.join(folder, part) for part in ("windows", "near")]


def overlap_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels."""
    if config.heldout.overlap is None:
        return ()
    earlier = (EARLIER_GROUP,) if config.dedup.order == "time" else ()
    return (*NEAR_GROUPS, *SUBSTRING_GROUPS, *earlier)


def steps(config: CorpusConfig) -> Sequence[Step]:
    """Shared windows, and near duplicates."""
    overlap = config.heldout.overlap
    if overlap is None:
        return ()
    size = max(1, overlap.min_length // 4)
    run = partial(_run_windows, overlap)
    windows = Step(name="windows", keys=_window_keys, bytes_of_key=size, reach="shared", run=run)
    if overlap.near is None:
        return [windows]
    keys, run = partial(_band_keys, overlap.near), partial(_run_near, overlap.near)
    size = max(1, DOCUMENT_BYTES // overlap.near.bands)
    return [windows, Step(name="near", keys=keys, bytes_of_key=size, reach="connected", run=run)]


def _run_windows(overlap: OverlapConfig, context: Context) -> str:
    reader = remaining_documents(context)
    _Windows(context.config, overlap, tuple(context.refs), reader, context.folder).run(context.engine)
    return context.folder


def _run_near(near: NearConfig, context: Context) -> str:
    sides = _Sides(remaining_documents(context), context.config.heldout)
    NearStage(context.engine, near, context.refs, sides, context.folder, context.sizes).run()
    return context.folder


def _window_keys(step: StepInput, ref: ShardRef) -> pa.Table:
    """The minimizers of documents, spread evenly."""
    table = pa.concat_tables(documents_of(step).read(ref))
    overlap = step.config.heldout.overlap or OverlapConfig()
    hashes, docs = repeats.minimizers_by_document(Texts.of_bytes(table["text"]), _windows_of(overlap), _SCOPE)
    return pa.table({"key": hashes * GOLDEN, "row": table["row"].to_numpy()[docs]})


def _band_keys(near: NearConfig, step: StepInput, ref: ShardRef) -> pa.Table:
    return keys_of(_Sides(documents_of(step), step.config.heldout), ref, near)


STAGE = Stage(
    name="overlap",
    settings=settings,
    run=run,
    kernels=overlap_kernels,
    work=all_processes,
    removal_folders=removal_folders,
    steps=steps,
)


@dataclass(frozen=True, slots=True)
class _Windows:
    """Shared windows. It is pickled for the workers, so it does not hold the engine."""

    config: CorpusConfig
    overlap: OverlapConfig
    refs: tuple[ShardRef, ...]
    reader: RemainingDocuments
    folder: str

    def run(self, engine: Engine) -> int:
        """Writes the removals; returns their number."""
        transport, url = engine.exchange_transport, storage.join(self.folder, "decided.json")
        minimizers = ("minimizers", self._minimizers), ("shared", _on_both_sides)
        contexts = ("contexts", self._contexts), ("matches", self._match)
        length = self._setting().min_length
        of_keys, of_contexts = shards_of_keys(length), shards_of_contexts(length)

        def construct(pipeline: beam.Pipeline) -> None:
            places = transport, self.refs, self.folder
            shared = pipeline | RequestReply(*places, *minimizers, shards_of_unit=of_keys, work=0.4)
            after = After(shared)
            matched = pipeline | RequestReply(*places, *contexts, shards_of_unit=of_contexts, work=0.4, after=after)
            tasks = Tasks(self.refs, 0.2, after=After(matched), note="decide")
            _ = pipeline | tasks | "Decide" >> beam.Map(self._decide) | Gather(url)

        engine.run("overlap: windows", construct)
        return sum_of("removed")(storage.read_json(url))

    def _minimizers(self, ref: ShardRef) -> pa.Table:
        tables = [_MINIMIZER_SCHEMA.empty_table()]
        for is_heldout, table in self._sides(ref):
            texts = Texts.of_bytes(table["text"])
            rows = repeats.minimizers(texts, self._setting(), _SCOPE, ref.index)
            tables.append(_with_side(rows, is_heldout))
        return pa.concat_tables(tables)

    def _contexts(self, ref: ShardRef) -> pa.Table:
        shared, tables = self._shared(ref), [_CONTEXT_SCHEMA.empty_table()]
        for is_heldout, table in self._sides(ref):
            texts, shard = Texts.of_bytes(table["text"]), shard_of(ref.index, table, self.reader.order)
            rows = repeats.contexts(texts, shard, shared, self._setting(), _SCOPE)
            tables.append(_with_side(rows, is_heldout))
        return pa.concat_tables(tables)

    def _match(self, received: pa.Table) -> pa.Table:
        is_heldout = np.asarray(received["heldout"].to_numpy()).astype(bool)
        rows = received.select(repeats.CONTEXT_SCHEMA.names)
        return repeats.match_across(rows, self._setting(), is_heldout, self.overlap.max_documents)

    def _decide(self, ref: ShardRef) -> dict[str, int]:
        """Writes removals of the shard's held-out documents that have a shared window."""
        matches = read_reply(self.folder, "matches", ref.index, repeats.MATCH_SCHEMA)
        removals: list[dict[str, Any]] = []
        if matches.num_rows:
            table = next(table for is_heldout, table in self._sides(ref) if is_heldout)
            texts, shard = Texts.of_bytes(table["text"]), shard_of(ref.index, table, self.reader.order)
            covered = repeats.cover(texts, shard, self._shared(ref), matches, self._setting(), _SCOPE)
            kept = matches.group_by("kept_id").aggregate([("kept_shard", "min"), ("kept_row", "min")])
            removals = list(_removals(ref, table, covered.spans, kept))
        if removals:
            url = removals_url(self.folder, ref.index)
            storage.write_parquet(url, pa.Table.from_pylist(removals, schema=REMOVAL_SCHEMA))
        return {"shard": ref.index, "removed": len(removals)}

    def _sides(self, ref: ShardRef) -> Iterator[tuple[bool, pa.Table]]:
        """The shard's documents on each side of the split, as (is held out, table), without empty tables."""
        table = pa.concat_tables(self.reader.read(ref))
        report_progress(table.num_rows, table["text"].nbytes)
        is_heldout = _is_heldout(table, self.config.heldout)
        for side in (False, True):
            part = table.filter(pa.array(is_heldout == side)).combine_chunks()
            if part.num_rows:
                yield side, part

    def _setting(self) -> SubstringConfig:
        return _windows_of(self.overlap)

    def _shared(self, ref: ShardRef) -> pa.Table:
        return read_reply(self.folder, "shared", ref.index, repeats.SHARED_SCHEMA)


def _windows_of(overlap: OverlapConfig) -> SubstringConfig:
    return SubstringConfig(min_length=overlap.min_length, keep="none", snap="none")


class _Sides(Comparison):
    """Compares held-out with training documents of all datasets. The lowest bit of a number is 1 for held-out ones."""

    stage = "overlap"

    def __init__(self, reader: RemainingDocuments, heldout: HeldoutConfig) -> None:
        super().__init__(reader)
        self._heldout = heldout

    def key_scope(self, ref: ShardRef) -> str:
        return _SCOPE

    def read(self, ref: ShardRef) -> Iterator[pa.Table]:
        for table in self.reader.read(ref):
            side = _is_heldout(table, self._heldout)
            number = table["number"].to_numpy() & ~np.int64(1) | side
            yield table.set_column(table.schema.get_field_index("number"), "number", pa.array(number))

    def pairs(self, rows: pa.Table) -> pa.Table:
        found = super().pairs(rows)
        return found.filter(pa.array((found["a"].to_numpy() ^ found["b"].to_numpy()) & 1 == 1))

    def resolve(self, members: pa.Table, pairs: Any, near: NearConfig) -> verify.Resolution:
        is_heldout = (members["number"].to_numpy() & 1 == 1).tolist()
        return verify.resolve_across([bytes(view) for view in text_views(members)], pairs, is_heldout, near)

    def describe(self, resolved: verify.NearDuplicate) -> dict[str, str]:
        return {"reason": REASON, "detail": f"near duplicate: {super().describe(resolved)['detail']}"}


def _is_heldout(table: pa.Table, heldout: HeldoutConfig) -> Any:
    """1 for each document that is held out, 0 for the others."""
    sides = assign_split(table["timestamp"], heldout.after, heldout.undated)
    return np.asarray(pc.equal(sides, HELDOUT)).astype(np.int64)


def _with_side(rows: pa.Table, is_heldout: bool) -> pa.Table:
    return rows.append_column("heldout", pa.array([is_heldout] * rows.num_rows, pa.bool_()))


def _on_both_sides(received: pa.Table) -> pa.Table:
    """The minimizers that held-out and training documents have, as `SHARED_SCHEMA`."""
    shared = repeats.shared_minimizers(received.select(repeats.MINIMIZER_SCHEMA.names))
    hashes, heldout = received["hash"].to_numpy(), np.asarray(received["heldout"].to_numpy()).astype(bool)
    both = np.intersect1d(hashes[heldout], hashes[~heldout])
    return shared.filter(pa.array(np.isin(shared["hash"].to_numpy(), both)))


def _removals(ref: ShardRef, table: pa.Table, spans: pa.Table, kept: pa.Table) -> Iterator[dict[str, Any]]:
    """One removal for each document of the spans; it names the training document of the first span."""
    ids = dict(zip(table["row"].to_pylist(), table["id"].to_pylist(), strict=True))
    places = {row["kept_id"]: (row["kept_shard_min"], row["kept_row_min"]) for row in kept.to_pylist()}
    covered: dict[int, int] = {}
    first: dict[int, dict[str, Any]] = {}
    for span in spans.to_pylist():
        covered[span["row"]] = covered.get(span["row"], 0) + span["end"] - span["start"]
        first.setdefault(span["row"], span)
    for row, span in sorted(first.items()):
        kept_shard, kept_row = places[span["kept_id"]]
        yield {
            "shard": ref.index,
            "row": row,
            "id": ids[row],
            "stage": STAGE.name,
            "reason": REASON,
            "detail": f"{covered[row]} bytes are in training text, those from byte {span['start']} on in this one",
            "duplicate_of": span["kept_id"],
            "duplicate_offset": None,
            "kept_shard": kept_shard,
            "kept_row": kept_row,
        }
