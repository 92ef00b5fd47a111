"""Byte accounts: what became of every byte of an input.

A reader claims all of its decompressed input, in order, as spans `start:end` of the stream that it is given:

- `Record`: a document, or a record that its `parse` refuses with a ledger row;
- `Content`: bytes that several records share, as the columns of a Parquet file, whose records have empty spans;
- `Lost`: bytes that only a row of the ledger holds;
- `Structure`: bytes of the format itself, of one of the kinds in `STRUCTURE`.

`Books` adds the claims up. Bytes that a reader leaves out become a row `unclaimed_bytes`, so that

    decompressed bytes = bytes of records + bytes in the ledger + bytes of members + bytes of structure

holds for every input, whatever its reader does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.documents.sums import add_counts

#: Kinds of structure, bytes that are neither of a record nor in the ledger, of any format. Formats add their own.
STRUCTURE: Mapping[str, str] = {
    "white_space": "jsonl, sgml, edgar: blank lines, and white space between records",
    "archive": "tar, zip: headers, directory, padding, end marks",
    "unwanted_member": "tar, zip: a file that the source's `members` leave out",
}


class Record(NamedTuple):
    """One record of the format."""

    start: int
    end: int
    locator: str
    raw: bytes
    """The bytes `start:end`, which become the `removed_text` of a row; of an empty span, what represents the record
    where `parse` raises."""
    parse: Callable[[], RawDocument | Removal]
    """Called once, at once; whatever it raises makes a row `reader_error` of this record alone."""


class Content(NamedTuple):
    """Bytes that several records share, none of which has bytes of its own."""

    start: int
    end: int


class Lost(NamedTuple):
    """Bytes of no record. An empty span adds a row without bytes, such as a note on the record before it."""

    start: int
    end: int
    row: Removal


class Structure(NamedTuple):
    """Bytes of the format itself."""

    start: int
    end: int
    kind: str


Claim = Record | Content | Lost | Structure


@dataclass(slots=True)
class Account:
    """What became of the bytes of one input: a file, or a file in an archive."""

    dataset: str
    source: str
    locator: str
    archive: str | None = None
    """Locator of the archive that holds it; null for a file."""
    stored_bytes: int = 0
    """As they lie on disk or in the archive, compressed or not."""
    decompressed_bytes: int = 0
    record_bytes: int = 0
    ledger_bytes: int = 0
    """Bytes that only rows of the ledger represent."""
    member_bytes: int = 0
    """Bytes of archive members that have accounts of their own."""
    structure: dict[str, int] = field(default_factory=dict)
    """Bytes by kind of `STRUCTURE`."""
    skipped_bytes: int = 0
    """Stored bytes that could not be decompressed: no decompressed bytes correspond to them."""
    documents: int = 0
    removals: int = 0
    removed_bytes: int = 0
    """Bytes of `removed_text` of the removals."""

    def balance(self) -> int:
        """Decompressed bytes that are neither record, ledger, member nor structure; 0 by law."""
        claimed = self.record_bytes + self.ledger_bytes + self.member_bytes + sum(self.structure.values())
        return self.decompressed_bytes - claimed


ACCOUNT_SCHEMA = pa.schema(
    [
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("archive", pa.string()),
        pa.field("stored_bytes", pa.int64(), nullable=False),
        pa.field("decompressed_bytes", pa.int64(), nullable=False),
        pa.field("record_bytes", pa.int64(), nullable=False),
        pa.field("ledger_bytes", pa.int64(), nullable=False),
        pa.field("member_bytes", pa.int64(), nullable=False),
        pa.field("structure", pa.map_(pa.string(), pa.int64()), nullable=False),
        pa.field("skipped_bytes", pa.int64(), nullable=False),
        pa.field("documents", pa.int64(), nullable=False),
        pa.field("removals", pa.int64(), nullable=False),
        pa.field("removed_bytes", pa.int64(), nullable=False),
    ]
)


#: What the accounts of the ranges of one file have in common.
_FILE = ("dataset", "source", "locator", "archive")
#: What accounts of several inputs can be added up to.
SUMS = ("decompressed_bytes", "record_bytes", "ledger_bytes", "member_bytes", "structure", "skipped_bytes")


def account_batch(accounts: Sequence[Account]) -> pa.RecordBatch:
    """The accounts as rows of `ACCOUNT_SCHEMA`."""
    columns = {name: [getattr(account, name) for account in accounts] for name in ACCOUNT_SCHEMA.names}
    columns["structure"] = [list(account.structure.items()) for account in accounts]
    return pa.RecordBatch.from_pydict(columns, schema=ACCOUNT_SCHEMA)


def whole_accounts(tables: Iterable[pa.Table], cut: Collection[str]) -> Iterator[pa.Table]:
    """The accounts with one row for each file; `cut` has the locators of files in ranges, whose rows adjoin."""
    held: list[dict[str, Any]] = []  # the last file's, or none
    for table in tables:
        if not cut or not pc.any(pc.is_in(table["locator"], value_set=pa.array(sorted(cut)))).as_py():
            yield from _tables(held)
            held = []
            yield table
            continue
        for row in table.to_pylist():
            row["structure"] = dict(row["structure"])
            if not (held and row["locator"] in cut and all(row[name] == held[0][name] for name in _FILE)):
                yield from _tables(held)
                held = []
            held = add_counts([*held, row], _FILE)
    yield from _tables(held)


def _tables(rows: list[dict[str, Any]]) -> Iterator[pa.Table]:
    if rows:
        ready = [{**row, "structure": sorted(row["structure"].items())} for row in rows]
        yield pa.Table.from_pylist(ready, ACCOUNT_SCHEMA)


@dataclass(slots=True)
class Books(Account):
    """The running account of one input; `decompressed_bytes` is known once all of them are read."""

    claimed: int = 0
    """Every byte before this one is accounted for."""
    gaps: dict[str, int] = field(default_factory=dict)
    """Rows at gaps, by locator."""
    kinds: Mapping[str, str] = field(default_factory=lambda: STRUCTURE)
    """Kinds of structure that the format may claim."""

    def gap(self, start: int, end: int) -> int:
        """Bytes that a claim of `start:end` leaves out behind the last one.

        Raises: ValueError for a claim that overlaps an earlier one, which is an error of the reader.
        """
        if start > end or (start < self.claimed and start < end):
            raise ValueError(f"{self.locator}: bytes {start} to {end} are claimed twice, up to {self.claimed}")
        return max(0, start - self.claimed)

    def take(self, end: int, item: RawDocument | Removal | str | None) -> None:
        """Counts the bytes up to `end` as a document's, a row's, structure of that kind, or (None) as content."""
        self.add(max(0, end - self.claimed), item)

    def add(self, num_bytes: int, item: RawDocument | Removal | str | None) -> None:
        """Counts the next bytes; negative for the holes of a sparse member, which the archive does not store."""
        self.claimed += num_bytes
        if isinstance(item, str):
            if item not in self.kinds:
                raise ValueError(f"{item!r} is not a kind of structure; known: {', '.join(self.kinds)}")
            self.structure[item] = self.structure.get(item, 0) + num_bytes
        elif isinstance(item, Removal):
            self.ledger_bytes += num_bytes
            self.count(item)
        else:
            self.record_bytes += num_bytes
            self.documents += item is not None

    def count(self, row: Removal) -> None:
        """Counts a row without bytes of its own."""
        self.removals += 1
        self.removed_bytes += len(row.removed_text)

    def place_gap(self, locator: str) -> str:
        """The locator of a gap's row; of several at one place, all but the first with a count behind it."""
        self.gaps[locator] = self.gaps.get(locator, 0) + 1
        return locator if self.gaps[locator] == 1 else f"{locator}~{self.gaps[locator]}"

    def pass_on(self, num_bytes: int) -> None:
        """Counts bytes of a member, which are in the member's own account."""
        self.member_bytes += num_bytes
        self.claimed += num_bytes

    def leave(self, end: int) -> None:
        """Counts the bytes up to `end` as in the ledger, in a row of the archive that holds this input."""
        self.ledger_bytes += max(0, end - self.claimed)
        self.claimed = max(self.claimed, end)

    def close(self) -> Account:
        """The account of the input."""
        found = {name: getattr(self, name) for name in ACCOUNT_SCHEMA.names}
        return Account(**{**found, "structure": dict(sorted(self.structure.items()))})
