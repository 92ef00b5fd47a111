"""Exact substrings, by minimizers over all shards. `finpile.dedup.substring.repeats` finds repeated windows.

    minimizers   hashes of minimizers --by hash--> shared ones --by shard--> back to the shards that have them
    pieces       for hashes with too many contexts: hashes of more symbols, until no hash has too many
    contexts     symbols around shared minimizers --by hash--> repeated windows --by shard--> back
    cut          each shard merges its windows into spans
    left         documents of which too little is left are removed, then all but one of equal remainders (`residue`)

Every step re-reads the shard. The spans of a round are all spans so far, in bytes of the text before the stage; the
next round reads the shards without them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, repeat
from typing import Any

import apache_beam as beam
import pyarrow as pa

from finpile import storage
from finpile.config import CorpusConfig, SubstringConfig, to_dict
from finpile.dedup.substring import repeats
from finpile.dedup.substring.warmup import SUBSTRING_GROUPS
from finpile.splitmix import GOLDEN
from finpile_pipelines.dedup.alphabet import Alphabet, open_alphabet
from finpile_pipelines.dedup.exact import num_removed
from finpile_pipelines.dedup.remaining import RemainingDocuments, documents_of, order_setting
from finpile_pipelines.dedup.removals import (
    NOT_CONFIGURED,
)
from finpile_pipelines.dedup.residue import RemoveEqualRemains, equal_remains
from finpile_pipelines.dedup.substring_round import WHOLE, Round
from finpile_pipelines.exchange.tasks import After
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef
from finpile_pipelines.stage import Context, Outcome, Stage, Step, StepInput


def prepare(config: CorpusConfig) -> str | None:
    """The digest of the alphabet.

    Raises: ConfigError if the tokenizer that gives the symbols cannot be read.
    """
    substring = config.dedup.substring
    return open_alphabet(substring, config.root).digest() if substring else None


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    substring = context.config.dedup.substring
    if substring is None:
        return None
    return [to_dict(substring), context.prepared["substring"], *order_setting(context.config)]


def run(context: Context) -> Outcome:
    """Marks repeated text in the documents that earlier stages left in the clean shards.

    Counts: `rounds` is the number of rounds that cut text.
    """
    substring = context.config.dedup.substring
    if substring is None:
        return Outcome(counts={**NOT_CONFIGURED, "rounds": 0})
    rounds = _rounds(context, substring)
    *cutting, last = rounds.run(context.engine)
    emptied, too_short = (sum(counts[name] for counts in cutting) for name in ("emptied", "too_short"))
    duplicates = num_removed(rounds.left_folder) if cutting else 0
    counted = {
        "rounds": len(cutting),
        "removed": emptied + too_short + duplicates,
        "too_short": too_short,
        "duplicates": duplicates,
        "cut_bytes": [counts["cut_bytes"] for counts in cutting],
        "text_bytes": (*cutting, last)[0]["text_bytes"],
        "exchanged_bytes": sum(counts["exchanged_bytes"] for counts in (*cutting, last)),
        "residual_windows": last["windows"],
        "residual_bytes": last["cut_bytes"],
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


def steps(config: CorpusConfig) -> Sequence[Step]:
    """One round, and the removal of documents that it made equal; none for several rounds.

    Without `exact`, equal remainders of documents that are not cut are removed only if any document is cut.
    """
    substring = config.dedup.substring
    if substring is None or substring.rounds != 1 or not config.dedup.exact:
        return ()
    cut = Step(
        name="cut",
        keys=partial(_keys, substring),
        bytes_of_key=max(1, substring.min_length // 4),
        reach="shared",
        is_causal=config.dedup.order == "time" and substring.keep == "first",
        run=partial(_run_cut, substring),
    )
    return [cut, equal_remains("substring")]


def _run_cut(substring: SubstringConfig, context: Context) -> str:
    return _rounds(context, substring).run_one(context.engine)


def _keys(substring: SubstringConfig, step: StepInput, ref: ShardRef) -> pa.Table:
    """The minimizers of documents. Those of long windows are in a narrow range, and are spread by a factor."""
    reader = documents_of(step)
    table = pa.concat_tables(reader.read(ref))
    texts = open_alphabet(substring, step.config.root).symbols(table["text"])
    hashes, docs = repeats.minimizers_by_document(texts, substring, reader.scope(ref))
    return pa.table({"key": hashes * GOLDEN, "row": table["row"].to_numpy()[docs]})


STAGE = Stage(
    name="substring",
    settings=settings,
    run=run,
    kernels=substring_kernels,
    prepare=prepare,
    removal_folders=removal_folders,
    ledger_bytes=ledger_bytes,
    steps=steps,
)


def _rounds(context: Context, substring: SubstringConfig) -> "_Rounds":
    config = context.config
    alphabet = open_alphabet(substring, config.root)
    places = context.clean_folder, context.earlier_removals, context.rows, context.folder
    return _Rounds(config, substring, alphabet, tuple(context.refs), *places)


def _round_folder(folder: str, number: int) -> str:
    return storage.join(folder, f"round-{number:02d}")


def _left_folder(folder: str) -> str:
    return storage.join(folder, "left")


@dataclass(frozen=True, slots=True)
class _Rounds:
    """All rounds, numbered from 1. The round after the last requested one only measures repeats.

    With one round, the stage is one pipeline: the round, the comparison of what is left, and the measuring round, if
    the first one cut text. With more rounds, each is a pipeline, and so is the comparison. Pipelines are added where
    very many documents share a key: the rest of the round waits until such keys are divided.
    """

    config: CorpusConfig
    substring: SubstringConfig
    alphabet: Alphabet
    refs: tuple[ShardRef, ...]
    clean_folder: str
    earlier_removals: tuple[RemovalFolder, ...]
    rows: Rows | None
    folder: str

    @property
    def left_folder(self) -> str:
        return _left_folder(self.folder)

    def run(self, engine: Engine) -> list[dict[str, int]]:
        """The counts of the rounds that cut text, and of the one after them."""
        found: list[dict[str, int]] = []
        pipelines, comparing = _parts(engine, self.substring.rounds)
        known = WHOLE
        while not self._is_last(found):
            first, part = self._round(len(found) + 1), next(pipelines)
            if self.substring.rounds == 1 and not found:
                second = self._round(2)
                rounds = [first, second]
                part.run("substring", partial(self._construct_all, part, first, second, known))
            else:
                rounds = [first]
                part.run("substring", partial(self._construct_one, part, first, known))
            for each in rounds:
                if known == WHOLE and each.num_crowded() > 0:
                    known = each.divide(part.part(1, 1))
                    break
                found.append(each.counts(known))
                known = WHOLE
                if self._is_last(found):
                    break
        storage.remove_tree(self._round(len(found)).folder)  # this round only measured the remaining repeats
        if len(found) > 1 and self.substring.rounds != 1:
            comparing.run_one("substring: left", self._comparison(comparing, len(found) - 1))
        return found

    def run_one(self, engine: Engine) -> str:
        """Runs the first round alone; returns its folder."""
        first = self._round(1)
        cutting, again = engine.parts(1, 1)
        cutting.run("substring", partial(self._construct_one, cutting, first, WHOLE))
        if first.num_crowded() > 0:
            known = first.divide(again.part(0, 0.5))
            again.run("substring", partial(self._construct_one, again.part(0.5, 1), first, known))
        return first.folder

    def _is_last(self, found: Sequence[Mapping[str, int]]) -> bool:
        return bool(found) and (found[-1]["cut_bytes"] == 0 or len(found) - 1 == self.substring.rounds)

    def _construct_one(self, engine: Engine, only: Round, known: tuple[int, ...], pipeline: beam.Pipeline) -> None:
        only.construct(pipeline, transport=engine.exchange_transport, known=known)

    def _construct_all(
        self, engine: Engine, first: Round, second: Round, known: tuple[int, ...], pipeline: beam.Pipeline
    ) -> None:
        transport = engine.exchange_transport
        cut_bytes = first.construct(pipeline, transport=transport, known=known, work=0.5)
        after = After(cut_bytes, _is_positive)
        _ = pipeline | self._comparison(engine, first.number, work=0.05, after=after)
        second.construct(pipeline, transport=transport, work=0.45, after=after)

    def _comparison(
        self, engine: Engine, number: int, *, work: float = 1.0, after: After | None = None
    ) -> RemoveEqualRemains:
        """Removes documents that the rounds up to `number` made equal."""
        removals = (*self.earlier_removals, _round_folder(self.folder, number))
        left = RemainingDocuments(self.config, self.clean_folder, removals, self.rows)
        return RemoveEqualRemains(
            engine, self.config, STAGE.name, self.refs, left, self.left_folder, work=work, after=after
        )

    def _round(self, number: int) -> Round:
        previous = _round_folder(self.folder, number - 1) if number > 1 else None
        removals = (*self.earlier_removals, previous) if previous else self.earlier_removals
        reader = RemainingDocuments(self.config, self.clean_folder, removals, self.rows)
        folder = _round_folder(self.folder, number)
        return Round(self.substring, self.alphabet, self.refs, reader, previous, folder, number)


def _parts(engine: Engine, num_rounds: int | str) -> tuple[Iterator[Engine], Engine]:
    """The engines of the rounds' pipelines, and that of the comparison of what is left.

    The number of pipelines is unknown, so each is assigned half of the remaining work, or the share of a round.
    """
    if num_rounds == 1:
        return chain([engine], repeat(engine.part(1, 1))), engine.part(1, 1)
    cutting, comparing = engine.parts(19, 1)
    if isinstance(num_rounds, int):
        even = cutting.parts(*[1] * (num_rounds + 1))
        return chain(even, repeat(cutting.part(1, 1))), comparing
    return (cutting.part(1 - 0.5**number, 1 - 0.5 ** (number + 1)) for number in count()), comparing


def _is_positive(number: int) -> bool:
    return number > 0
