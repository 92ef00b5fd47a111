"""Lists of documents of a build, kept or removed, by conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.conditions import Condition, check_columns, fulfilling
from finpile.documents.document import DOCUMENT_SCHEMA, SUB_SOURCE
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import ConfigError, nearest
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage, load_manifest
from finpile.output.published_files import Advance, PublishedFile, PublishedFiles
from finpile.output.snapshots import load_snapshot, number_of, read_copies, unless_deleted, with_copies
from finpile.output.takedowns import read_takedowns, without_texts

#: Bytes of decoded rows in memory.
_PART_BYTES = 64 << 20
_OWNER = ("id", "dataset", "source", "timestamp", "bytes", "locator")
#: Columns of the rows of a list; `bytes` are those of the text, or of the removed text.
DOCUMENT_COLUMNS = (*_OWNER, "title", "url", "license", "num_copies", "split")
REMOVAL_COLUMNS = (*_OWNER, "stage", "reason", "detail", "duplicate_of", "start", "end")
_TEXT, _REMOVED_TEXT = "text", "removed_text"


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Which rows a list has: those that fulfil all conditions that are given."""

    dataset: str | None = None
    source: str | None = None
    is_removed: bool = False
    """Documents that were removed as a whole, in place of kept ones."""
    reason: str | None = None
    """Rows of the ledger with this reason, in place of kept documents: of whole documents and of spans; with
    `is_removed`, of whole documents alone."""
    where: tuple[Condition, ...] = ()
    text: str | None = None
    """A regular expression (RE2) of which the text, or the removed text, has a match."""

    @property
    def is_of_ledger(self) -> bool:
        """Whether the rows are those of the ledger."""
        return self.is_removed or self.reason is not None


class Listing:
    """The rows of a snapshot of the build in `out` (None: of the current one) that pass a filter.

    Files are read whole, one after the other, and compared with the manifest. Of a snapshot before a takedown, the
    documents that were taken down have no text, and no title, metadata or detail, as after `finpile vacuum`.

    Raises: ConfigError for a dataset, source, reason, column or expression that is not known; as `load_snapshot`.
    """

    def __init__(self, out: str, wanted: Filter, snapshot: int | None = None) -> None:
        layout = Layout(out)
        manifest = load_snapshot(layout, snapshot)
        self._layout, self._number = layout, number_of(manifest)
        self._wanted = wanted
        self._check(manifest)
        files = PublishedFiles(layout, manifest).below("removed" if wanted.is_of_ledger else "documents")
        has_some = _paths_with_some(manifest, wanted)
        self._files = [file for file in files if file.path in has_some]
        self._copies = read_copies(layout, manifest)
        current = load_manifest(layout)
        is_earlier = number_of(manifest) != number_of(current)
        self._taken_down = read_takedowns(layout, current)["id"].combine_chunks() if is_earlier else None

    @property
    def size_bytes(self) -> int:
        """Of the files that are read."""
        return sum(file.record.size_bytes for file in self._files)

    def rows(self, advance: Advance = lambda amount: None) -> Iterator[dict[str, Any]]:
        """The rows, by file and in the order of the file, with `DOCUMENT_COLUMNS` or `REMOVAL_COLUMNS`.

        Raises: IntegrityError for a file that is missing or not as it was written, when it comes to it; InputError if
        `finpile vacuum` deleted the snapshot meanwhile.
        """
        for file in self._files:
            with unless_deleted(self._layout, self._number):
                parts = file.parts(self._columns(file), size_bytes=_PART_BYTES)
            for part in parts:
                yield from self._chosen(part).to_pylist()
            advance(file.record.size_bytes)

    def _columns(self, file: PublishedFile) -> list[str] | None:
        """Those that are read; None: all."""
        needed = {condition.stored for condition in self._wanted.where} | {_TEXT, *DOCUMENT_COLUMNS}
        known = (*DOCUMENT_SCHEMA.names, SUB_SOURCE.name, "split")
        return None if self._wanted.is_of_ledger else [name for name in known if name in needed]

    def _chosen(self, part: pa.Table) -> pa.Table:
        wanted = self._wanted
        if self._taken_down is not None:
            part = without_texts(part, pc.is_in(part["id"], self._taken_down))
        if not wanted.is_of_ledger:
            part = with_copies(part, self._copies)
        texts = part[_REMOVED_TEXT if wanted.is_of_ledger else _TEXT]
        part = part.append_column("bytes", pc.binary_length(texts).cast(pa.int64()))
        named = {"dataset": wanted.dataset, "source": wanted.source, "reason": wanted.reason}
        mask = fulfilling(part, wanted.where, **named)
        if wanted.is_removed:
            mask &= np.asarray(pc.is_null(part["start"]))
        if wanted.text is not None and mask.any():
            chosen = texts.filter(pa.array(mask))
            chosen = chosen.cast(pa.large_string(), safe=False)  # not all that was removed is UTF-8
            mask[mask] = np.asarray(pc.match_substring_regex(chosen, wanted.text))
        return part.select(REMOVAL_COLUMNS if wanted.is_of_ledger else DOCUMENT_COLUMNS).filter(pa.array(mask))

    def _check(self, manifest: Mapping[str, Any]) -> None:
        wanted = self._wanted
        rows = [row for table in ("documents", "ledger") for _, part in _counted(manifest, table) for row in part]
        for name in ("dataset", "source", "reason"):
            known = {row[name] for row in rows if name in row}
            value = getattr(wanted, name)
            if value is not None and value not in known:
                raise ConfigError(f"--{name}: {value!r} is not in this corpus{nearest(value, known)}")
        columns = (
            {*LEDGER_SCHEMA.names, "bytes"} - {_REMOVED_TEXT}
            if wanted.is_of_ledger
            else {*DOCUMENT_SCHEMA.names, SUB_SOURCE.name, "split", "bytes"} - {_TEXT}
        )
        check_columns(wanted.where, columns)
        if wanted.text is not None:
            try:
                pc.match_substring_regex(pa.array([""], pa.large_string()), wanted.text)
            except pa.ArrowInvalid as error:
                raise ConfigError(f"--text is {wanted.text!r}: {error}") from None


def _counted(manifest: Mapping[str, Any], table: str) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """The path of each file of documents or of the ledger, and its counts by source, and by reason."""
    for file in counts_by_stage(manifest)["split"][table]:
        yield file["path"], file["removed"] if table == "ledger" else [file]


def _paths_with_some(manifest: Mapping[str, Any], wanted: Filter) -> set[str]:
    """The files that have rows of the dataset and source, with the reason."""
    return {
        path
        for path, rows in _counted(manifest, "ledger" if wanted.is_of_ledger else "documents")
        if any(
            wanted.dataset in (None, row["dataset"])
            and wanted.source in (None, row["source"])
            and wanted.reason in (None, row.get("reason"))
            and (not wanted.is_removed or row["num_docs"])
            for row in rows
        )
    }
