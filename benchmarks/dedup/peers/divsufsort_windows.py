"""pydivsufsort: repeated windows of bytes by suffix array and longest common prefixes of the whole text.

python divsufsort_windows.py TEXTS.jsonl REMOVED.npy MIN_LENGTH

Documents are joined by a byte that UTF-8 does not know, so that no window reaches over an end. A window is repeated
where its suffix shares as many bytes with a neighbour in the array; the neighbours that do make a group, and the
first of each group by position is the copy that stays. Saves the bytes of all other copies: positions in the texts
joined without any separator, ascending.
"""

from __future__ import annotations

import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import rounds
from pydivsufsort import divsufsort, kasai

_SEPARATOR = b"\xff"

Positions: TypeAlias = npt.NDArray[np.int64]


def main() -> None:
    """Finds the bytes in each round."""
    joined = bytearray(_SEPARATOR.join(text.encode() for text in rounds.read_texts(sys.argv[1])))
    data, min_length = np.frombuffer(joined, np.uint8), int(sys.argv[3])  # of a bytearray: writable, as is demanded

    def save(removed: Positions) -> None:
        np.save(sys.argv[2], np.cumsum(data != _SEPARATOR[0])[removed] - 1)

    rounds.serve(lambda: later_copies(data, min_length), save)


def later_copies(data: npt.NDArray[np.uint8], min_length: int) -> Positions:
    """The positions that lie in a repeated window which is not the first of its kind; ascending."""
    suffixes = divsufsort(data)
    same = kasai(data, suffixes)[: len(data) - 1] >= min_length  # of each suffix with the next one
    starts = np.flatnonzero(np.r_[True, ~same])
    first = np.repeat(np.minimum.reduceat(suffixes, starts), np.diff(np.r_[starts, len(data)]))
    later = suffixes[suffixes != first].astype(np.int64)
    later = later[_inside_a_document(data, min_length)[later]]
    covered = np.zeros(len(data) + 1, np.int32)
    covered[later] = 1
    covered[later + min_length] -= 1  # each window ends at a place of its own
    return np.flatnonzero(np.cumsum(covered[:-1]) > 0)


def _inside_a_document(data: npt.NDArray[np.uint8], min_length: int) -> npt.NDArray[np.bool_]:
    """Whether the window that begins at each position holds no separator and does not reach over the end."""
    separators = np.cumsum(np.r_[False, data == _SEPARATOR[0]])
    whole = np.zeros(len(data), dtype=bool)
    num = len(data) - min_length + 1
    if num > 0:
        whole[:num] = separators[min_length:] == separators[:num]
    return whole


if __name__ == "__main__":
    main()
