"""The table of evaluation sets: the results of the stage `contamination`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from finpile.report.figures import count, name
from finpile.report.table import Field, Table, table_of


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalSetFacts:
    """One evaluation set, and how much of it was found in the corpus."""

    set: str
    """The name of the set."""
    items: int
    items_not_checkable: int
    """Items with only texts that are too short for the search."""
    items_found: int
    """Items found in a document."""
    documents: int
    """Documents removed because they contain one of them."""
    first_found: Sequence[str] = ()
    """Names of the first items found."""


_FIELDS: Sequence[Field[EvalSetFacts]] = (
    Field("set", "Set", lambda one: name(one.set)),
    Field("items", "Items", lambda one: count(one.items)),
    Field("items_not_checkable", "Too short", lambda one: count(one.items_not_checkable)),
    Field("items_found", "Found", lambda one: count(one.items_found)),
    Field("documents", "Documents removed", lambda one: count(one.documents)),
)


def evaluation_table(sets: Sequence[EvalSetFacts]) -> Table:
    """One row per set; the notes name items that were found."""
    notes = [
        f"{one.set}: no item is long enough to be looked for."
        for one in sets
        if one.items and one.items_not_checkable == one.items
    ]
    notes += [f"{one.set}: {', '.join(one.first_found)}{_more(one)}." for one in sets if one.first_found]
    return table_of(
        sets,
        _FIELDS,
        name="evaluation",
        title="Evaluation sets",
        caption="Items that were in documents. These documents were removed, from the training and the held-out side; "
        "the ledger tells of each which item it held.",
        footnotes=notes,
    )


def _more(one: EvalSetFacts) -> str:
    left = one.items_found - len(one.first_found)
    return f", and {left:,} more" if left else ""
