"""One round of a pass over shards: its exchanges, and the decision of each shard, as steps of a pipeline."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.dedup.cuts import cut_bytes, join_spans
from finpile.dedup.plan import Counted, Decision, Exchange, Groups, Part, Pass
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.dedup.removals import (
    read_removals,
    read_spans,
    removal_table,
    spans_file,
    write_removals,
)
from finpile_pipelines.exchange.partition import Transport
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.executors.request_reply import Request, RequestReply, outcomes_file, partitions_of
from finpile_pipelines.executors.shard_documents import ShardDocuments
from finpile_pipelines.shard_refs import ShardRef

_CROWDED, _CUT_BYTES, _REMOVED = "crowded", "cut_bytes", "removed"
_DECIDED = "decided"


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that a plan reads, in files; each process opens them once. It is pickled for the workers."""

    folder: WorkFolder
    checksums: tuple[tuple[str, str], ...]
    """The name of each table, and the checksum of its file."""
    open: Callable[[Mapping[str, pa.Table]], Any] = field(compare=False)

    @property
    def opened(self) -> Any:
        """What `Plan.open` made of them."""
        return _opened(self)


@lru_cache(maxsize=1)
def _opened(tables: Tables) -> Any:
    names = [name for name, _ in tables.checksums]
    return tables.open({name: storage.read_parquet(table_file(tables.folder, name)) for name in names})


def table_file(folder: WorkFolder, name: str) -> WorkFile:
    """The file of a table that a plan reads."""
    return folder.file(f"{name}.parquet")


@dataclass(frozen=True, kw_only=True, slots=True)
class OneRound:
    """A round of a pass. It is pickled for the workers, so it does not hold the engine; they get it without `refs`."""

    stage: str
    one: Pass
    refs: tuple[ShardRef, ...]
    documents: ShardDocuments
    """As they are before the round."""
    folder: WorkFolder
    previous: WorkFolder | None = None
    """The folder with the removals and spans of the rounds before."""
    number: int = 1
    measures: bool = False
    """Whether the round only counts."""
    level: int = 0
    """Refinements of the exchange that can be refined which are complete."""
    tables: Tables

    def construct(
        self, transport: Transport, work: float, after: After | None, first: int, pipeline: graph.Pipeline
    ) -> graph.PCollection[Passed]:
        """Adds the exchanges from number `first` on, and the decisions; the output is there when all are complete.

        Its summary is the number of bytes that the round cuts. An exchange with crowded hashes that is to be refined
        ends the round.
        """
        steps = self.exchanges
        left = 1 - sum(step.share for step in steps[:first])
        for number, step in enumerate(steps[first:], first):
            request = self._request(number, is_last=number == len(steps) - 1 and self.one.decide is None)
            exchange = RequestReply(
                transport, self._senders, self.folder, request, work=work * step.share / left, after=after
            )
            passed = pipeline | step.name >> exchange
            after = After(passed, lambda number: number == 0) if step.refine is not None else After(passed)
        decide = self.one.decide
        if decide is None:
            return passed
        share = work * max(0.0, 1 - sum(step.share for step in steps)) / left
        tasks = Tasks(self._senders, share, after=after, note=self.one.name)
        outcomes = pipeline | "Shards" >> tasks | "Decide" >> graph.Map(partial(self.of_workers._decide, decide))
        gather = Gather(outcomes_file(self.folder, _DECIDED), sum_of(_CUT_BYTES), after=after)
        return outcomes | "Decided" >> gather

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(step for step in self.one.steps if isinstance(step, Exchange))

    @property
    def of_workers(self) -> "OneRound":
        """What is pickled with steps, once for each: the shards are the tasks."""
        return replace(self, refs=())

    @property
    def num_shards(self) -> int:
        """More than the highest number of a shard."""
        return 1 + max((ref.index for ref in self.refs), default=0)

    @property
    def groups(self) -> Groups | None:
        """The step of a pass over groups, which has no exchanges."""
        return next((step for step in self.one.steps if isinstance(step, Groups)), None)

    def is_crowded(self, number: int) -> bool:
        """Whether the exchange has to be refined further."""
        step = self.exchanges[number]
        if step.refine is None or self.level == step.most_levels:
            return False
        return sum_of(_CROWDED)(storage.read_json(outcomes_file(self.folder, _file(step, self.level)))) > 0

    def refinement(self, transport: Transport, number: int) -> RequestReply:
        """The exchange of the current `level`, as a pipeline of its own."""
        return RequestReply(transport, self._senders, self.folder, self._request(number, is_last=False))

    def counted(self) -> Counted:
        """What the round counted, once it is complete."""
        files = [_file(step, level) for step in self.exchanges for level in range(self._levels(step) + 1)]
        decided = storage.read_json(outcomes_file(self.folder, _DECIDED)) if self.one.decide is not None else []
        exchanged = [row for name in files for row in storage.read_json(outcomes_file(self.folder, name))]
        return Counted(sums=sums_of([*exchanged, *decided]), outcomes=decided)

    @property
    def _senders(self) -> tuple[ShardRef, ...]:
        sources = self.one.sources
        return self.refs if sources is None else tuple(ref for ref in self.refs if ref.entry in sources)

    def _request(self, number: int, is_last: bool) -> Request:
        step = self.exchanges[number]
        name = _file(step, self.level if step.refine is not None else 0)
        worker = self.of_workers
        write = worker._write_removals if is_last else partial(worker._write_replies, step.refine is not None, name)
        return Request(
            name=name,
            send=partial(worker._send, number),
            sends=step.sends,
            key=step.key,
            answer=step.answer,
            replies=step.replies,
            write=write,
            tally=_CROWDED if step.refine is not None else _REMOVED,
            num_partitions=partitions_of(self.refs, step.shards_of_unit),
        )

    def _send(self, number: int, ref: ShardRef) -> pa.Table:
        step, level = self.exchanges[number], self.level
        rows = step.refine if step.refine is not None and level else step.rows
        known = {"replies": self._replies(ref, number), **self._known()}
        is_first = number == 0 and level == 0
        if step.is_row_wise:
            parts = self.documents.pieces(ref, step.reads, reports=is_first, **known)
        else:
            parts = iter([self.documents.part(ref, step.reads, reports=is_first, **known)])
        sent = [rows(part) for part in parts]
        if step.keeps is not None:
            kept = pa.concat_tables([step.keeps.empty_table(), *(one.kept for one in sent if one.kept is not None)])
            storage.write_parquet(self.folder.numbered(f"kept-{step.name}", ref.index), kept)
        return pa.concat_tables([step.sends.empty_table(), *(one.rows for one in sent)])

    def _decide(self, decide: Callable[[Part], Decision], ref: ShardRef) -> dict[str, Any]:
        """Writes what a shard loses in this round and the earlier ones; returns the counts of this one."""
        exchanges, one = self.exchanges, self.one
        known = {
            "replies": self._replies(ref, len(exchanges)),
            "kept": {
                step.name: storage.read_parquet(self.folder.numbered(f"kept-{step.name}", ref.index))
                for step in exchanges
                if step.keeps is not None
            },
            **self._known(),
        }
        if one.reads:
            part = self.documents.part(ref, one.reads, **known)
        else:
            part = Part(documents=pa.table({}), number=ref.index, scope="", **known)
        decision = decide(part)
        if not self.measures:
            self._write(ref.index, decision)
        return {
            "shard": ref.index,
            _REMOVED: decision.removals.num_rows,
            "spans": decision.spans.num_rows,
            _CUT_BYTES: cut_bytes(decision.spans),
            **decision.counts,
        }

    def _write(self, shard: int, decision: Decision) -> None:
        spans, removals = decision.spans, removal_table(decision.removals, self.stage)
        if self.previous is not None:
            spans = join_spans(read_spans(self.previous, shard), spans)
            removals = pa.concat_tables([read_removals(self.previous, shard), removals])
        if spans.num_rows:
            storage.write_parquet(spans_file(self.folder, shard), spans)
        if removals.num_rows:
            write_removals(self.folder, shard, removals)

    def _known(self) -> dict[str, Any]:
        return {"level": self.level, "round": self.number, "opened": self.tables.opened}

    def _replies(self, ref: ShardRef, number: int) -> dict[str, pa.Table]:
        """The replies to a shard of the exchanges before a number, and of earlier levels of that one."""
        found = {}
        for place, step in enumerate(self.exchanges[: number + 1]):
            levels = range(self._levels(step) + (place < number))
            files = [self.folder.numbered(_file(step, level), ref.index) for level in levels]
            if files:
                tables = [storage.read_parquet_if_exists(file, step.replies) for file in files]
                found[step.name] = pa.concat_tables(tables)
        return found

    def _levels(self, step: Exchange) -> int:
        return self.level if step.refine is not None else 0

    def _write_replies(self, can_be_refined: bool, name: str, shard: int, replies: pa.Table) -> dict[str, int]:
        storage.write_parquet(self.folder.numbered(name, shard), replies)
        return {_CROWDED: pc.sum(replies[_CROWDED]).as_py() or 0} if can_be_refined else {}

    def _write_removals(self, shard: int, removals: pa.Table) -> dict[str, int]:
        write_removals(self.folder, shard, removal_table(removals, self.stage))
        return {_REMOVED: removals.num_rows}


def sums_of(outcomes: list[Mapping[str, Any]]) -> Counter[str]:
    """The sums of all counts that are numbers."""
    sums: Counter[str] = Counter()
    for outcome in outcomes:
        sums.update({name: count for name, count in outcome.items() if isinstance(count, int)})
    return sums


def _file(step: Exchange, level: int) -> str:
    return f"{step.name}-{level}" if level else step.name
