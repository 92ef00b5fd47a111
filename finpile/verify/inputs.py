"""Checks of inputs: each byte that was read belongs to a record, to the ledger, or to the structure of its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean.stage.parts import divided
from finpile.documents.document import Label, label_of
from finpile.documents.sums import add_counts
from finpile.output.manifest import CERTIFICATE, SNAPSHOT
from finpile.sources.readers.accounting import SUMS
from finpile.sources.readers.base import structure_of
from finpile.verify.check import Check
from finpile.verify.output import Output

_Sums = dict[Label, dict[str, Any]]
_Inputs = Counter[tuple[Label, str, str]]
_Rows = list[dict[str, Any]]
#: What the manifest counts of a source's inputs, and what documents and ledger have of one input.
_OF_SOURCE, _OF_INPUT = (*SUMS, "files", "input_bytes"), ("documents", "removals", "removed_bytes")
_NOTHING: Mapping[str, Any] = {**dict.fromkeys(_OF_SOURCE, 0), "structure": {}}
_PLACE = ("dataset", "source", "locator")
_INGEST = "removed/stage=ingest/"
#: The last part of a locator.
_CONTINUED = "[#!/][^#!/]*$"


def checks(output: Output) -> list[Check]:
    """Reads the accounts, the places of documents, and the ledger but for the texts of later stages.

    A corpus as of a day has no accounts of its own: those of the whole build count later documents.
    """
    if CERTIFICATE in output.manifest:
        return []
    accounts = [row for _, table in output.tables("inputs") for row in table.to_pylist()]
    sources = output.config["sources"]
    split = {entry["dataset"] for entry in sources if not isinstance(entry["name"], str)}
    rows = [_joined({**row, **_of_file(row), "structure": dict(row["structure"])}, split) for row in accounts]
    counted = [_joined(row, split) for row in output.counts["ingest"]["sources"]]
    counts, sums = _summed(counted, _OF_SOURCE), _summed(rows, _OF_SOURCE)
    kinds = {kind for entry in sources for kind in structure_of(entry["format"])}
    wrong = [f"{row['locator']}: {problem}" for row in rows if (problem := _imbalance(row, kinds))]
    total = sum(row["decompressed_bytes"] for row in rows)
    return [
        Check.of(
            "bytes read = records + ledger + members + structure, for every input file",
            wrong + _members_differ(rows),
            f"{total:,} bytes of {len(rows):,} inputs",
        ),
        Check.of(
            "the accounts of inputs are those of the documents and the ledger",
            _sums_differ(sums, counts) + _inputs_differ(output, rows, split),
            f"{len(counts)} sources",
        ),
    ]


def _of_file(row: Mapping[str, Any]) -> dict[str, int]:
    """What an account adds to the files of its source: nothing for a member of an archive."""
    return {"files": 0, "input_bytes": 0} if row["archive"] else {"files": 1, "input_bytes": row["stored_bytes"]}


def _imbalance(row: Mapping[str, Any], kinds: Collection[str]) -> str | None:
    """A message about an account that does not add up; None if it does."""
    unknown = sorted(set(row["structure"]) - set(kinds))
    if unknown:
        return f"structure of no known kind: {', '.join(unknown)}"
    claimed = row["record_bytes"] + row["ledger_bytes"] + row["member_bytes"] + sum(row["structure"].values())
    difference = row["decompressed_bytes"] - claimed
    return f"{difference} bytes of {row['decompressed_bytes']} are not accounted for" if difference else None


def _members_differ(rows: _Rows) -> list[str]:
    """Archives that have no account, or whose members' accounts do not add up to their bytes; a .zip counts its own
    bytes alone."""
    inside: Counter[str] = Counter()
    for row in rows:
        if row["archive"] is not None:
            inside[f"{row['dataset']}/{row['source']}/{row['archive']}"] += row["stored_bytes"]
    there = {f"{row['dataset']}/{row['source']}/{row['locator']}" for row in rows}
    wrong = [f"{archive} has members and no account" for archive in sorted(inside.keys() - there)]
    for row in rows:
        found = inside[f"{row['dataset']}/{row['source']}/{row['locator']}"]
        if row["member_bytes"] and row["member_bytes"] != found:
            wrong.append(f"{row['locator']}: its members have {found} bytes, and it counts {row['member_bytes']}")
    return wrong


def _sums_differ(sums: _Sums, counts: _Sums) -> list[str]:
    """Sources whose sums in the manifest are not those of the accounts."""
    return [
        f"{'/'.join(name)}: {key} {source[key]} in the manifest, {found} in inputs/"
        for name, source in counts.items()
        for key in _OF_SOURCE
        if (found := sums.get(name, _NOTHING)[key]) != source[key]
    ]


def _inputs_differ(output: Output, rows: _Rows, split: Collection[str]) -> list[str]:
    """Inputs of which documents and ledger have other numbers than their accounts, and locators of no input.

    Inputs that became no document and were taken down have passed the stage, without their bytes: with such, documents
    and rows are compared as a sum.
    """
    names = dict(zip(_OF_INPUT, _OF_INPUT, strict=True))
    if output.manifest.get(SNAPSHOT, {}).get("takedowns"):
        names = dict.fromkeys(_OF_INPUT[:2], "documents and removals")
    accounts: _Inputs = Counter()
    found: _Inputs = Counter()
    locators: dict[Label, list[str]] = {}
    for row in rows:
        locators.setdefault(label_of(row), []).append(row["locator"])
        for name, counted in names.items():
            accounts[label_of(row), row["locator"], counted] += row[name]
    known = {source: pa.array(names_of, pa.string()) for source, names_of in locators.items()}
    wrong = []
    for kind, label, records in _outcomes(output):
        source = label_of(_joined({"dataset": label[0], "source": label[1]}, split))
        inputs = _inputs_of(records["locator"], known.get(source, pa.array([], pa.string())))
        unknown = records["locator"].filter(pc.is_null(inputs)).to_pylist()
        wrong += [f"{'/'.join(source)}: {locator} is in no input of inputs/" for locator in unknown]
        sums = pa.table({"input": inputs, "bytes": records["bytes"]}).group_by("input")
        for row in sums.aggregate([("bytes", "sum"), ([], "count_all")]).to_pylist():
            found[source, row["input"], names[kind]] += row["count_all"]
            if "removed_bytes" in names:
                found[source, row["input"], names["removed_bytes"]] += row["bytes_sum"]
    return wrong + [
        f"{'/'.join(source)}: {name} {found[source, locator, name]} of {locator}, {value} in inputs/"
        for (source, locator, name), value in sorted(accounts.items())
        if found[source, locator, name] != value
    ]


def _outcomes(output: Output) -> Iterator[tuple[str, Label, pa.Table]]:
    """The locators of the records of a source that became documents, or rows of `ingest`, which have `bytes`.

    Parts of a document are one.
    """
    has_parts = {label_of(row) for row in output.counts["clean"]["sources"] if "parts_more" in row}
    seen: set[tuple[Label, str]] = set()
    for path in (*output.paths("documents"), *output.paths("removed")):
        is_removal = path.startswith(_INGEST)
        columns = () if path.startswith("documents/") else ("start", *(("removed_text",) if is_removal else ()))
        table = output.table(path, [*_PLACE, *columns])
        table = table.filter(pc.is_null(table["start"])) if columns else table
        sizes = pc.binary_length(table["removed_text"]) if is_removal else pa.repeat(pa.scalar(0), table.num_rows)
        table = table.select(_PLACE).append_column("bytes", sizes)
        for label in map(label_of, table.group_by(list(_PLACE[:2]), use_threads=False).aggregate([]).to_pylist()):
            is_mine = (pc.equal(table[name], value) for name, value in zip(_PLACE, label, strict=False))
            rows = table.filter(pc.and_(*is_mine))
            if label in has_parts:
                rows = rows.filter(pa.array(_are_first(label, rows["locator"].to_pylist(), seen), pa.bool_()))
            yield "removals" if is_removal else "documents", label, rows


def _are_first(label: Label, locators: Iterable[str], seen: set[tuple[Label, str]]) -> list[bool]:
    """Which of the records are no part of a document, or the first one that is; adds the documents to `seen`."""
    found = []
    for whole in map(divided, locators):
        found.append(whole is None or (label, whole) not in seen)
        if whole is not None:
            seen.add((label, whole))
    return found


def _inputs_of(locators: pa.ChunkedArray, known: pa.Array) -> pa.ChunkedArray:
    """The locators of the inputs that records are in, which theirs continue with `#`, `!` or `/`; null if there is
    none."""
    while True:
        is_known = pc.is_in(locators, known)
        shorter = pc.if_else(is_known, locators, pc.replace_substring_regex(locators, _CONTINUED, ""))
        if shorter.equals(locators):
            return pc.if_else(is_known, locators, pa.scalar(None, pa.string()))
        locators = shorter


def _joined(row: Mapping[str, Any], split: Collection[str]) -> dict[str, Any]:
    """The row of a source; in a dataset where records choose their row, that of all its sources.

    The account of a file is about all rows of its records, so that only the sums over them can be compared.
    """
    return {**row, "source": "all sources"} if row["dataset"] in split else dict(row)


def _summed(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> _Sums:
    """The sums of counts by source; that of `structure` by kind."""
    keys = ("dataset", "source")
    sums = add_counts(({name: row[name] for name in (*keys, *names)} for row in rows), keys)
    return {label_of(row): row for row in sums}
