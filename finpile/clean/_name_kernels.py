"""The names of elements and entities that the kernels of a page know, in one array, found by their hashes.

One array, since Numba hands each to each function in seven words; `finpile.clean.page_words` fills it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.clean._tag_kernels import I64

#: Tables with open addressing, the hashes first: classes of elements; entities, with the semicolon and, where it may be
#: left out, also without. An entity is its UTF-8, the first byte lowest, and above `LENGTH_SHIFT` its length; one
#: without semicolon is -1.
NUM_NAME_SLOTS, NUM_ENTITY_SLOTS = 512, 8192
ELEMENTS = 0
ENTITIES = ELEMENTS + 2 * NUM_NAME_SLOTS
LENGTH_SHIFT = 56
#: The code points of the numbers 128 to 159.
WINDOWS = ENTITIES + 2 * NUM_ENTITY_SLOTS
#: Elements that tags of others imply, name and class of each.
TBODY, TR, COLGROUP_TAG, SCRIPT_TAG = (WINDOWS + 32 + 2 * place for place in range(4))
NUM_WORDS = SCRIPT_TAG + 2


@njit(cache=True, nogil=True)
def slot_of(name: int, num_slots: int) -> Any:
    return (name >> 40) & (num_slots - 1)


@njit(cache=True, nogil=True)
def _look_up(words: I64, table: int, num_slots: int, name: int) -> Any:
    slot = slot_of(name, num_slots)
    while words[table + slot] != 0:
        if words[table + slot] == name:
            return words[table + num_slots + slot]
        slot = (slot + 1) & (num_slots - 1)
    return np.int64(0)


@njit(cache=True, nogil=True)
def class_of_element(words: I64, name: int) -> Any:
    """The class of the element with this hash of its name; 0 of one without a rule."""
    return _look_up(words, ELEMENTS, NUM_NAME_SLOTS, name)


@njit(cache=True, nogil=True)
def entity_of(words: I64, name: int) -> Any:
    """0 for a name that is not known."""
    return _look_up(words, ENTITIES, NUM_ENTITY_SLOTS, name)
