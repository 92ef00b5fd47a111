"""Checks of inputs: each byte that was read belongs to a record, to the ledger, or to the structure of its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.output.layout import Layout, read_published
from finpile.output.manifest import CERTIFICATE, SNAPSHOT, published
from finpile.sources.readers.accounting import SUMS
from finpile.sources.readers.base import structure_of
from finpile.verify.check import Advance, Check

_Source = tuple[str, str]
#: Columns of an account whose sum over a source's inputs other files of the tree give too.
_COUNTED = ("files", "input_bytes", "documents", "removals", "removed_bytes")
#: The counts of `ingest` that are added where several sources are compared as one.
_ADDED = ("files", "input_bytes", "documents", *(name for name in SUMS if name != "structure"))


def checks(layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """Reads the accounts, and the ledger's rows of the stage `ingest`; `advance` receives the bytes read.

    A corpus as of a day has no accounts of its own: those of the whole build count later documents.
    """
    if CERTIFICATE in manifest:
        return []
    files = (storage.read_parquet(storage.join(layout.root, path)) for path in published(manifest, "inputs"))
    accounts = pa.concat_tables(files)
    advance(accounts.nbytes)
    split = {entry["dataset"] for entry in manifest["config"]["sources"] if not isinstance(entry["name"], str)}
    rows = [{**_joined(row, split), "structure": dict(row["structure"])} for row in accounts.to_pylist()]
    ingest = next(stage["counts"] for stage in manifest["stages"] if stage["stage"] == "ingest")
    has_takedowns = bool(manifest.get(SNAPSHOT, {}).get("takedowns"))
    counts = _added([_joined(row, split) for row in ingest["sources"]])
    kinds = {kind for entry in manifest["config"]["sources"] for kind in structure_of(entry["format"])}
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
            _sums_differ(rows, counts)
            + _counts_differ(rows, counts, _ledger(layout, manifest, split, advance), has_takedowns),
            f"{len(counts)} sources",
        ),
    ]


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


def _sums_differ(rows: list[dict[str, Any]], counts: list[dict[str, Any]]) -> list[str]:
    """Sources whose sums of bytes in the manifest are not those of the accounts."""
    wrong = []
    by_source = _by_source(rows)
    for source in counts:
        mine = by_source.get(_source(source), [])
        for name in SUMS:
            if name == "structure":
                kinds: Counter[str] = Counter()
                for row in mine:
                    kinds.update(row[name])
                found: Any = dict(kinds)
            else:
                found = sum(row[name] for row in mine)
            if found != source[name]:
                wrong.append(f"{'/'.join(_source(source))}: {name} {source[name]} in the manifest, {found} in inputs/")
    return wrong


def _counts_differ(
    rows: list[dict[str, Any]],
    counts: list[dict[str, Any]],
    ledger: Mapping[_Source, tuple[int, int]],
    has_takedowns: bool,
) -> list[str]:
    """Sources of which manifest and ledger count other files, documents or rows than the accounts.

    Inputs that became no document and were taken down have passed the stage, without their bytes: with such, documents
    and rows are compared as a sum.
    """
    wrong: list[str] = []
    by_source = _by_source(rows)
    for source in counts:
        name = _source(source)
        mine = by_source.get(name, [])
        files = [row for row in mine if row["archive"] is None]
        removals, removed_bytes = ledger.get(name, (0, 0))
        expected = (source["files"], source["input_bytes"], source["documents"], removals, removed_bytes)
        found = (
            len(files),
            sum(row["stored_bytes"] for row in files),
            *(sum(row[column] for row in mine) for column in ("documents", "removals", "removed_bytes")),
        )
        pairs = list(zip(_COUNTED, expected, found, strict=True))
        if has_takedowns:
            *others, passed, gone, _ = pairs
            pairs = [*others, ("documents and removals", passed[1] + gone[1], passed[2] + gone[2])]
        wrong += [f"{'/'.join(name)}: {what} {want}, {have} in inputs/" for what, want, have in pairs if want != have]
    return wrong


def _ledger(
    layout: Layout, manifest: Mapping[str, Any], split: Collection[str], advance: Advance
) -> dict[_Source, tuple[int, int]]:
    """Rows of the stage `ingest` for what became no document, and the bytes that they hold, by source."""
    found: dict[_Source, tuple[int, int]] = {}
    for path in published(manifest, "removed/stage=ingest"):
        table = read_published(storage.join(layout.root, path), ["dataset", "source", "start", "removed_text"])
        advance(table.nbytes)
        table = table.filter(pc.is_null(table["start"]))
        sizes = pc.binary_length(table["removed_text"]).to_pylist()
        names = table.select(["dataset", "source"]).to_pylist()
        for row, size in zip(names, sizes, strict=True):
            source = _source(_joined(row, split))
            rows, held = found.get(source, (0, 0))
            found[source] = (rows + 1, held + size)
    return found


def _joined(row: Mapping[str, Any], split: Collection[str]) -> dict[str, Any]:
    """The row of a source; in a dataset where records choose their row, that of all its sources.

    The account of a file is about all rows of its records, so that only the sums over them can be compared.
    """
    return {**row, "source": "all sources"} if row["dataset"] in split else dict(row)


def _added(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The sums of the counts of each source."""
    sums: dict[_Source, dict[str, Any]] = {}
    for row in rows:
        total = sums.setdefault(_source(row), {**row, "structure": Counter(), **dict.fromkeys(_ADDED, 0)})
        total["structure"].update(row["structure"])
        for name in _ADDED:
            total[name] += row[name]
    return [{**row, "structure": dict(row["structure"])} for row in sums.values()]


def _by_source(rows: list[dict[str, Any]]) -> dict[_Source, list[dict[str, Any]]]:
    found: dict[_Source, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(_source(row), []).append(row)
    return found


def _source(row: Mapping[str, Any]) -> _Source:
    return row["dataset"], row["source"]
