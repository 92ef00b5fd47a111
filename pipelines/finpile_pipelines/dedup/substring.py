"""Exact substrings, by minimizers over all shards. `finpile.dedup.substring.repeats` finds repeated windows.

    minimizers   hashes of minimizers --by hash--> shared ones --by shard--> back to the shards that have them
    pieces       for hashes with too many contexts: hashes of more symbols, until no hash has too many
    contexts     symbols around shared minimizers --by hash--> repeated windows --by shard--> back
    cut          each shard merges its windows into spans
    left         documents of which too little is left are removed, then all but one of equal remainders (`residue`)

Every step re-reads the shard. The spans of a round are all spans so far, in bytes of the clean text; the next round
reads the shards without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig, SubstringConfig, to_dict
from finpile.dedup.substring import repeats
from finpile.dedup.substring.spans import join_spans, short_documents
from finpile.dedup.substring.texts import Texts, shard_of
from finpile.dedup.substring.warmup import SUBSTRING_GROUPS
from finpile_pipelines.dedup.alphabet import Alphabet, open_alphabet
from finpile_pipelines.dedup.remaining import RemainingDocuments
from finpile_pipelines.dedup.removals import NOT_CONFIGURED, REMOVAL_SCHEMA, read_removals, removals_url, spans_url
from finpile_pipelines.dedup.request_reply import exchanged_bytes, read_reply, request_reply, send_by_hash
from finpile_pipelines.dedup.residue import remove_equal_remains
from finpile_pipelines.exchange.partition import PartitionedTables
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage

_COUNTED = ("emptied", "too_short", "cut_bytes", "windows", "text_bytes")


def prepare(config: CorpusConfig) -> str | None:
    """The digest of the alphabet.

    Raises: ConfigError if the tokenizer that gives the symbols cannot be read.
    """
    substring = config.dedup.substring
    return open_alphabet(substring, config.root).digest() if substring else None


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    substring = context.config.dedup.substring
    return [to_dict(substring), context.prepared["substring"]] if substring else None


def run(context: Context) -> Outcome:
    """Marks repeated text in the documents that earlier stages left in the clean shards.

    Counts: `rounds` is the number of rounds that cut text.
    """
    config, refs, folder = context.config, context.refs, context.folder
    clean_folder, earlier_removals = context.clean_folder, context.earlier_removals
    substring = config.dedup.substring
    if substring is None:
        return Outcome(counts={**NOT_CONFIGURED, "rounds": 0})
    alphabet = open_alphabet(substring, config.root)
    cutting, comparing = context.engine.parts(19, 1)
    text_bytes = exchanged = 0
    rounds: list[Mapping[str, int]] = []
    while True:
        previous = _round_folder(folder, len(rounds)) if rounds else None
        found = (*earlier_removals, previous) if previous else earlier_removals
        reader = RemainingDocuments(config, clean_folder, found)
        current = _round_folder(folder, len(rounds) + 1)
        part = cutting.part(*_work_of_round(len(rounds), substring.rounds))
        counts = _Round(substring, alphabet, tuple(refs), reader, previous, current, len(rounds) + 1).run(part)
        text_bytes = text_bytes or counts["text_bytes"]
        exchanged += counts["exchanged_bytes"]
        if counts["cut_bytes"] == 0 or len(rounds) == substring.rounds:
            storage.remove_tree(current)  # this round only measured the remaining repeats
            break
        rounds.append(counts)
    emptied, too_short = (sum(counts[name] for counts in rounds) for name in ("emptied", "too_short"))
    duplicates = 0
    if rounds:
        left = RemainingDocuments(config, clean_folder, (*earlier_removals, _round_folder(folder, len(rounds))))
        duplicates = remove_equal_remains(comparing, config, refs, left, _left_folder(folder))
    counted = {
        "rounds": len(rounds),
        "removed": emptied + too_short + duplicates,
        "too_short": too_short,
        "duplicates": duplicates,
        "cut_bytes": [counts["cut_bytes"] for counts in rounds],
        "text_bytes": text_bytes,
        "exchanged_bytes": exchanged,
        "residual_windows": counts["windows"],
        "residual_bytes": counts["cut_bytes"],
    }
    return Outcome(counts=counted)


def removal_folders(folder: str, counts: Mapping[str, Any]) -> list[str]:
    """The last round's folder, whose spans include those of earlier rounds, and that of equal remainders."""
    return [_round_folder(folder, counts["rounds"]), _left_folder(folder)]


def ledger_bytes(counts: Mapping[str, Any], text_bytes: int) -> int:
    """The bytes that were cut."""
    return sum(counts.get("cut_bytes", ()))


def substring_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels, without those for keys that very many documents share: few corpora need them."""
    return SUBSTRING_GROUPS if config.dedup.substring else ()


STAGE = Stage(
    name="substring",
    settings=settings,
    run=run,
    kernels=substring_kernels,
    prepare=prepare,
    removal_folders=removal_folders,
    ledger_bytes=ledger_bytes,
)


def _work_of_round(number: int, num_rounds: int | str) -> tuple[float, float]:
    """The begin and end of a round's work (numbered from 0), as shares of the stage's; the last round only measures.

    The number of rounds to a fixpoint is unknown, so each is assigned half of the remaining work.
    """
    if isinstance(num_rounds, int):
        return number / (num_rounds + 1), (number + 1) / (num_rounds + 1)
    return 1 - 0.5**number, 1 - 0.5 ** (number + 1)


def _round_folder(folder: str, number: int) -> str:
    return storage.join(folder, f"round-{number:02d}")


def _left_folder(folder: str) -> str:
    return storage.join(folder, "left")


@dataclass(frozen=True, slots=True)
class _Round:
    """One pass over the scope. It is pickled for the workers, so it does not hold the engine."""

    config: SubstringConfig
    alphabet: Alphabet
    refs: tuple[ShardRef, ...]
    reader: RemainingDocuments
    previous: str | None
    """The folder with the removals and spans of the previous round."""
    folder: str
    number: int

    def run(self, engine: Engine) -> dict[str, int]:
        sharing, matching, cutting = engine.parts(4, 4, 2)
        known = self._share(sharing)
        self._match(matching, known)
        outcomes = self._cut(cutting, known)
        steps = ["contexts", "matches", *(step for names in zip(*map(_names, known), strict=True) for step in names)]
        return {
            **{name: sum(outcome[name] for outcome in outcomes) for name in _COUNTED},
            "exchanged_bytes": exchanged_bytes(self.folder, *steps),
        }

    def _share(self, engine: Engine) -> tuple[int, ...]:
        """Writes, for each shard, its minimizers' hashes that occur elsewhere too, and the pieces of crowded ones.

        Returns the sizes of the pieces whose keys are written, largest first.
        """
        known: tuple[int, ...] = (repeats.WHOLE,)
        while self._share_next(engine.part(1 - 0.2 ** (len(known) - 1), 1 - 0.2 ** len(known)), known):
            if known[-1] <= repeats.SLICES[-1]:
                break
            known = (*known, known[-1] // 2)
        return known

    def _share_next(self, engine: Engine, known: tuple[int, ...]) -> int:
        """Writes the shared keys of the last size; returns the number of crowded keys, summed over the shards."""
        *larger, size = known

        def send(ref: ShardRef) -> PartitionedTables:
            texts, scope = self._symbols(self._read(ref)), self.reader.scope(ref)
            if not larger:
                return self._by_hash(ref, repeats.minimizers(texts, self.config, scope, ref.index))
            shared = self._shared(ref, tuple(larger))
            return self._by_hash(ref, repeats.refined(texts, shared, size, self.config, scope, ref.index))

        request, reply = _names(size)
        steps = (request, send), (reply, repeats.shared_minimizers)
        return request_reply(engine, self.refs, self.folder, f"substring: {request}", *steps, tally="crowded")

    def _match(self, engine: Engine, known: tuple[int, ...]) -> None:
        """Writes, for each shard, the repeated windows of its contexts."""

        def send(ref: ShardRef) -> PartitionedTables:
            table = self._read(ref)
            texts, shard, shared = self._symbols(table), shard_of(ref.index, table), self._shared(ref, known)
            rows = repeats.contexts(texts, shard, shared, self.config, self.reader.scope(ref), known[-1])
            return self._by_hash(ref, rows)

        def match(received: pa.Table) -> pa.Table:
            return repeats.match_contexts(received, self.config, self.alphabet.widths)

        steps = ("contexts", send), ("matches", match)
        request_reply(engine, self.refs, self.folder, "substring: contexts", *steps)

    def _cut(self, engine: Engine, known: tuple[int, ...]) -> list[dict[str, int]]:
        """Writes, for each shard, all spans so far and the documents of which too little is left."""

        def cut(ref: ShardRef) -> dict[str, int]:
            table = self._read(ref)
            texts, shard, shared = self._symbols(table), shard_of(ref.index, table), self._shared(ref, known)
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

        def construct(pipeline: beam.Pipeline) -> None:
            outcomes = pipeline | Tasks(self.refs) | "Cut" >> beam.Map(cut)
            _ = outcomes | Gather(storage.join(self.folder, "cut.json"))

        engine.run("substring: cut", construct)
        found: list[dict[str, int]] = storage.read_json(storage.join(self.folder, "cut.json"))
        return found

    def _by_hash(self, ref: ShardRef, rows: pa.Table) -> PartitionedTables:
        return send_by_hash(ref, rows, len(self.refs))

    def _write(self, ref: ShardRef, table: pa.Table, new: pa.Table) -> dict[str, int]:
        """Writes the spans and removals of this round and the earlier ones; returns the counts of this round."""
        earlier = self.reader.spans(ref)
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
        names = [_names(size)[1] for size in known]
        return pa.concat_tables(read_reply(self.folder, name, ref.index, repeats.SHARED_SCHEMA) for name in names)


def _names(size: int) -> tuple[str, str]:
    """The names of the request and of the reply for keys of one size."""
    return ("minimizers", "shared") if size == repeats.WHOLE else (f"pieces{size}", f"shared{size}")


def _removals(ref: ShardRef, short: pa.Table) -> pa.Table:
    """`REMOVAL_SCHEMA` of a shard's documents that cuts leave too short."""
    rows = [{**row, "shard": ref.index, "stage": STAGE.name} for row in short.to_pylist()]
    return pa.Table.from_pylist(rows, schema=REMOVAL_SCHEMA)
