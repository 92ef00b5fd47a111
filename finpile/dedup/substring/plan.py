"""The plan of repeated substrings.

    minimizers   hashes of minimizers --by hash--> shared ones; those with too many contexts are refined
    contexts     symbols around shared minimizers --by hash--> repeated windows
    decide       windows are merged into spans; documents of which too little is left are removed

After the last round, all but one of equal remainders are removed (`finpile.dedup.exact`). Several rounds are followed
by one that counts the repeats that are left; a single one is not, as that would take its time once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from finpile.config import SubstringConfig, to_dict
from finpile.dedup.cuts import NOTHING_LEFT, short_documents
from finpile.dedup.exact import equal_remains
from finpile.dedup.order import Order
from finpile.dedup.plan import (
    SPAN_SCHEMA,
    Answer,
    Decision,
    Exchange,
    Found,
    Index,
    Inputs,
    Part,
    Pass,
    Plan,
    Sent,
    Settings,
    key_table,
)
from finpile.dedup.substring import REASON, repeats
from finpile.dedup.substring.alphabet import Alphabet, open_alphabet
from finpile.dedup.substring.texts import Texts, shard_of
from finpile.dedup.substring.warmup import SUBSTRING_GROUPS
from finpile.splitmix import GOLDEN
from finpile.storage.sizes import shards_of_contexts, shards_of_keys

#: Shares of the work of a round.
_MINIMIZERS, _CONTEXTS = 0.4, 0.4


def plan(settings: Settings) -> Plan | None:
    """Text of `min_length` or more that occurs elsewhere too is cut."""
    substring = settings.dedup.substring
    if substring is None:
        return None
    search = _Search(substring, settings.order, settings.root)
    length = substring.min_length
    minimizers = Exchange(
        name="minimizers",
        reads=("text",),
        rows=search.minimizers,
        sends=repeats.MINIMIZER_SCHEMA,
        answer=_shared,
        replies=repeats.SHARED_SCHEMA,
        shards_of_unit=shards_of_keys(length),
        share=_MINIMIZERS,
        refine=search.pieces,
        most_levels=len(repeats.SLICES),
    )
    contexts = Exchange(
        name="contexts",
        reads=("text",),
        rows=search.contexts,
        sends=repeats.CONTEXT_SCHEMA,
        answer=search.match,
        replies=repeats.MATCH_SCHEMA,
        shards_of_unit=shards_of_contexts(length),
        share=_CONTEXTS,
    )
    index = Index(
        keys=search.keys,
        reads=("text",),
        bytes_of_key=max(1, length // 4),
        reach="shared",
        is_causal=settings.order == "time" and substring.keep == "first",
    )
    cut = Pass(
        name="cut",
        steps=(minimizers, contexts),
        decide=search.decide,
        reads=("text",),
        cuts=True,
        rounds=substring.rounds,
        index=index if substring.rounds == 1 else None,
    )
    return Plan(
        passes=(cut, equal_remains(settings)),
        settings=[to_dict(substring), settings.dedup.exact_fold, settings.order],
        counts=partial(_counts, substring),
        kernels=SUBSTRING_GROUPS,
        read=partial(_read, substring, settings.root),
    )


def _read(substring: SubstringConfig, root: str) -> Inputs:
    """Identifies the tokenizer. Raises: ConfigError if it cannot be read."""
    return Inputs(open_alphabet(substring, root).digest())


def _counts(substring: SubstringConfig, found: Found, opened: Any) -> dict[str, Any]:
    """`rounds` is the number of rounds that cut text; `residual` counts are those of a last one that did not."""
    every = [counted.sums for counted in found["cut"]]
    is_cut_last = substring.rounds == 1 and every[-1]["cut_bytes"] > 0
    cutting, residual = (every, None) if is_cut_last else (every[:-1], every[-1])
    duplicates = sum(counted.sums["removed"] for counted in found.get("left", ()))
    return {
        "rounds": len(cutting),
        "removed": sum(sums["removed"] for sums in cutting) + duplicates,
        "too_short": sum(sums["too_short"] for sums in cutting),
        "duplicates": duplicates,
        "cut_bytes": [sums["cut_bytes"] for sums in cutting],
        "text_bytes": every[0]["text_bytes"],
        "exchanged_bytes": sum(sums["exchanged_bytes"] for sums in every),
        **({} if residual is None else _residual(residual)),
    }


def _residual(sums: Mapping[str, int]) -> dict[str, int]:
    return {"residual_windows": sums["windows"], "residual_bytes": sums["cut_bytes"]}


def _shared(rows: pa.Table) -> Answer:
    return Answer(repeats.shared_minimizers(rows))


@dataclass(frozen=True, slots=True)
class _Search:
    """The functions of a round, with their settings."""

    config: SubstringConfig
    order: Order
    root: str

    def minimizers(self, part: Part) -> Sent:
        return Sent(repeats.minimizers(self._texts(part), self.config, part.scope, part.number))

    def pieces(self, part: Part) -> Sent:
        """The keys of the pieces into which crowded keys are divided."""
        known = part.replies["minimizers"]
        size = repeats.SLICES[part.level - 1]
        return Sent(repeats.refined(self._texts(part), known, size, self.config, part.scope, part.number))

    def contexts(self, part: Part) -> Sent:
        known, finest = part.replies["minimizers"], _finest(part)
        shard = shard_of(part, self.order)
        return Sent(repeats.contexts(self._texts(part), shard, known, self.config, part.scope, finest))

    def match(self, rows: pa.Table) -> Answer:
        """The repeated windows of contexts."""
        return Answer(repeats.match_contexts(rows, self.config, self._alphabet().widths))

    def decide(self, part: Part) -> Decision:
        texts, shard = self._texts(part), shard_of(part, self.order)
        known, matches = part.replies["minimizers"], part.replies["contexts"]
        found = repeats.cover(texts, shard, known, matches, self.config, part.scope, _finest(part))
        spans = _spans(found.spans, part.round)
        short = short_documents(part.documents, spans, self.config.min_chars)
        emptied = short["reason"].to_pylist().count(NOTHING_LEFT)
        text_bytes = int(texts.bounds[-1] - texts.bounds[0])
        counts = {"too_short": short.num_rows - emptied, "windows": found.num_windows, "text_bytes": text_bytes}
        return Decision(short, spans, counts)

    def keys(self, part: Part) -> pa.Table:
        """The minimizers of documents. Those of long windows are in a narrow range, and are spread by a factor."""
        hashes, docs = repeats.minimizers_by_document(self._texts(part), self.config, part.scope)
        return key_table(hashes * GOLDEN, part.documents["row"].to_numpy()[docs])

    def _texts(self, part: Part) -> Texts:
        return self._alphabet().symbols(part.documents["text"])

    def _alphabet(self) -> Alphabet:
        return open_alphabet(self.config, self.root)


def _finest(part: Part) -> int:
    return repeats.SLICES[part.level - 1] if part.level else repeats.WHOLE


def _spans(found: pa.Table, number: int) -> pa.Table:
    """`SPAN_SCHEMA` of `COVER_SCHEMA`. Offsets of a later round are not of the text before the stage: they are null."""
    size = found.num_rows
    columns = {
        **{name: found[name] for name in ("row", "start", "end")},
        "reason": pa.repeat(REASON, size),
        "detail": pa.repeat(f"round {number}", size),
        "duplicate_of": found["kept_id"],
        "duplicate_offset": found["kept_offset"] if number == 1 else pa.nulls(size, pa.int64()),
    }
    return pa.table(columns, schema=SPAN_SCHEMA)
