"""The plan of overlap: held-out documents that overlap with training documents of any dataset are removed.

    windows   a passage of `min_length` bytes that also occurs in a few training documents, found by minimizers
    near      near duplicates of training documents

Source: Lee et al. 2022, section 4: text that is in both splits makes evaluation results too good.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import HeldoutConfig, OverlapConfig, SubstringConfig, to_dict
from finpile.dedup.near import groups, verify
from finpile.dedup.near.plan import Comparison, compare, kernels_of
from finpile.dedup.order import Order
from finpile.dedup.overlap import REASON
from finpile.dedup.plan import (
    NUMBER,
    REMOVAL_SCHEMA,
    Answer,
    Decision,
    Exchange,
    Found,
    Index,
    Part,
    Pass,
    Plan,
    Sent,
    Settings,
    key_table,
)
from finpile.dedup.substring import repeats
from finpile.dedup.substring.texts import Texts, shard_of
from finpile.dedup.substring.warmup import SUBSTRING_GROUPS
from finpile.documents.split import HELDOUT, assign_split
from finpile.splitmix import GOLDEN
from finpile.storage.sizes import shards_of_contexts, shards_of_keys

#: Documents of all datasets are compared.
_SCOPE = ""
_HELDOUT = pa.field("heldout", pa.bool_())
_MINIMIZER_SCHEMA = repeats.MINIMIZER_SCHEMA.append(_HELDOUT)
_CONTEXT_SCHEMA = repeats.CONTEXT_SCHEMA.append(repeats.DOCUMENT).append(_HELDOUT)
#: Of a byte of text, by that of one reading.
_COST = 8


def plan(settings: Settings) -> Plan | None:
    """Held-out documents that share text with training documents are removed."""
    heldout = settings.heldout
    if heldout.overlap is None:
        return None
    near = heldout.overlap.near
    of_near = () if near is None else (compare("near", _Sides(near, settings.order, heldout)),)
    return Plan(
        passes=(_windows(_Windows(heldout, heldout.overlap, settings.order)), *of_near),
        settings=[to_dict(heldout), settings.order],
        counts=_counts,
        kernels=(*kernels_of(settings.order), *SUBSTRING_GROUPS),
        cost=_COST,
    )


def _counts(found: Found, opened: Any) -> dict[str, int]:
    removed = {name: sum(counted.sums["removed"] for counted in rounds) for name, rounds in found.items()}
    shared, near = removed["windows"], removed.get("near", 0)
    return {"removed": shared + near, "shared_text": shared, "near_duplicates": near}


def _windows(search: _Windows) -> Pass:
    length = search.overlap.min_length
    minimizers = Exchange(
        name="minimizers",
        reads=("text",),
        rows=search.minimizers,
        sends=_MINIMIZER_SCHEMA,
        answer=_on_both_sides,
        replies=repeats.SHARED_SCHEMA,
        shards_of_unit=shards_of_keys(length),
        share=0.4,
    )
    contexts = Exchange(
        name="contexts",
        reads=("text",),
        rows=search.contexts,
        sends=_CONTEXT_SCHEMA,
        answer=search.match,
        replies=repeats.MATCH_SCHEMA,
        shards_of_unit=shards_of_contexts(length),
        share=0.4,
    )
    index = Index(keys=search.keys, reads=("text",), bytes_of_key=max(1, length // 4), reach="shared")
    return Pass(name="windows", steps=(minimizers, contexts), decide=search.decide, reads=("text",), index=index)


@dataclass(frozen=True, slots=True)
class _Windows:
    """The functions of the pass that finds shared windows, with their settings."""

    heldout: HeldoutConfig
    overlap: OverlapConfig
    order: Order

    def minimizers(self, part: Part) -> Sent:
        tables = [_MINIMIZER_SCHEMA.empty_table()]
        for is_heldout, side in self._sides(part):
            texts = Texts.of_bytes(side.documents["text"])
            tables.append(_with_side(repeats.minimizers(texts, self._setting, _SCOPE, part.number), is_heldout))
        return Sent(pa.concat_tables(tables))

    def contexts(self, part: Part) -> Sent:
        tables = [_CONTEXT_SCHEMA.empty_table()]
        for is_heldout, side in self._sides(part):
            texts, shard = Texts.of_bytes(side.documents["text"]), shard_of(side, self.order)
            search = repeats.contexts if is_heldout else repeats.contexts_by_document
            rows = search(texts, shard, part.replies["minimizers"], self._setting, _SCOPE)
            if is_heldout:
                rows = rows.append_column(repeats.DOCUMENT, pa.array(np.full(rows.num_rows, -1, np.int32)))
            tables.append(_with_side(rows, is_heldout))
        return Sent(pa.concat_tables(tables))

    def match(self, rows: pa.Table) -> Answer:
        """The windows of held-out contexts that a few training documents have."""
        is_heldout = _flags(rows)
        return Answer(repeats.match_across(rows, self._setting, is_heldout, self.overlap.max_documents))

    def decide(self, part: Part) -> Decision:
        """Removes the held-out documents that have a shared window."""
        matches = part.replies["contexts"]
        if matches.num_rows == 0:
            return Decision()
        side = next(side for is_heldout, side in self._sides(part) if is_heldout)
        texts, shard = Texts.of_bytes(side.documents["text"]), shard_of(side, self.order)
        covered = repeats.cover(texts, shard, part.replies["minimizers"], matches, self._setting, _SCOPE)
        kept = matches.group_by("kept_id").aggregate([("kept_shard", "min"), ("kept_row", "min")])
        removals = list(_removals(side, covered.spans, kept))
        return Decision(pa.Table.from_pylist(removals, schema=REMOVAL_SCHEMA))

    def keys(self, part: Part) -> pa.Table:
        """The minimizers of documents, spread evenly."""
        texts = Texts.of_bytes(part.documents["text"])
        hashes, docs = repeats.minimizers_by_document(texts, self._setting, _SCOPE)
        return key_table(hashes * GOLDEN, part.documents["row"].to_numpy()[docs])

    def _sides(self, part: Part) -> Iterator[tuple[bool, Part]]:
        """The documents on each side of the split, as (is held out, part), without empty ones."""
        is_heldout = _is_heldout(part.documents, self.heldout)
        for side in (False, True):
            documents = part.documents.filter(pa.array(is_heldout == side)).combine_chunks()
            if documents.num_rows:
                yield side, replace(part, documents=documents)

    @property
    def _setting(self) -> SubstringConfig:
        return SubstringConfig(min_length=self.overlap.min_length, keep="none", snap="none")


@dataclass(frozen=True, slots=True)
class _Sides(Comparison):
    """Compares held-out with training documents of all datasets. The lowest bit of a number is 1 for held-out ones."""

    heldout: HeldoutConfig

    def documents(self, documents: pa.Table) -> pa.Table:
        number = documents[NUMBER].to_numpy() & ~np.int64(1) | _is_heldout(documents, self.heldout)
        return documents.set_column(documents.schema.get_field_index(NUMBER), NUMBER, pa.array(number))

    def scope(self, part: Part) -> str:
        return _SCOPE

    def pairs(self, rows: pa.Table) -> Answer:
        found, counts = Comparison.pairs(self, rows)
        return Answer(found.filter(pa.array((found["a"].to_numpy() ^ found["b"].to_numpy()) & 1 == 1)), counts)

    def resolve(self, members: pa.Table, pairs: pa.Table) -> Answer:
        return Answer(*groups.resolve_groups(members, pairs, self.near, _resolve, _describe, self.order))


def _resolve(members: pa.Table, texts: Sequence[bytes], pairs: Any, near: Any) -> verify.Resolution:
    is_heldout = (members[NUMBER].to_numpy() & 1 == 1).tolist()
    return verify.resolve_across(texts, pairs, is_heldout, near)


def _describe(duplicate: verify.NearDuplicate) -> dict[str, str]:
    return {"reason": REASON, "detail": f"near duplicate: {groups.describe(duplicate)['detail']}"}


def _is_heldout(documents: pa.Table, heldout: HeldoutConfig) -> npt.NDArray[np.int64]:
    """1 for each document that is held out, 0 for the others."""
    sides = assign_split(documents["timestamp"], heldout.after, heldout.undated)
    return np.asarray(pc.fill_null(pc.equal(sides, HELDOUT), False)).astype(np.int64)


def _with_side(rows: pa.Table, is_heldout: bool) -> pa.Table:
    return rows.append_column(_HELDOUT, pa.array([is_heldout] * rows.num_rows, pa.bool_()))


def _flags(rows: pa.Table) -> npt.NDArray[np.bool_]:
    return np.asarray(rows["heldout"].to_numpy()).astype(bool)


def _on_both_sides(rows: pa.Table) -> Answer:
    """The minimizers that held-out and training documents have, as `SHARED_SCHEMA`."""
    shared = repeats.shared_minimizers(rows.select(repeats.MINIMIZER_SCHEMA.names))
    hashes, heldout = rows["hash"].to_numpy(), _flags(rows)
    both = np.intersect1d(hashes[heldout], hashes[~heldout])
    return Answer(shared.filter(pa.array(np.isin(shared["hash"].to_numpy(), both))))


def _removals(part: Part, spans: pa.Table, kept: pa.Table) -> Iterator[dict[str, Any]]:
    """One removal for each document of the spans; it names the training document of the first span."""
    ids = dict(zip(part.documents["row"].to_pylist(), part.documents["id"].to_pylist(), strict=True))
    places = {row["kept_id"]: (row["kept_shard_min"], row["kept_row_min"]) for row in kept.to_pylist()}
    covered: dict[int, int] = {}
    first: dict[int, dict[str, Any]] = {}
    for span in spans.to_pylist():
        covered[span["row"]] = covered.get(span["row"], 0) + span["end"] - span["start"]
        first.setdefault(span["row"], span)
    for row, span in sorted(first.items()):
        kept_shard, kept_row = places[span["kept_id"]]
        yield {
            "id": ids[row],
            "shard": part.number,
            "row": row,
            "duplicate_of": span["kept_id"],
            "duplicate_offset": None,
            "kept_shard": kept_shard,
            "kept_row": kept_row,
            "reason": REASON,
            "detail": f"{covered[row]} bytes are in training text, those from byte {span['start']} on in this one",
        }
