"""Runs plans on one table of documents in memory, without Beam."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import (
    ContaminationConfig,
    DedupConfig,
    HeldoutConfig,
    NearConfig,
    SubstringConfig,
    TemplatesConfig,
)
from finpile.dedup.cuts import cut_bytes, cut_documents, join_spans
from finpile.dedup.documents import COMPARED_SCHEMA, Scope, cast_integers, compared, rows_by_scope, selectable
from finpile.dedup.exact import Fold
from finpile.dedup.ledger_rows import removal_rows, span_rows
from finpile.dedup.near import clusters
from finpile.dedup.near.clusters import PAIR_ORDER, with_group
from finpile.dedup.order import Order, sort_indices
from finpile.dedup.plan import (
    IS_REMOVED,
    NUMBER,
    REMOVAL_SCHEMA,
    SPAN_SCHEMA,
    Decision,
    Exchange,
    Groups,
    Part,
    Pass,
    Plan,
    Settings,
    plan_of,
)
from finpile.dedup.redirects import redirect
from finpile.documents.document import with_column
from finpile.documents.labels import check_rule
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import ConfigError, InputError
from finpile.plugins import stages

_STAGED_SCHEMA = REMOVAL_SCHEMA.append(pa.field("stage", pa.string()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Deduplicated:
    """The result of a deduplication, of the same form for all algorithms."""

    kept: pa.Table
    """The input without the removed rows: same columns, types and order. String and binary views (of Polars) become
    large strings and large binary, also inside lists, structs, maps and dictionaries. Spans are cut out of the text.
    `num_copies`, if the input has it, counts what each row represents."""
    removed: pa.Table
    """`finpile.documents.ledger.LEDGER_SCHEMA`: a row for each removed document, and for each span of text that was
    cut."""


def deduplicate(
    documents: Any,
    *,
    exact: bool = True,
    near: NearConfig | Literal["fast", "paper"] | None = "fast",
    substring: SubstringConfig | int | None = None,
    templates: TemplatesConfig | None = None,
    template_group: str = "source",
    heldout: HeldoutConfig | None = None,
    contamination: ContaminationConfig | None = None,
    added: Mapping[str, Any] | None = None,
    exact_fold: Fold = "none",
    scope: Scope = "dataset",
    order: Order = "priority",
    text: str = "text",
    root: str = ".",
) -> Deduplicated:
    """Removes exact duplicates, near duplicates and repeated substrings from a table, and what else is asked for.

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
        templates: A setting for lines that earlier documents of a group have; None keeps them.
        template_group: The groups of `templates`: `source`, `host`, `folder` or `meta.KEY`, as in a corpus file. They
            read the column `source`, `url`, `locator` or `meta`.
        heldout: The temporal split whose `overlap` removes held-out documents that share text with training documents.
        contamination: Evaluation sets; documents that contain their items, in Unicode NFC, are removed.
        added: Settings of algorithms of other packages, by name.
        exact_fold: Differences that equal texts may have.
        order: `time` keeps the earliest copy by `timestamp`, and no decision depends on a later document; see
            `finpile.dedup.order`.
        scope: `dataset` compares documents with the same value in `dataset`, `corpus` all of them. A table without that
            column is one dataset.
        text: The name of the text column.
        root: The folder to which paths of a tokenizer and of evaluation sets are relative.

    Raises:
        InputError: A column is missing, has nulls or another type, or ids are not unique; or Arrow lacks the type of a
            column, or cannot select rows of it; or an evaluation set cannot be read.
        ConfigError: The settings contradict each other, are of another type, or name something that cannot be read.

    >>> table = pa.table({"text": ["Oil rose on Monday.", "Oil  rose on MONDAY", "Gold fell."]})
    >>> result = deduplicate(table)
    >>> result.kept["text"].to_pylist()
    ['Oil rose on Monday.', 'Gold fell.']
    >>> result.removed.select(["id", "reason", "duplicate_of"]).to_pylist()
    [{'id': '1', 'reason': 'near_duplicate', 'duplicate_of': '0'}]
    """
    check_rule("template_group", template_group)
    near = NearConfig.named(near) if isinstance(near, str) else near
    substring = SubstringConfig(min_length=substring) if isinstance(substring, int) else substring
    _check_kinds(
        near=(near, NearConfig),
        substring=(substring, SubstringConfig),
        templates=(templates, TemplatesConfig),
        heldout=(heldout, HeldoutConfig),
        contamination=(contamination, ContaminationConfig),
    )
    dedup = DedupConfig(
        exact=exact,
        exact_fold=exact_fold,
        near=near,
        substring=substring,
        templates=templates,
        scope=scope,
        order=order,
        added={stages.find(name).name: settings for name, settings in (added or {}).items()},
    )
    settings = Settings(
        dedup=dedup,
        heldout=heldout or HeldoutConfig(),
        contamination=contamination,
        template_groups=(template_group,),
        root=root,
    )
    found = {algorithm.name: plan_of(algorithm, settings) for algorithm in stages.algorithms()}
    plans = {name: plan for name, plan in found.items() if plan is not None}
    table = selectable(_checked(_table(documents)))
    work = _Work(_ordered(_renamed(table, text), scope, order, plans))
    for name, plan in plans.items():
        work.run(name, plan)
    work.redirect()
    return Deduplicated(kept=_kept(table, text, work), removed=work.ledger())


class _Work:
    """The documents, and what the plans so far removed."""

    def __init__(self, documents: pa.Table) -> None:
        self.documents = documents
        """`COMPARED_SCHEMA` and more, in the order of the input, without spans of the plans so far; `priority` is the
        position in the order of preference."""
        self.removals = _STAGED_SCHEMA.empty_table()
        self.spans = [LEDGER_SCHEMA.empty_table()]

    def run(self, stage: str, plan: Plan) -> None:
        """Applies one plan."""
        opened = plan.open(plan.read().tables)
        spans = SPAN_SCHEMA.empty_table()
        for one in plan.passes:
            if one.after_cuts and spans.num_rows == 0:
                continue
            number = 1
            while one.rounds == "fixpoint" or number <= one.rounds:
                decided = self._decide(one, cut_documents(self.documents, spans), number, opened)
                staged = decided.removals.append_column("stage", pa.repeat(stage, decided.removals.num_rows))
                self.removals = pa.concat_tables([self.removals, staged.cast(_STAGED_SCHEMA)])
                spans = join_spans(spans, decided.spans)
                if cut_bytes(decided.spans) == 0:
                    break
                number += 1
        self.spans.append(span_rows(self.documents, spans, stage))
        self.documents = cut_documents(self.documents, spans)

    def is_kept(self) -> np.ndarray[Any, Any]:
        """Returns for each document whether it is kept."""
        kept = np.ones(self.documents.num_rows, bool)
        kept[self.removals["row"].to_numpy()] = False
        return kept

    def ledger(self) -> pa.Table:
        """Returns all removals and spans as rows of the ledger."""
        removed = removal_rows(self.documents, self.removals)
        order = [(name, "ascending") for name in ("stage", "dataset", "source", "locator", "id", "start", "end")]
        return pa.concat_tables([*self.spans, removed]).cast(LEDGER_SCHEMA).sort_by(order).combine_chunks()

    def redirect(self) -> None:
        """Redirects duplicates whose kept copy was itself removed as a duplicate."""
        rows = self.removals.to_pylist()
        by_id = {row["id"]: row for row in rows if row["duplicate_of"] is not None}
        final = []
        for row in rows:
            while (later := by_id.get(row["duplicate_of"])) is not None:
                row = redirect(row, later)
            final.append(row)
        self.removals = pa.Table.from_pylist(final, schema=_STAGED_SCHEMA)

    def _decide(self, one: Pass, documents: pa.Table, number: int, opened: Any) -> Decision:
        kept = pa.array(self.is_kept())
        if one.sees_removed:
            documents = documents.append_column(IS_REMOVED, pc.invert(kept))
        else:
            documents = documents.filter(kept).combine_chunks()
        parts = [
            Part(
                documents=_with_shard(part, shard),
                number=shard,
                scope=scope,
                is_ranked=True,
                round=number,
                opened=opened,
            )
            for shard, (scope, part) in enumerate(rows_by_scope(documents))
        ]
        if not parts:
            return Decision()
        removals = REMOVAL_SCHEMA.empty_table()
        for step in one.steps:
            if isinstance(step, Groups):
                removals = _resolve(step, parts)
            else:
                parts, removals = _exchange(step, parts)
        if one.decide is None:
            return Decision(removals)
        decided = [one.decide(part) for part in parts]
        return Decision(*(pa.concat_tables(getattr(one, name) for one in decided) for name in ("removals", "spans")))


def _exchange(step: Exchange, parts: list[Part]) -> tuple[list[Part], pa.Table]:
    """Returns the parts with the replies, and all replies."""
    sent = [step.rows(part) for part in parts]
    rows = pa.concat_tables([step.sends.empty_table(), *(one.rows for one in sent)])
    replies = step.answer(rows).rows if rows.num_rows else step.replies.empty_table()
    shards = replies["shard"].to_numpy()
    received = [
        replace(
            part,
            replies={**part.replies, step.name: replies.filter(pa.array(shards == part.number)).combine_chunks()},
            kept={**part.kept, step.name: one.kept},
        )
        for part, one in zip(parts, sent, strict=True)
    ]
    return received, replies


def _resolve(step: Groups, parts: list[Part]) -> pa.Table:
    """Returns the removals of all groups."""
    parts = list(map(step.prepared, parts))
    pairs = step.pairs(pa.concat_tables([step.sends.empty_table(), *map(step.keys, parts)])).rows
    named = clusters.components(pairs)
    members = with_group(pa.concat_tables(part.documents for part in parts), NUMBER, named)
    return step.resolve(members, with_group(pairs, "a", named).sort_by(PAIR_ORDER)).rows


def _with_shard(documents: pa.Table, shard: int) -> pa.Table:
    return with_column(documents, "shard", pa.array(np.full(documents.num_rows, shard, np.int32)))


def _check_kinds(**settings: tuple[Any, type]) -> None:
    """Raises: ConfigError for a setting that is of another kind than the one beside it."""
    for name, (setting, kind) in settings.items():
        if setting is not None and not isinstance(setting, kind):
            raise ConfigError(f"{name} is {setting!r}: expected a {kind.__name__} or None")


# --- input and output tables


def _table(documents: Any) -> pa.Table:
    if isinstance(documents, pa.RecordBatch):
        return pa.Table.from_batches([documents])
    if hasattr(documents, "__arrow_c_stream__"):
        try:
            return pa.table(documents)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InputError(f"the documents have a column of a type that Arrow lacks ({error}): cast it") from error
        except UnicodeEncodeError as error:
            raise InputError(f"a value of the documents has half of a character ({error}): replace it") from error
    raise InputError(f"documents are of type {type(documents).__name__}: expected an Arrow table or a data frame")


def _checked(table: pa.Table) -> pa.Table:
    """Raises: InputError for two columns of one name, or `num_copies` that are not whole numbers."""
    names = table.schema.names
    for name in [name for name in dict.fromkeys(names) if names.count(name) > 1][:1]:
        raise InputError(f"the documents have {names.count(name)} columns `{name}`: expected one of each name")
    if "num_copies" in names:
        column = table["num_copies"]
        if not pa.types.is_integer(column.type) or column.null_count:
            nulls = f" with {column.null_count:,} nulls" if column.null_count else ""
            raise InputError(f"column `num_copies` is {column.type}{nulls}: expected whole numbers")
    return table


def _renamed(table: pa.Table, text: str) -> pa.Table:
    """Returns the table with its text column renamed to `text`."""
    if text not in table.schema.names:
        raise InputError(f"the documents have no column `{text}`; they have {', '.join(table.schema.names)}")
    if text == "text":
        return table
    others = table.drop_columns([name for name in ("text",) if name in table.schema.names])
    return others.append_column("text", others[text]).drop_columns([text])


def _ordered(table: pa.Table, scope: Scope, order: Order, plans: Mapping[str, Plan]) -> pa.Table:
    """Returns `COMPARED_SCHEMA` with the position of each document in the order of preference as `priority`, and the
    further columns that the plans read."""
    if order == "time" and "timestamp" not in table.schema.names:
        raise InputError("the documents have no column `timestamp`: the order of time reads it")
    documents = compared(table, scope)
    content = ("digest", "id") if "id" in table.schema.names else ("row",)
    rows = sort_indices(documents, order, content=content)
    rank = np.empty(documents.num_rows, np.int32)
    rank[rows.to_numpy()] = np.arange(documents.num_rows, dtype=np.int32)
    documents = with_column(documents, "priority", pa.array(rank))
    for name, column in _further(plans):
        if column not in table.schema.names:
            raise InputError(f"the documents have no column `{column}`: {name} reads it")
        documents = documents.append_column(column, table[column].cast(pa.string()))
    return documents


def _further(plans: Mapping[str, Plan]) -> Iterator[tuple[str, str]]:
    """The columns that plans read besides `COMPARED_SCHEMA`, each with the name of the plan."""
    known = {*COMPARED_SCHEMA.names, IS_REMOVED}
    for name, plan in plans.items():
        for one in plan.passes:
            for column in dict.fromkeys(column for step in (*one.steps, one) for column in step.reads):
                if column not in known:
                    known.add(column)
                    yield name, column


def _kept(table: pa.Table, text: str, work: _Work) -> pa.Table:
    if any(spans.num_rows for spans in work.spans):
        table = with_column(table, text, work.documents["text"])
    if "num_copies" in table.schema.names:
        counted = pa.array(_num_copies(table["num_copies"].to_numpy(), work.removals))
        counted = cast_integers(counted, "num_copies", table["num_copies"].type)
        table = with_column(table, "num_copies", counted)
    return table.filter(pa.array(work.is_kept()))


def _num_copies(before: np.ndarray[Any, Any], removals: pa.Table) -> np.ndarray[Any, Any]:
    is_copy = pc.is_in(removals["stage"], pa.array(stages.copy_stages(), pa.string()))
    copies = removals.filter(pc.and_(is_copy, pc.is_valid(removals["kept_row"])))
    counts = before.astype(np.int64)
    np.add.at(counts, copies["kept_row"].to_numpy(), before[copies["row"].to_numpy()])
    return counts
