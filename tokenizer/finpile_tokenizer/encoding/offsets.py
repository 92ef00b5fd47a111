"""The place of each id in its text, in bytes or in characters."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Int64s, byte_buffers, chunks_of, concat
from finpile_tokenizer.encoding._offset_kernels import character_offsets
from finpile_tokenizer.errors import TokenizerError

Unit: TypeAlias = Literal["bytes", "characters"]

_PAIRS = pa.list_(pa.int64(), 2)


def offsets_of_ids(
    texts: pa.Array | pa.ChunkedArray, ids: pa.LargeListArray, lengths: Int64s, unit: Unit
) -> pa.LargeListArray:
    """`(start, stop)` of each id in its text, as large_list<fixed_size_list<int64>[2]>.

    `ids` are those of `texts`, and `lengths` the bytes of each of them. In characters, an id that has some bytes of a
    character has all of it.

    Raises:
        TokenizerError: `unit` is none, or it is "characters" and a text is not UTF-8.
    """
    if unit not in get_args(Unit):
        raise TokenizerError(f"unit is {unit!r}: expected one of {', '.join(map(repr, get_args(Unit)))}")
    whole = concat(chunks_of(texts))
    text_offsets, data = byte_buffers(whole)
    id_offsets = ids.offsets.to_numpy()
    if unit == "bytes":
        stops = np.cumsum(lengths) + text_offsets[0]
        begins = np.repeat(text_offsets[:-1], np.diff(id_offsets))
        pairs = np.stack([stops - lengths - begins, stops - begins], axis=1)
    else:
        _check_utf8(whole)
        pairs = character_offsets(text_offsets, data, id_offsets, lengths)
    return pa.LargeListArray.from_arrays(
        ids.offsets, pa.FixedSizeListArray.from_arrays(pa.array(pairs.reshape(-1)), type=_PAIRS)
    )


def _check_utf8(texts: pa.LargeBinaryArray) -> None:
    try:
        texts.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise TokenizerError(
            'a text is not UTF-8, so it has no characters: ask for offsets with unit="bytes"'
        ) from error
