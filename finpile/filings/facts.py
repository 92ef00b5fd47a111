"""Facts of Inline XBRL: a column of clean documents, and the rows of the table `facts/` of a corpus.

`facts/` has a file for each file of `documents/` that has documents with facts, under the same name. Its rows are the
facts of these documents, in the order of the documents and of the page.

A fact has the bytes of its document's text that show it, from `start` to `end`; null if the text does not show it, as
for a hidden fact, or if a part of these bytes was cut. A fact whose document is removed is removed with it.

Source: Inline XBRL 1.1, https://www.xbrl.org/specification/inlinexbrl-part1/rec-2013-11-18/inlinexbrl-part1-rec-2013-11-18.html
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_I64 = npt.NDArray[np.int64]

_OF_FACT = (
    pa.field("fact", pa.int32(), nullable=False),
    pa.field("concept", pa.string(), nullable=False),
    pa.field("value", pa.string()),
    pa.field("shown", pa.string()),
    pa.field("unit", pa.string()),
    pa.field("decimals", pa.string()),
    pa.field("sign", pa.string()),
    pa.field("period_start", pa.date32()),
    pa.field("period_end", pa.date32()),
    pa.field("dimensions", pa.map_(pa.string(), pa.string()), nullable=False),
    pa.field("filer", pa.string()),
    pa.field("hidden", pa.bool_(), nullable=False),
    pa.field("start", pa.int64()),
    pa.field("end", pa.int64()),
)
_OF_DOCUMENT = (
    pa.field("form", pa.string()),
    pa.field("accession", pa.string()),
    pa.field("filed", pa.date32()),
    pa.field("accepted", pa.timestamp("s")),
    pa.field("timestamp", pa.timestamp("s", tz="UTC")),
)
#: The column of documents between `clean` and `split`.
FACTS = pa.field("facts", pa.list_(pa.struct(_OF_FACT)), nullable=False)
#: The files of `facts/`.
FACT_SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), *_OF_FACT, *_OF_DOCUMENT])
#: Counts of figures by `finpile.clean.html.table_shares`: in rows with a label, in a line that has it, in grids below a
#: head, in a column that has it.
TABLE_COUNTS = ("row_figures", "row_figures_found", "head_figures", "head_figures_found")
#: Columns of `facts/` and the keys of `meta` from which they are.
_META = {"form": "form_type", "accession": "accession", "filed": "filed", "accepted": "accepted"}
_FORMS = {"filed": "%Y%m%d", "accepted": "%Y%m%d%H%M%S"}


def no_facts(num_documents: int) -> pa.Array:
    """The column of documents without facts."""
    return pa.ListArray.from_arrays(np.zeros(num_documents + 1, np.int32), pa.array([], FACTS.type.value_type))


def flat_facts(documents: pa.RecordBatch | pa.Table) -> pa.Table:
    """The facts of documents with the column `facts`; `row` is the row of the document."""
    column = documents[FACTS.name]
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    flat = pa.Table.from_struct_array(pc.list_flatten(column))
    return flat.append_column("row", pc.list_parent_indices(column).cast(pa.int64()))


def fact_table(documents: pa.Table) -> pa.Table:
    """The rows of `facts/` of documents with the column `facts`, as `FACT_SCHEMA`."""
    facts = flat_facts(documents)
    rows, of = np.unique(facts["row"].to_numpy(), return_inverse=True)
    owners = documents.select(["id", "meta", "timestamp"]).take(pa.array(rows))
    metas = [json.loads(meta) for meta in owners["meta"].to_pylist()]
    columns = {name: pa.array([_text(meta.get(key)) for meta in metas], pa.string()) for name, key in _META.items()}
    for name, form in _FORMS.items():
        columns[name] = pc.strptime(columns[name], format=form, unit="s", error_is_null=True)
    columns |= {"id": owners["id"], "timestamp": owners["timestamp"]}
    of_rows = pa.table(columns).take(pa.array(of))
    found = {name: facts[name] if name in facts.column_names else of_rows[name] for name in FACT_SCHEMA.names}
    return pa.table({name: column.cast(FACT_SCHEMA.field(name).type) for name, column in found.items()}).cast(
        FACT_SCHEMA
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def fact_counts(facts: pa.Table) -> dict[str, int]:
    """`facts` and `facts_found`: the figures that pages show, and those of them that the texts have; empty without any.

    Facts that are hidden, or whose figure has no digit (a dash for zero, a number in words), do not count.
    """
    is_number = pc.is_valid(facts["unit"])
    if not pc.any(is_number).as_py():
        return {}
    has_digit = pc.fill_null(pc.match_substring_regex(facts["shown"], "[0-9]"), False)
    is_figure = pc.and_(pc.and_(is_number, has_digit), pc.invert(facts["hidden"]))
    is_found = pc.and_(is_figure, pc.is_valid(facts["start"]))
    return {"facts": pc.sum(is_figure).as_py() or 0, "facts_found": pc.sum(is_found).as_py() or 0}


def is_shown(shown: str | None, text: str) -> bool:
    """Whether a part of a text is what a page shows of a fact; True for a long one, of which that is not kept."""
    return shown is None or shown == text or _printed(shown) == _printed(text)


def _printed(text: str) -> str:
    """Without white space, control characters and the escapes of Markdown."""
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    return "".join(sign for sign in composed if sign.isprintable() and not sign.isspace() and sign != "\\")


def with_cuts(documents: pa.Table, rows: _I64, starts: _I64, ends: _I64) -> pa.Table:
    """Documents whose `facts` are at their places after the bytes `starts` to `ends` of the texts of `rows` are cut.

    The texts are those before the cuts.
    """
    facts = flat_facts(documents)
    if not facts.num_rows or not len(rows):
        return documents
    sizes = pc.binary_length(documents["text"]).to_numpy()
    first = np.concatenate([[0], np.cumsum(sizes + 1)])
    order = np.lexsort((starts, rows))
    offsets = first[facts["row"].to_numpy()]
    spans = [pc.fill_null(facts[name], -1).to_numpy() for name in ("start", "end")]
    moved = places_after(
        offsets, offsets + spans[0], offsets + spans[1], (first[rows] + starts)[order], (first[rows] + ends)[order]
    )
    is_there = pa.array(moved[2] & (spans[0] >= 0))
    null = pa.scalar(None, pa.int64())
    for name, value in zip(("start", "end"), moved, strict=False):
        place = facts.schema.get_field_index(name)
        column = pc.if_else(is_there, pa.array(value - offsets), null)
        facts = facts.set_column(place, facts.schema.field(name), column)
    column = documents[FACTS.name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    values = facts.drop_columns(["row"]).combine_chunks().to_struct_array().combine_chunks()
    lengths = pc.list_value_length(column).to_numpy()
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    whole = pa.ListArray.from_arrays(pa.array(bounds), values.cast(FACTS.type.value_type)).cast(FACTS.type)
    return documents.set_column(documents.schema.get_field_index(FACTS.name), FACTS, whole)


def places_after(
    begins: _I64, starts: _I64, ends: _I64, cut_starts: _I64, cut_ends: _I64, masks: Sequence[int] | _I64 = ()
) -> tuple[_I64, _I64, npt.NDArray[np.bool_]]:
    """Where parts of a text are after cuts, which ascend and do not overlap, and whether none of them was cut.

    `begins` are the beginnings of the texts of the parts; cuts before it do not count. `masks` are the sizes of what is
    written in the place of cuts.
    """
    lost = cut_ends - cut_starts - (np.asarray(masks, np.int64) if len(masks) else 0)
    total = np.concatenate([[0], np.cumsum(lost)])
    before = np.searchsorted(cut_ends, starts, "right")
    is_whole = np.searchsorted(cut_starts, ends, "left") <= before
    moved = total[before] - total[np.searchsorted(cut_ends, begins, "right")]
    return starts - moved, ends - moved, is_whole
