"""What changed from another build to this one: documents that were decided otherwise, by source and reason.

Only ids and reasons are read, not texts. Memory grows with the documents of both builds, by about 60 bytes each.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.explorer.corpus import Corpus
from finpile.explorer.ids import ID, packed
from finpile.output.layout import row_of, values_in_path

#: The state of a document that a build has not read.
ABSENT = "not read"
#: Documents of a change that are named.
MOST_EXAMPLES = 20
_STATES = pa.schema([("id", ID), ("source", pa.string()), ("state", pa.string())])
_CUTS = pa.schema([("source", pa.string()), ("reason", pa.string()), ("spans", pa.int64()), ("bytes", pa.int64())])


def changes(this: Corpus, other: Corpus) -> dict[str, Any]:
    """The documents whose state differs, by source, and the spans that were cut, if they are other ones.

    A state is the split of a kept document, STAGE/REASON of a removed one, or `not read`.

    Raises: IntegrityError if a file is missing or damaged.
    """
    (before, cut_before), (after, cut_after) = (_states(corpus) for corpus in (other, this))
    joined = before.join(after, "id", join_type="full outer", left_suffix="_before", right_suffix="_after")
    columns = {
        "id": joined["id"],
        "source": pc.coalesce(joined["source_after"], joined["source_before"]),
        "before": pc.fill_null(joined["state_before"], ABSENT),
        "after": pc.fill_null(joined["state_after"], ABSENT),
    }
    table = pa.table(columns)
    differing = table.filter(pc.not_equal(table["before"], table["after"])).sort_by("id")
    keys = ["source", "before", "after"]
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in differing.to_pylist():
        entry = found.setdefault(tuple(row[key] for key in keys), {"documents": 0, "examples": []})
        entry["documents"] += 1
        if len(entry["examples"]) < MOST_EXAMPLES:
            entry["examples"].append(row["id"].hex())
    ordered = sorted(found.items(), key=lambda item: (-item[1]["documents"], item[0]))
    return {
        "name": other.manifest["name"],
        "checksum": other.checksum,
        "same": table.num_rows - differing.num_rows,
        "documents": [{**dict(zip(keys, key, strict=True)), **entry} for key, entry in ordered],
        "cuts": _differing_cuts(cut_before, cut_after),
    }


def _states(corpus: Corpus) -> tuple[pa.Table, dict[tuple[str, str], tuple[int, int]]]:
    """The state of each document, and the spans and bytes that were cut by (source, STAGE/REASON)."""
    parts, cuts = [_STATES.empty_table()], [_CUTS.empty_table()]
    for file in corpus.files.below("documents"):
        table = file.pages(["id", "split"])
        source = pa.repeat("/".join(row_of(file.path)), table.num_rows)
        columns = {"id": packed(table["id"]), "source": source, "state": table["split"].cast(pa.string())}
        parts.append(pa.table(columns, schema=_STATES))
    for file in corpus.files.below("removed"):
        rows = file.pages(["id", "dataset", "source", "reason", "start", "end"])
        stage = values_in_path(file.path)["stage"]
        reasons = pc.binary_join_element_wise(stage, rows["reason"].cast(pa.string()), "/")
        sources = pc.binary_join_element_wise(*(rows[name].cast(pa.string()) for name in ("dataset", "source")), "/")
        whole = pc.is_null(rows["start"])
        states = pa.table({"id": packed(rows["id"]), "source": sources, "state": reasons}, schema=_STATES)
        parts.append(states.filter(whole))
        sizes = pc.subtract(rows["end"], rows["start"])
        spans = pa.table({"source": sources, "reason": reasons, "spans": pc.sign(sizes), "bytes": sizes})
        cuts.append(spans.cast(_CUTS).filter(pc.invert(whole)))
    # A record of which parts could not be read can have several rows: the first state is that of the kept document.
    states = pa.concat_tables(parts)
    first = states.group_by("id", use_threads=False).aggregate([("source", "first"), ("state", "first")])
    summed = pa.concat_tables(cuts).group_by(["source", "reason"]).aggregate([("spans", "sum"), ("bytes", "sum")])
    counted = {(row["source"], row["reason"]): (row["spans_sum"], row["bytes_sum"]) for row in summed.to_pylist()}
    return first.rename_columns({"source_first": "source", "state_first": "state"}), counted


def _differing_cuts(
    before: dict[tuple[str, str], tuple[int, int]], after: dict[tuple[str, str], tuple[int, int]]
) -> list[dict[str, Any]]:
    none = (0, 0)
    return [
        {"source": key[0], "reason": key[1], "before": before.get(key, none), "after": after.get(key, none)}
        for key in sorted({*before, *after})
        if before.get(key, none) != after.get(key, none)
    ]
