"""Deduplication of one table in memory, without Beam."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import DedupConfig, NearConfig, SubstringConfig
from finpile.dedup.documents import Scope, compared, rows_by_scope, selectable
from finpile.dedup.exact import REMOVAL_SCHEMA, ROW_SCHEMA, Fold, document_digests, find_duplicates
from finpile.dedup.ledger_rows import removal_rows, span_rows
from finpile.dedup.near import buckets, clusters, groups, minhash
from finpile.dedup.near.numbers import part_by_numbers
from finpile.dedup.order import Order, sort_indices
from finpile.dedup.redirects import MOST_REDIRECTS, redirect
from finpile.dedup.substring import repeats
from finpile.dedup.substring.spans import SPAN_SCHEMA, cut_rows, join_spans, short_documents
from finpile.dedup.substring.texts import Shard, Texts
from finpile.errors import ConfigError, InputError
from finpile.ledger import LEDGER_SCHEMA

_STAGED_SCHEMA = pa.schema(
    [pa.field(field.name, field.type) for field in REMOVAL_SCHEMA] + [pa.field("stage", pa.string())]
)
_CUTTING = "substring"
_SPAN_ORDER = [("row", "ascending"), ("start", "ascending")]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deduplicated:
    """The result of a deduplication, of the same form for exact duplicates, near duplicates and repeated substrings."""

    kept: pa.Table
    """The input without the removed rows: same columns, types and order. String and binary views (of Polars) become
    large strings and large binary, also inside lists, structs, maps and dictionaries. Repeated substrings are cut out
    of the text. `num_copies`, if the input has it, counts what each row represents."""
    removed: pa.Table
    """`finpile.ledger.LEDGER_SCHEMA`: a row for each removed document, and for each span of text that was cut."""


def deduplicate(
    documents: Any,
    *,
    exact: bool = True,
    near: NearConfig | Literal["fast", "paper"] | None = "fast",
    substring: SubstringConfig | int | None = None,
    exact_fold: Fold = "none",
    scope: Scope = "corpus",
    order: Order = "priority",
    text: str = "text",
) -> Deduplicated:
    """Removes exact duplicates, near duplicates and repeated substrings from a table.

    `documents` is an Arrow table or record batch, or any data frame that exports an Arrow stream (pandas, Polars). Only
    the column named by `text` is required. These columns are used if they exist: `id` (unique), `dataset`, `source`,
    `locator`, `timestamp`, `priority` (int32; the smaller number is preferred) and `num_copies`.

    One of several copies is kept: the copy of the smallest `priority`, then of the earliest `timestamp`. Ties are
    broken by the text's digest and the id, so the order of the rows does not matter. In a table without ids, row
    numbers are the ids and the first row is kept. The results equal those of `finpile dedup` with the same settings.

    Args:
        documents: The documents; all are held in memory.
        exact: Whether to remove equal texts. `near` and `substring` require it.
        near: A setting for near duplicates, or its name; None keeps near duplicates.
        substring: A setting for repeated substrings, or their minimum length in bytes; None keeps repeated text.
            `unit: tokens` requires `finpile dedup`.
        exact_fold: Differences that equal texts may have.
        order: `time` keeps the earliest copy, and no decision depends on a later document; see `finpile.dedup.order`.
        scope: `corpus` compares all documents, `dataset` only those with the same value in `dataset`.
        text: The name of the text column.

    Raises:
        InputError: A column is missing, has nulls or another type, or ids are not unique; or Arrow lacks the type of a
            column, or cannot select rows of it.
        ConfigError: The settings contradict each other.

    >>> table = pa.table({"text": ["Oil rose on Monday.", "Oil  rose on MONDAY", "Gold fell."]})
    >>> result = deduplicate(table)
    >>> result.kept["text"].to_pylist()
    ['Oil rose on Monday.', 'Gold fell.']
    >>> result.removed.select(["id", "reason", "duplicate_of"]).to_pylist()
    [{'id': '1', 'reason': 'near_duplicate', 'duplicate_of': '0'}]
    """
    config = DedupConfig(
        exact=exact,
        exact_fold=exact_fold,
        near=NearConfig.named(near) if isinstance(near, str) else near,
        substring=SubstringConfig(min_length=substring) if isinstance(substring, int) else substring,
        scope=scope,
        order=order,
    )
    if config.substring is not None and config.substring.unit != "bytes":
        raise ConfigError("substring.unit is 'tokens': deduplicate() compares bytes; `finpile dedup` compares tokens")
    table = selectable(_table(documents))
    work = _Work(_ordered(_renamed(table, text), scope, order))
    work.run(config)
    return Deduplicated(kept=_kept(table, text, work), removed=work.ledger())


class _Work:
    """The documents, and the removals and spans of the steps so far."""

    def __init__(self, documents: pa.Table) -> None:
        self.documents = documents
        """`COMPARED_SCHEMA`, in the order of the input; `priority` is the position in the order of preference."""
        self.removals = _STAGED_SCHEMA.empty_table()
        self.spans = SPAN_SCHEMA.empty_table()

    def run(self, config: DedupConfig) -> None:
        """Applies all steps of the setting."""
        if config.exact:
            rows = _equal_rows(self.documents, config.exact_fold)
            self._remove(find_duplicates(rows, order=config.order), "exact")
        if config.near is not None:
            self._remove(_near_duplicates(self.remaining(), config.near, config.order), "near")
        if config.substring is not None:
            self._cut(config.substring)
            if self.spans.num_rows:
                rows = _equal_rows(self.remaining(), config.exact_fold)
                self._remove(find_duplicates(rows, repeats.DUPLICATE, config.order), _CUTTING)
        self._redirect()

    def remaining(self) -> pa.Table:
        """Returns the documents that are not removed; their texts are without the removed spans."""
        return self.with_cuts().filter(pa.array(self.is_kept())).combine_chunks()

    def with_cuts(self) -> pa.Table:
        """Returns all documents; their texts are without the removed spans."""
        at = self.documents.schema.get_field_index("text")
        texts = cut_rows(self.documents["text"].combine_chunks(), self.spans)
        return self.documents.set_column(at, self.documents.schema.field(at), texts)

    def is_kept(self) -> np.ndarray[Any, Any]:
        """Returns for each document whether it is kept."""
        kept = np.ones(self.documents.num_rows, bool)
        kept[self.removals["row"].to_numpy()] = False
        return kept

    def ledger(self) -> pa.Table:
        """Returns all removals and spans as rows of the ledger."""
        spans = span_rows(self.documents, self.spans, _CUTTING)
        removed = removal_rows(self.with_cuts(), self.removals)
        order = [(name, "ascending") for name in ("stage", "dataset", "source", "locator", "id", "start", "end")]
        return pa.concat_tables([spans, removed]).cast(LEDGER_SCHEMA).sort_by(order).combine_chunks()

    def _remove(self, removals: pa.Table, stage: str) -> None:
        staged = removals.append_column("stage", pa.array([stage] * removals.num_rows, pa.string()))
        self.removals = pa.concat_tables([self.removals, staged.cast(_STAGED_SCHEMA)])

    def _cut(self, config: SubstringConfig) -> None:
        number = 1
        while config.rounds == "fixpoint" or number <= config.rounds:
            documents = self.remaining()
            found = [_covered(part, config, scope) for scope, part in rows_by_scope(documents)]
            spans = pa.concat_tables([repeats.COVER_SCHEMA.empty_table(), *found]).sort_by(_SPAN_ORDER)
            if spans.num_rows == 0:
                break
            short = short_documents(documents, spans, config.min_chars)
            self.spans = join_spans(self.spans, spans, number)
            self._remove_short(short)
            number += 1

    def _remove_short(self, short: pa.Table) -> None:
        rows = [{"shard": 0, "stage": _CUTTING, **row} for row in short.to_pylist()]
        self.removals = pa.concat_tables([self.removals, pa.Table.from_pylist(rows, _STAGED_SCHEMA)])

    def _redirect(self) -> None:
        rows = self.removals.to_pylist()
        by_id = {row["id"]: row for row in rows if row["duplicate_of"] is not None}
        final = []
        for row in rows:
            for _ in range(MOST_REDIRECTS):
                later = by_id.get(row["duplicate_of"])
                if later is None:
                    break
                row = redirect(row, later)
            final.append(row)
        self.removals = pa.Table.from_pylist(final, schema=_STAGED_SCHEMA)


def _equal_rows(documents: pa.Table, fold: Fold) -> pa.Table:
    """Returns `ROW_SCHEMA` of the current texts of documents; `text_digest` is the digest of the input text."""
    folded = document_digests(documents, fold)
    return pa.table({**_columns(documents), "digest": folded, "text_digest": documents["digest"]}).select(
        ROW_SCHEMA.names
    )


def _columns(documents: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: documents[name] for name in documents.schema.names}


def _near_duplicates(documents: pa.Table, near: NearConfig, order: Order) -> pa.Table:
    """Returns the near duplicates among documents of distinct texts, as `REMOVAL_SCHEMA`."""
    keyed = [_key_rows(part, near, scope, order) for scope, part in rows_by_scope(documents)]
    if not keyed:
        return REMOVAL_SCHEMA.empty_table()
    pairs = buckets.pairs(pa.concat_tables(keyed), order)
    named = clusters.components(pairs)
    members = groups.with_group(documents, "number", named)
    grouped = groups.with_group(pairs.replace_schema_metadata(None), "a", named).sort_by(groups.PAIR_ORDER)
    return groups.resolve_groups(members, grouped, near, order=order)[0]


def _key_rows(documents: pa.Table, near: NearConfig, scope: str, order: Order) -> pa.Table:
    keys = part_by_numbers(minhash.band_keys(documents, near), documents, near)
    keys = minhash.keys_in_scope(keys, scope)
    rank = documents["priority"].to_numpy().astype(np.uint64)
    places = (np.zeros(len(rank), np.uint64), rank) if order == "time" else None
    return buckets.key_rows(keys, documents["number"].to_numpy(), places)


def _covered(documents: pa.Table, config: SubstringConfig, scope: str) -> pa.Table:
    """Returns the repeated text of one scope, as `COVER_SCHEMA`."""
    rank = documents["priority"].to_numpy().astype(np.uint64)
    ids, rows = documents["id"].combine_chunks(), documents["row"].to_numpy()
    shard = Shard(number=0, rows=rows, ids=ids, order_high=np.zeros(len(rank), np.uint64), order_low=rank)
    return repeats.find_cover(Texts.of_bytes(documents["text"]), shard, config, scope).spans


# --- input and output tables


def _table(documents: Any) -> pa.Table:
    if isinstance(documents, pa.RecordBatch):
        return pa.Table.from_batches([documents])
    if hasattr(documents, "__arrow_c_stream__"):
        try:
            return pa.table(documents)
        except pa.ArrowInvalid as error:
            raise InputError(f"the documents have a column of a type that Arrow lacks ({error}): cast it") from error
    raise InputError(f"documents are of type {type(documents).__name__}: expected an Arrow table or a data frame")


def _renamed(table: pa.Table, text: str) -> pa.Table:
    """Returns the table with its text column renamed to `text`."""
    if text not in table.schema.names:
        raise InputError(f"the documents have no column `{text}`; they have {', '.join(table.schema.names)}")
    if text == "text":
        return table
    others = table.drop_columns([name for name in ("text",) if name in table.schema.names])
    return others.append_column("text", others[text]).drop_columns([text])


def _ordered(table: pa.Table, scope: Scope, order: Order) -> pa.Table:
    """Returns `COMPARED_SCHEMA` with the position of each document in the order of preference as `priority`."""
    documents = compared(table, scope)
    content = ("digest", "id") if "id" in table.schema.names else ("row",)
    rows = sort_indices(documents, order, content=content)
    rank = np.empty(documents.num_rows, np.int32)
    rank[rows.to_numpy()] = np.arange(documents.num_rows, dtype=np.int32)
    at = documents.schema.get_field_index("priority")
    return documents.set_column(at, documents.schema.field(at), pa.array(rank))


def _kept(table: pa.Table, text: str, work: _Work) -> pa.Table:
    if work.spans.num_rows:
        at = table.schema.get_field_index(text)
        column = work.with_cuts()["text"].cast(table.schema.field(at).type)
        table = table.set_column(at, table.schema.field(at), column)
    if "num_copies" in table.schema.names:
        at = table.schema.get_field_index("num_copies")
        counted = pa.array(_num_copies(table["num_copies"].to_numpy(), work.removals))
        table = table.set_column(at, table.schema.field(at), counted.cast(table.schema.field(at).type))
    return table.filter(pa.array(work.is_kept()))


def _num_copies(before: np.ndarray[Any, Any], removals: pa.Table) -> np.ndarray[Any, Any]:
    copies = removals.filter(pc.is_valid(removals["kept_row"]))
    counts = before.astype(np.int64)
    np.add.at(counts, copies["kept_row"].to_numpy(), before[copies["row"].to_numpy()])
    return counts
