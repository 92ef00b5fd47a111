"""The plan of decontamination.

    grams    each part: matches, which it keeps; document counts of matched grams --by gram--> boilerplate
    decide   each part: the documents whose matches without boilerplate cover enough of an item are removed

Each process builds one index of the evaluation items. Texts are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import ContaminationConfig, to_dict
from finpile.dedup.contamination import REASON, evaluation_index
from finpile.dedup.contamination.eval_sets import load_items, set_files
from finpile.dedup.contamination.evaluation_index import EvalIndex
from finpile.dedup.plan import (
    REMOVAL_SCHEMA,
    Answer,
    Decision,
    Exchange,
    Found,
    Inputs,
    Part,
    Pass,
    Plan,
    Sent,
    Settings,
)

#: The number of found items of a set that the counts name; the ledger has every document.
_NUM_NAMED = 5
#: A part's matches: `row` is the row of the part, `id` the document's id.
MATCH_SCHEMA = evaluation_index.MATCH_SCHEMA.append(pa.field("id", pa.string()))
#: The number of documents of a part that contain a gram.
COUNT_SCHEMA = evaluation_index.COUNT_SCHEMA.append(pa.field("shard", pa.int32()))
#: A gram of a part that is boilerplate.
BOILERPLATE_SCHEMA = pa.schema([("gram", pa.int32()), ("shard", pa.int32())])


def plan(settings: Settings) -> Plan | None:
    """Documents that contain items of evaluation sets are removed."""
    config = settings.contamination
    if config is None:
        return None
    search = _Search(config)
    grams = Exchange(
        name="grams",
        reads=("text",),
        rows=search.find,
        sends=COUNT_SCHEMA,
        answer=search.count,
        replies=BOILERPLATE_SCHEMA,
        keeps=MATCH_SCHEMA,
        key="gram",
        share=0.9,
    )
    return Plan(
        passes=(Pass(name="find", steps=(grams,), decide=search.decide),),
        settings=[to_dict(config)],
        counts=_counts,
        kernels=("finpile.dedup.contamination.evaluation_index",),
        read=partial(_read, config, settings.root),
        open=search.open,
    )


def _read(config: ContaminationConfig, root: str) -> Inputs:
    """Reads the evaluation sets. Raises: InputError if a file is missing or does not have the form that is declared."""
    files = [file for one in config.sets for file in set_files(one, root)]
    listed = [[file.locator, file.size_bytes, file.version] for file in files]
    return Inputs(listed, {"items": load_items(config.sets, root)})


@dataclass(frozen=True, slots=True)
class _Search:
    """The functions of the pass, with their settings."""

    config: ContaminationConfig

    def open(self, tables: Mapping[str, pa.Table]) -> EvalIndex:
        return EvalIndex.build(tables["items"], self.config)

    def find(self, part: Part) -> Sent:
        """The number of documents with each gram, by gram; the part keeps the matches."""
        matches = part.opened.find(part.documents)
        counts = evaluation_index.count_documents(matches)
        names = part.documents.select(["row", "id"]).take(matches["row"])
        rows = names["row"].cast(pa.int64())
        kept = matches.set_column(0, MATCH_SCHEMA.field("row"), rows).append_column("id", names["id"])
        shards = np.full(counts.num_rows, part.number, np.int32)
        return Sent(counts.append_column(COUNT_SCHEMA.field("shard"), pa.array(shards)), kept.cast(MATCH_SCHEMA))

    def count(self, rows: pa.Table) -> Answer:
        """The boilerplate among the grams of each part."""
        total = evaluation_index.sum_counts([rows.select(evaluation_index.COUNT_SCHEMA.names)])
        dropped = evaluation_index.boilerplate(total, self.config)
        found = rows.filter(pc.is_in(rows["gram"], dropped)).select(BOILERPLATE_SCHEMA.names)
        return Answer(found.cast(BOILERPLATE_SCHEMA), {"grams_met": total.num_rows, "grams_dropped": len(dropped)})

    def decide(self, part: Part) -> Decision:
        matches, boilerplate = part.kept["grams"], part.replies["grams"]["gram"].combine_chunks()
        overlaps = evaluation_index.decide(matches, boilerplate, part.opened)
        ids = dict(zip(matches["row"].to_pylist(), matches["id"].to_pylist(), strict=True))
        removals = [
            {
                "id": ids[row],
                "shard": part.number,
                "row": row,
                "reason": REASON,
                "detail": detail,
            }
            for row, detail in evaluation_index.condemned(overlaps)
        ]
        return Decision(pa.Table.from_pylist(removals, schema=REMOVAL_SCHEMA), counts={"sets": _by_set(overlaps)})


def _by_set(overlaps: pa.Table) -> dict[str, Any]:
    """For each set, the number of documents with an item of it and the names of these items."""
    found = {}
    for name in pc.unique(overlaps["set"]).to_pylist():
        mine = overlaps.filter(pc.equal(overlaps["set"], name))
        found[name] = {"documents": len(mine["row"].unique()), "items": sorted(mine["item"].unique().to_pylist())}
    return found


def _counts(found: Found, index: EvalIndex) -> dict[str, Any]:
    (searched,) = found["find"]
    sums = {name: searched.sums[name] for name in ("removed", "grams_met", "grams_dropped")}
    return {**sums, "sets": _set_counts(index, searched.outcomes)}


def _set_counts(index: EvalIndex, outcomes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each set, in order: its items, those too short to search for, and those found."""
    by_part = [outcome["sets"] for outcome in outcomes]
    items, unchecked = index.items, index.not_checkable()
    rows = []
    for one in index.config.sets:
        mine = [sets[one.name] for sets in by_part if one.name in sets]
        found = sorted({item for entry in mine for item in entry["items"]})
        rows.append(
            {
                "set": one.name,
                "items": pc.sum(pc.equal(items["set"], one.name)).as_py(),
                "items_not_checkable": pc.sum(pc.equal(unchecked["set"], one.name)).as_py() or 0,
                "items_found": len(found),
                "documents": sum(entry["documents"] for entry in mine),
                "first_found": found[:_NUM_NAMED],
            }
        )
    return rows
