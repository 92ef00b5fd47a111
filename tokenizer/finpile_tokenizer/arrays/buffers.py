"""Arrow string arrays as the plain buffers that the kernels read, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile_tokenizer.errors import InputTypeError

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
UInt8s: TypeAlias = npt.NDArray[np.uint8]
UInt32s: TypeAlias = npt.NDArray[np.uint32]
UInt64s: TypeAlias = npt.NDArray[np.uint64]
Float64s: TypeAlias = npt.NDArray[np.float64]

_Scalar = TypeVar("_Scalar", bound=np.generic)

#: Arrays of these types are read; their bytes are used unchanged.
_TEXT_TYPES = (
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
)


def byte_buffers(array: pa.Array) -> tuple[Int64s, UInt8s]:
    """`(offsets, data)` of an array of texts: item i is `data[offsets[i]:offsets[i + 1]]`.

    `offsets` has one entry more than the array; both are read-only views if Arrow holds the array in 64-bit form.

    Raises:
        InputTypeError: the array holds something else than texts or byte strings, or holds nulls.
    """
    if array.type not in _TEXT_TYPES:
        raise InputTypeError(f"cannot read texts from an Arrow array of {array.type}: expected string or binary")
    if array.null_count:
        raise InputTypeError(f"{array.null_count} of {len(array)} texts are null: drop them, or fill them with ''")
    if array.type not in (pa.large_string(), pa.large_binary()):
        array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    if offsets is None or len(array) == 0:
        return _read_only(np.zeros(1, np.int64)), _read_only(np.empty(0, np.uint8))
    window = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return _read_only(np.require(window, requirements=["A"])), _read_only(content)


def chunks_of(texts: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The contiguous arrays that `texts` consists of."""
    if isinstance(texts, pa.ChunkedArray):
        return list(texts.chunks)
    if isinstance(texts, pa.Array):
        return [texts]
    raise InputTypeError(f"expected an Arrow array of texts, got {type(texts).__name__}: wrap a list in pa.array(...)")


def binary_array(offsets: Int64s, data: UInt8s) -> pa.LargeBinaryArray:
    """The large_binary array over these buffers (not copied)."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def concat(arrays: list[pa.Array]) -> pa.LargeBinaryArray:
    """The large_binary arrays one after the other."""
    return pa.concat_arrays([array.cast(pa.large_binary()) for array in arrays])


def list_array(parts: Sequence[tuple[Int32s, Int64s]]) -> pa.LargeListArray:
    """The lists of all parts; a part is the numbers of its lists, one after the other, and how many each list has."""
    numbers = np.concatenate([np.zeros(0, np.int32), *(numbers for numbers, _ in parts)])
    counts = np.concatenate([np.zeros(1, np.int64), *(counts for _, counts in parts)])
    return pa.LargeListArray.from_arrays(pa.array(np.cumsum(counts)), pa.array(numbers))


def order_by_bytes(array: pa.LargeBinaryArray) -> Int64s:
    """The order that sorts the array's distinct items by their bytes.

    Numbers are sorted faster than strings: only items that begin with the same eight bytes are compared as strings.
    """
    offsets, data = byte_buffers(array)
    data, starts = np.append(data[offsets[0] : offsets[-1]], np.zeros(8, np.uint8)), offsets[:-1] - offsets[0]
    words = np.ndarray(len(data) - 7, ">u8", data, strides=(1,))
    unused = (64 - 8 * np.minimum(np.diff(offsets), 8)).astype(np.uint64)
    keys = words[starts].astype(np.uint64) >> unused << unused
    order: Int64s = np.argsort(keys)
    first_of_same = np.diff(keys[order], prepend=~keys[order[:1]]) != 0
    is_alone = first_of_same & np.append(first_of_same[1:], True)[: len(order)]
    same = order[~is_alone]
    order[~is_alone] = same[pc.array_sort_indices(array.take(pa.array(same)))]
    return order


def lengths_of(array: pa.LargeBinaryArray) -> Int64s:
    """Each item's length in bytes."""
    offsets, _ = byte_buffers(array)
    lengths: Int64s = np.diff(offsets)
    return lengths


def ranges_of(offsets: Int64s, size: int) -> list[tuple[int, int]]:
    """Consecutive ranges `(first, last)` that together are all items, of about `size` bytes each."""
    targets = np.arange(offsets[0] + size, offsets[-1], size)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(offsets, targets), [len(offsets) - 1]]))
    return [(int(first), int(last)) for first, last in pairwise(cuts)]


def _read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """The array as a view without the right to write: one array type, hence one compiled kernel, for all callers."""
    view = array.view()
    view.flags.writeable = False
    return view
