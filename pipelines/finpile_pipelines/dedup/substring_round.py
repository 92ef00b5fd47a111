"""One round of the stage `substring`: minimizers and contexts to spans, over all shards."""

from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from finpile import storage
from finpile.config import SubstringConfig
from finpile.dedup.substring import repeats
from finpile.dedup.substring.spans import SPAN_SCHEMA, join_spans, short_documents
from finpile.dedup.substring.texts import Texts, shard_of
from finpile.sizes import shards_of_contexts, shards_of_keys
from finpile_pipelines.dedup.alphabet import Alphabet
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.dedup.removals import REMOVAL_SCHEMA, read_removals, read_spans, removals_url, spans_url
from finpile_pipelines.dedup.request_reply import RequestReply, exchanged_bytes, num_tallied, read_reply
from finpile_pipelines.exchange.partition import Transport
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef

_STAGE = "substring"
COUNTED = ("emptied", "too_short", "cut_bytes", "windows", "text_bytes")
#: The known keys if no key is crowded.
WHOLE: tuple[int, ...] = (repeats.WHOLE,)


def _is_zero(number: int) -> bool:
    return number == 0


@dataclass(frozen=True, slots=True)
class Round:
    """One pass over the scope. It is pickled for the workers, so it does not hold the engine."""

    config: SubstringConfig
    alphabet: Alphabet
    refs: tuple[ShardRef, ...]
    reader: RemainingDocuments
    previous: str | None
    """The folder with the removals and spans of the previous round."""
    folder: str
    number: int

    def construct(
        self,
        pipeline: beam.Pipeline,
        *,
        transport: Transport,
        known: tuple[int, ...] = WHOLE,
        work: float = 1.0,
        after: After | None = None,
    ) -> beam.PCollection[Passed]:
        """Adds the round to a pipeline; the summary is the number of bytes that it cuts, once all spans are written.

        If keys are crowded and `known` does not have their pieces, it ends after the minimizers, and cuts nothing.
        """
        name = f"Round{self.number}"
        if known == WHOLE:
            crowded = pipeline | f"{name}Minimizers" >> self._request_keys(known, transport, 0.4 * work, after)
            after = After(crowded, _is_zero)
        matched = pipeline | f"{name}Contexts" >> self._request_matches(known, transport, 0.4 * work, after)
        after = After(matched)
        gather = Gather(storage.join(self.folder, "cut.json"), sum_of("cut_bytes"), after=after)
        tasks = Tasks(self.refs, 0.2 * work, after=after, note="cut")
        outcomes = pipeline | f"{name}Cut" >> tasks | f"{name}CutShard" >> beam.Map(self._cut, known)
        return outcomes | f"{name}Outcomes" >> gather

    def num_crowded(self) -> int:
        """The number of crowded keys of the round, summed over the shards."""
        return num_tallied(self.folder, "shared")

    def divide(self, engine: Engine) -> tuple[int, ...]:
        """Writes, for each shard, the pieces of crowded keys; returns the sizes of known keys, largest first."""
        known = WHOLE
        while known[-1] > repeats.SLICES[-1]:
            known = (*known, known[-1] // 2)
            step = self._request_keys(known, engine.exchange_transport)
            engine.run_one(f"substring: {names(known[-1])[0]}", step)
            if num_tallied(self.folder, names(known[-1])[1]) == 0:
                break
        return known

    def counts(self, known: tuple[int, ...]) -> dict[str, int]:
        """The sums over the shards, once the round is complete."""
        outcomes = storage.read_json(storage.join(self.folder, "cut.json"))
        steps = ["contexts", "matches", *(step for names in zip(*map(names, known), strict=True) for step in names)]
        return {
            **{name: sum(outcome[name] for outcome in outcomes) for name in COUNTED},
            "exchanged_bytes": exchanged_bytes(self.folder, *steps),
        }

    def _request_keys(
        self, known: tuple[int, ...], transport: Transport, work: float = 1.0, after: After | None = None
    ) -> RequestReply:
        """Writes, for each shard, its keys of the last size that occur elsewhere too; counts the crowded ones."""
        *larger, size = known

        def keys(ref: ShardRef) -> pa.Table:
            texts, scope = self._symbols(self._read(ref)), self.reader.scope(ref)
            if not larger:
                return repeats.minimizers(texts, self.config, scope, ref.index)
            shared = self._shared(ref, tuple(larger))
            return repeats.refined(texts, shared, size, self.config, scope, ref.index)

        request, reply = names(size)
        steps = (request, keys), (reply, repeats.shared_minimizers)
        return RequestReply(
            transport,
            self.refs,
            self.folder,
            *steps,
            shards_of_unit=shards_of_keys(self.config.min_length),
            tally="crowded",
            work=work,
            after=after,
        )

    def _request_matches(
        self, known: tuple[int, ...], transport: Transport, work: float, after: After | None
    ) -> RequestReply:
        """Writes, for each shard, the repeated windows of its contexts."""

        def contexts(ref: ShardRef) -> pa.Table:
            table = self._read(ref)
            texts, shard, shared = (
                self._symbols(table),
                shard_of(ref.index, table, self.reader.order),
                self._shared(ref, known),
            )
            return repeats.contexts(texts, shard, shared, self.config, self.reader.scope(ref), known[-1])

        def match(received: pa.Table) -> pa.Table:
            return repeats.match_contexts(received, self.config, self.alphabet.widths)

        steps = ("contexts", contexts), ("matches", match)
        unit = shards_of_contexts(self.config.min_length)
        return RequestReply(transport, self.refs, self.folder, *steps, shards_of_unit=unit, work=work, after=after)

    def _cut(self, ref: ShardRef, known: tuple[int, ...]) -> dict[str, int]:
        """Writes, for a shard, all spans so far and the documents of which too little is left."""
        table = self._read(ref)
        texts, shard, shared = (
            self._symbols(table),
            shard_of(ref.index, table, self.reader.order),
            self._shared(ref, known),
        )
        matches = read_reply(self.folder, "matches", ref.index, repeats.MATCH_SCHEMA)
        scope = self.reader.scope(ref)
        covered = repeats.cover(texts, shard, shared, matches, self.config, scope, known[-1])
        report_progress(table.num_rows, table["text"].nbytes)
        return {
            **self._write(ref, table, covered.spans),
            "shard": ref.index,
            "windows": covered.num_windows,
            "text_bytes": int(texts.bounds[-1] - texts.bounds[0]),
        }

    def _write(self, ref: ShardRef, table: pa.Table, new: pa.Table) -> dict[str, int]:
        """Writes the spans and removals of this round and the earlier ones; returns the counts of this round."""
        earlier = read_spans(self.previous, ref.index) if self.previous else SPAN_SCHEMA.empty_table()
        joined = join_spans(earlier, new, self.number)
        if joined.num_rows:
            storage.write_parquet(spans_url(self.folder, ref.index), joined)
        short = short_documents(table, new, self.config.min_chars)
        removals = [read_removals(self.previous, ref.index)] if self.previous else []
        removals.append(_removals(ref, short))
        if any(table.num_rows for table in removals):
            storage.write_parquet(removals_url(self.folder, ref.index), pa.concat_tables(removals))
        sizes = new["end"].to_numpy() - new["start"].to_numpy()
        emptied = short["reason"].to_pylist().count(repeats.NOTHING_LEFT)
        return {"emptied": emptied, "too_short": short.num_rows - emptied, "cut_bytes": int(sizes.sum())}

    def _read(self, ref: ShardRef) -> pa.Table:
        return pa.concat_tables(self.reader.read(ref)).combine_chunks()

    def _symbols(self, table: pa.Table) -> Texts:
        return self.alphabet.symbols(table["text"])

    def _shared(self, ref: ShardRef, known: tuple[int, ...]) -> pa.Table:
        replies = [names(size)[1] for size in known]
        return pa.concat_tables(read_reply(self.folder, name, ref.index, repeats.SHARED_SCHEMA) for name in replies)


def names(size: int) -> tuple[str, str]:
    """The names of the request and of the reply for keys of one size."""
    return ("minimizers", "shared") if size == repeats.WHOLE else (f"pieces{size}", f"shared{size}")


def _removals(ref: ShardRef, short: pa.Table) -> pa.Table:
    """`REMOVAL_SCHEMA` of a shard's documents that cuts leave too short."""
    rows = [{**row, "shard": ref.index, "stage": _STAGE} for row in short.to_pylist()]
    return pa.Table.from_pylist(rows, schema=REMOVAL_SCHEMA)
