"""Tables of exchanges that stay in this process's memory, instead of a scratch file, while one process does all work.

To encode, write, read and decode a table takes longer than most steps take on it. So a pipeline that runs in this
process (`runner.in_process`) holds the tables of its exchanges, up to `HELD_BYTES` at a time; further tables go to
scratch files. Rows do not depend on where they were.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from finpile_pipelines.exchange.packed import SplitTable

#: Bytes of Arrow buffers that all exchanges of a pipeline hold together.
HELD_BYTES = 32 << 20


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


class HeldTable:
    """All rows of a sender; the ranges of each partition are read once, and after the last the rows are released."""

    def __init__(self, rows: SplitTable, size_bytes: int) -> None:
        self._rows: SplitTable | None = rows
        self._left = len(rows)
        self._size_bytes = size_bytes
        self._lock = threading.Lock()

    def read(self, first: int, last: int) -> SplitTable:
        """The rows of partitions from number `first` to `last`, exclusive, of those that have rows."""
        with self._lock:
            rows = self._rows
            if rows is None:
                raise ValueError("held rows are read twice")
            self._left -= last - first
            if not self._left:
                self._rows = None
                _BUDGET.give_back(self._size_bytes)
        begin, end = int(rows.bounds[first]), int(rows.bounds[last])
        table = rows.table.slice(begin, end - begin)
        if any(kind.num_fields for kind in table.schema.types):  # children of a slice are those of its parent
            table = table.take(pa.array(np.arange(end - begin)))
        return SplitTable(table, rows.names[first:last], rows.bounds[first : last + 1] - begin)


def hold(rows: SplitTable) -> HeldTable | None:
    """The rows, held; None if they have to go to a file.

    A slice is not held: it would keep its whole parent in memory.
    """
    table = rows.table
    if any(chunk.offset for column in table.columns for chunk in column.chunks) or not _BUDGET.take(table.nbytes):
        return None
    return HeldTable(rows, table.nbytes)
