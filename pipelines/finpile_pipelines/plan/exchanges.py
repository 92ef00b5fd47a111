"""What exchanges take: bytes of rows, and what grows with the number of origins times that of partitions.

An origin has a segment for each partition, or for each range of partitions if there are many (decisions 96 and 104). A
range whose rows exceed `RANGE_BYTES` is written a second time, by partition, in the scratch folder of its worker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from finpile.storage.sizes import MOST_SEGMENTS, RANGE_BYTES

#: Bytes of a segment besides its rows, its checksum and its place in a directory included.
_SEGMENT_BYTES = 56
#: Bytes of each partition that has rows of a segment.
_PARTITION_BYTES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Rows that origins send to partitions."""

    row_bytes: float
    """Of all rows."""
    rows: float = 0.0
    origins: float = 0.0
    partitions: float = 0.0
    """0 if it is not known: then it has rows only."""
    most_segments: float = MOST_SEGMENTS
    """Of an origin."""

    @property
    def segments(self) -> float:
        """Of all origins."""
        return self.origins * filled(min(self.partitions, self.most_segments), self._rows_of_origin)

    @property
    def have_ranges(self) -> bool:
        """Whether a segment has the rows of several partitions."""
        return self.partitions > self.most_segments

    @property
    def rewritten_bytes(self) -> float:
        """Of ranges that are written a second time."""
        is_large = self.have_ranges and self.row_bytes > self.most_segments * RANGE_BYTES
        return self.row_bytes if is_large else 0.0

    @property
    def sent_bytes(self) -> float:
        """Of all segments."""
        ranges = self.origins * filled(self.partitions, self._rows_of_origin)
        return self.row_bytes + self.segments * _SEGMENT_BYTES + ranges * _PARTITION_BYTES

    def scratch_bytes(self, workers: int) -> float:
        """Of all segments, and of the ranges that workers write a second time, one each."""
        return self.sent_bytes + self.rewritten_bytes * min(1.0, workers / self.most_segments)

    @property
    def _rows_of_origin(self) -> float:
        return self.rows / self.origins if self.origins else 0.0


def filled(partitions: float, rows: float) -> float:
    """The expected number of partitions with a row, if each row goes to any of them.

    >>> round(filled(100, 50)), round(filled(100, 10_000))
    (39, 100)
    """
    return partitions * -math.expm1(-rows / partitions) if partitions else 0.0
