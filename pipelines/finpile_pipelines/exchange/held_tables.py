"""Tables of exchanges that stay in this process's memory, instead of a scratch file, while one process does all work.

To encode, write, read and decode a table takes longer than most steps take on it. So a pipeline that runs in this
process (`runner.in_process`) holds the tables of its exchanges, up to `HELD_BYTES` at a time; further tables go to
scratch files. Tables do not depend on where they were.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

#: Bytes of Arrow buffers that all exchanges of a pipeline hold together.
HELD_BYTES = 128 << 20


@dataclass(slots=True)
class _Budget:
    free_bytes: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, size_bytes: int) -> bool:
        with self.lock:
            is_enough = size_bytes <= self.free_bytes
            self.free_bytes -= size_bytes * is_enough
        return is_enough

    def give_back(self, size_bytes: int) -> None:
        with self.lock:
            self.free_bytes += size_bytes


_BUDGET = _Budget()


@contextmanager
def tables_held(size_bytes: int | None = None) -> Iterator[None]:
    """A context in which `hold` holds tables of this many bytes together, by default `HELD_BYTES`."""
    _BUDGET.free_bytes = HELD_BYTES if size_bytes is None else size_bytes
    try:
        yield
    finally:
        _BUDGET.free_bytes = 0


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table, or what a sender would write to a file; it is read once."""

    table: pa.Table
    size_bytes: int

    def read(self) -> pa.Table:
        """The table; its bytes can then be held by others."""
        _BUDGET.give_back(self.size_bytes)
        return self.table


def hold(table: pa.Table) -> HeldTable | None:
    """The table as it would be in a file: in one chunk, without bitmaps of columns without nulls.

    None if it has to go to a file. A slice is not held: it would keep its whole parent in memory.
    """
    if any(chunk.offset for column in table.columns for chunk in column.chunks) or not _BUDGET.take(table.nbytes):
        return None
    whole = table.combine_chunks()
    columns = [_without_bitmap(chunk) for column in whole.columns for chunk in column.chunks]
    compact = pa.Table.from_arrays(columns, schema=whole.schema) if len(columns) == whole.num_columns else whole
    return HeldTable(compact, table.nbytes)


def _without_bitmap(values: pa.Array) -> pa.Array:
    """Flat values without the bitmap that says that all are valid: tables have equal sizes wherever they were."""
    if values.null_count or values.type.num_fields or pa.types.is_dictionary(values.type):
        return values
    buffers = values.buffers()
    if buffers[0] is None:
        return values
    return pa.Array.from_buffers(values.type, len(values), [None, *buffers[1:]], null_count=0)
