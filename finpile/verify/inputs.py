"""Checks of inputs: each byte that was read belongs to a record, to the ledger, or to the structure of its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from finpile.counts.stages import label_of
from finpile.documents.document import Label
from finpile.documents.sums import add_counts
from finpile.output.manifest import CERTIFICATE, SNAPSHOT
from finpile.sources.readers.accounting import SUMS
from finpile.sources.readers.base import structure_of
from finpile.verify.check import Check
from finpile.verify.output import Output

_Sums = dict[Label, dict[str, Any]]
#: What the manifest counts of a source's inputs, and what the ledger does.
_OF_MANIFEST, _OF_LEDGER = ("files", "input_bytes", "documents"), ("removals", "removed_bytes")
_NOTHING: Mapping[str, Any] = {**dict.fromkeys((*SUMS, *_OF_MANIFEST, *_OF_LEDGER), 0), "structure": {}}


def checks(output: Output) -> list[Check]:
    """Reads the accounts, and the ledger's rows of the stage `ingest`.

    A corpus as of a day has no accounts of its own: those of the whole build count later documents.
    """
    if CERTIFICATE in output.manifest:
        return []
    accounts = [row for _, table in output.tables("inputs") for row in table.to_pylist()]
    sources = output.config["sources"]
    split = {entry["dataset"] for entry in sources if not isinstance(entry["name"], str)}
    rows = [_joined({**row, **_of_file(row), "structure": dict(row["structure"])}, split) for row in accounts]
    counted = [_joined(row, split) for row in output.counts["ingest"]["sources"]]
    counts, sums = _summed(counted, (*SUMS, *_OF_MANIFEST)), _summed(rows, tuple(_NOTHING))
    kinds = {kind for entry in sources for kind in structure_of(entry["format"])}
    wrong = [f"{row['locator']}: {problem}" for row in rows if (problem := _imbalance(row, kinds))]
    total = sum(row["decompressed_bytes"] for row in rows)
    has_takedowns = bool(output.manifest.get(SNAPSHOT, {}).get("takedowns"))
    return [
        Check.of(
            "bytes read = records + ledger + members + structure, for every input file",
            wrong + _members_differ(rows),
            f"{total:,} bytes of {len(rows):,} inputs",
        ),
        Check.of(
            "the accounts of inputs are those of the documents and the ledger",
            _sums_differ(sums, counts) + _counts_differ(sums, counts, _ledger(output, split), has_takedowns),
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


def _members_differ(rows: list[dict[str, Any]]) -> list[str]:
    """Archives whose members' accounts do not add up to their bytes; a .zip counts its own bytes alone."""
    inside: Counter[str] = Counter()
    for row in rows:
        if row["archive"] is not None:
            inside[f"{row['dataset']}/{row['source']}/{row['archive']}"] += row["stored_bytes"]
    wrong = []
    for row in rows:
        found = inside[f"{row['dataset']}/{row['source']}/{row['locator']}"]
        if row["member_bytes"] and row["member_bytes"] != found:
            wrong.append(f"{row['locator']}: its members have {found} bytes, and it counts {row['member_bytes']}")
    return wrong


def _sums_differ(sums: _Sums, counts: _Sums) -> list[str]:
    """Sources whose sums of bytes in the manifest are not those of the accounts."""
    return [
        f"{'/'.join(name)}: {key} {source[key]} in the manifest, {found} in inputs/"
        for name, source in counts.items()
        for key in SUMS
        if (found := sums.get(name, _NOTHING)[key]) != source[key]
    ]


def _counts_differ(
    sums: _Sums, counts: _Sums, ledger: Mapping[Label, tuple[int, int]], has_takedowns: bool
) -> list[str]:
    """Sources of which manifest and ledger count other files, documents or rows than the accounts.

    Inputs that became no document and were taken down have passed the stage, without their bytes: with such, documents
    and rows are compared as a sum.
    """
    wrong: list[str] = []
    for name, source in counts.items():
        expected = dict(zip(_OF_LEDGER, ledger.get(name, (0, 0)), strict=True))
        expected = {**{key: source[key] for key in _OF_MANIFEST}, **expected}
        pairs = [(key, want, sums.get(name, _NOTHING)[key]) for key, want in expected.items()]
        if has_takedowns:
            *others, passed, gone, _ = pairs
            pairs = [*others, ("documents and removals", passed[1] + gone[1], passed[2] + gone[2])]
        wrong += [f"{'/'.join(name)}: {what} {want}, {have} in inputs/" for what, want, have in pairs if want != have]
    return wrong


def _ledger(output: Output, split: Collection[str]) -> dict[Label, tuple[int, int]]:
    """Rows of the stage `ingest` for what became no document, and the bytes that they hold, by source."""
    found: dict[Label, tuple[int, int]] = {}
    columns = ["dataset", "source", "start", "removed_text"]
    for _, rows_of_stage in output.tables("removed/stage=ingest", columns):
        table = rows_of_stage.filter(pc.is_null(rows_of_stage["start"]))
        sizes = pc.binary_length(table["removed_text"]).to_pylist()
        names = table.select(["dataset", "source"]).to_pylist()
        for row, size in zip(names, sizes, strict=True):
            source = label_of(_joined(row, split))
            rows, held = found.get(source, (0, 0))
            found[source] = (rows + 1, held + size)
    return found


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
