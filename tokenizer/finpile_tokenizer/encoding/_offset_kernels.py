"""The kernel of character offsets; the conventions are those of `arrays._hash_kernels`."""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays.buffers import Int64s, UInt8s
from finpile_tokenizer.arrays.jit import kernel

_CONTINUATION_MASK, _CONTINUATION = np.uint8(0xC0), np.uint8(0x80)


@kernel
def character_offsets(text_offsets: Int64s, data: UInt8s, id_offsets: Int64s, lengths: Int64s) -> Int64s:
    """For each id the first character that it has a byte of, and the character after the last one, in its text.

    The texts are UTF-8; text i has the ids `id_offsets[i]` to `id_offsets[i + 1]`, counted from `id_offsets[0]`, whose
    `lengths` add up to its bytes.
    """
    offsets = np.empty((lengths.size, 2), np.int64)
    for text in range(text_offsets.size - 1):
        at = text_offsets[text]
        begun = 0
        for index in range(id_offsets[text] - id_offsets[0], id_offsets[text + 1] - id_offsets[0]):
            inside = (data[at] & _CONTINUATION_MASK) == _CONTINUATION
            offsets[index, 0] = begun - 1 if inside else begun
            for _ in range(lengths[index]):
                if (data[at] & _CONTINUATION_MASK) != _CONTINUATION:
                    begun += 1
                at += 1
            offsets[index, 1] = begun
    return offsets
