"""Byte strings of an array grouped by equality, and ranges of a buffer gathered to an array."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays import _hash_kernels
from finpile_tokenizer.arrays.buffers import Float64s, Int64s, UInt8s, binary_array


def group_items(offsets: Int64s, data: UInt8s) -> tuple[Int64s, Int64s]:
    """`(group of each item, first item of each group)`; equal items share a group, in order of first occurrence."""
    num_items = len(offsets) - 1
    slots = np.zeros(max(_hash_kernels.FIRST_SLOTS, 1 << (2 * num_items - 1).bit_length()), np.uint64)
    entries = np.empty(_hash_kernels.WIDTH * num_items, np.int64)
    groups, firsts = np.empty(num_items, np.int64), np.empty(num_items, np.int64)
    num_groups = _hash_kernels.fill_groups(offsets, data, slots, entries, groups, firsts)
    return groups, firsts[:num_groups].copy()


def sum_by_group(groups: Int64s, values: Int64s, num_groups: int) -> Int64s:
    """The integer sum of each group's values."""
    sums = np.zeros(num_groups, np.int64)
    np.add.at(sums, groups, values)
    return sums


def compensated_sum_by_group(groups: Int64s, values: Float64s, num_groups: int) -> Float64s:
    """The float64 sum of each group's values by compensated summation, in the order given."""
    sums, errors = np.zeros(num_groups, np.float64), np.zeros(num_groups, np.float64)
    _hash_kernels.add_compensated(groups, values, sums, errors)
    total: Float64s = sums + errors
    return total


def gather_ranges(data: UInt8s, starts: Int64s, lengths: Int64s) -> pa.LargeBinaryArray:
    """The strings of these lengths at these positions of `data`, as an array."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(offsets[-1], np.uint8)
    _hash_kernels.copy_ranges(data, np.ascontiguousarray(starts), offsets, out)
    return binary_array(offsets, out)
