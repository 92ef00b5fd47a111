"""The loops that sort the suffixes of pretokens and find what repeats; the conventions are those of `_kernels`.

A suffix is a position in `data`; it ends with its pretoken and is looked at up to `limit` bytes, one more than a piece
may have. `ranks` is the sorted order of all positions: first by their first two symbols (`bucket`), where the end of a
pretoken is a symbol smaller than any byte, then, bucket by bucket, by the rest.
"""

from __future__ import annotations

import numba
import numpy as np

from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s, UInt64s

#: A bucket for each byte followed by the pretoken's end or by each byte.
FOLLOWERS = 257
NUM_BUCKETS = 256 * FOLLOWERS
#: Bytes that buckets have sorted by.
_SORTED_BYTES = 2
_WORD_BYTES = 8
#: So many are sorted by comparing.
_FEW = 64
_BYTE = np.uint64(255)

#: Columns of a candidate: its place in the sorted order, how many suffixes begin with it, its bytes, its score.
LEFT, WIDTH, LENGTH, SCORE = 0, 1, 2, 3
NUM_COLUMNS = 4


@numba.njit(cache=True, nogil=True)
def remaining_bytes(offsets: Int64s, limit: int) -> UInt8s:
    """For each position, the bytes from it to its pretoken's end, at most `limit` (itself at most 255)."""
    remaining = np.empty(offsets[-1] - offsets[0], np.uint8)
    for item in range(offsets.size - 1):
        stop = offsets[item + 1]
        for position in range(offsets[item], stop):
            remaining[position] = min(stop - position, limit)
    return remaining


@numba.njit(cache=True, nogil=True, inline="always")
def _bucket(data: UInt8s, remaining: UInt8s, position: int) -> int:
    first = np.int64(data[position]) * FOLLOWERS
    return int(first if remaining[position] == 1 else first + 1 + np.int64(data[position + 1]))


@numba.njit(cache=True, nogil=True)
def bucket_positions(data: UInt8s, remaining: UInt8s, ranks: Int32s) -> Int64s:
    """Fills `ranks` with all positions by bucket, ascending in each; returns where each bucket begins, and the end."""
    bounds = np.zeros(NUM_BUCKETS + 1, np.int64)
    for position in range(remaining.size):
        bounds[_bucket(data, remaining, position) + 1] += 1
    for bucket in range(NUM_BUCKETS):
        bounds[bucket + 1] += bounds[bucket]
    fill = bounds[:-1].copy()
    for position in range(remaining.size):
        bucket = _bucket(data, remaining, position)
        ranks[fill[bucket]] = position
        fill[bucket] += 1
    return bounds


@numba.njit(cache=True, nogil=True, inline="always")
def _word(data: UInt8s, start: int, num_bytes: int) -> np.uint64:
    """Up to eight bytes as a big-endian number, padded with zeros."""
    word = np.uint64(0)
    for index in range(min(num_bytes, _WORD_BYTES)):
        word |= np.uint64(data[start + index]) << np.uint64(56 - 8 * index)
    return word


@numba.njit(cache=True, nogil=True)
def _sort_few(keys: UInt64s, items: Int32s, low: int, high: int) -> None:
    """Shell sort; the gaps are the last of Ciura's."""
    for gap in (57, 23, 10, 4, 1):
        for index in range(low + gap, high):
            key, item = keys[index], items[index]
            place = index
            while place >= low + gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                items[place] = items[place - gap]
                place -= gap
            keys[place] = key
            items[place] = item


@numba.njit(cache=True, nogil=True)
def _sort_range(keys: UInt64s, items: Int32s, low: int, high: int, spare_keys: UInt64s, spare: Int32s) -> None:
    """Radix sort from the first byte on, until few are left."""
    if high - low <= _FEW:
        _sort_few(keys, items, low, high)
        return
    tally = np.empty(256, np.int64)
    stack = np.empty((_WORD_BYTES * 256, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = low, high, 56
    height = 1
    while height > 0:
        height -= 1
        begin, end, shift = stack[height]
        if end - begin <= _FEW:
            _sort_few(keys, items, begin, end)
            continue
        tally[:] = 0
        for index in range(begin, end):
            tally[(keys[index] >> np.uint64(shift)) & _BYTE] += 1
        total = begin
        for value in range(256):
            count = tally[value]
            tally[value] = total
            if count > 1 and shift > 0:
                stack[height, 0], stack[height, 1], stack[height, 2] = total, total + count, shift - 8
                height += 1
            total += count
        for index in range(begin, end):
            value = (keys[index] >> np.uint64(shift)) & _BYTE
            spare_keys[tally[value]] = keys[index]
            spare[tally[value]] = items[index]
            tally[value] += 1
        keys[begin:end] = spare_keys[begin:end]
        items[begin:end] = spare[begin:end]


@numba.njit(cache=True, nogil=True, inline="always")
def _equal_bytes(first: np.uint64, second: np.uint64) -> int:
    """How many leading bytes two words share; the words differ."""
    differing = first ^ second
    count = 0
    while differing >> np.uint64(56 - 8 * count) == 0:
        count += 1
    return count


@numba.njit(cache=True, nogil=True)
def _sort_bucket(
    data: UInt8s, remaining: UInt8s, items: Int32s, common: UInt8s, keys: UInt64s, spare_keys: UInt64s, spare: Int32s
) -> None:
    """Sorts one bucket's positions `items` and writes to `common[i]` the length shared by suffixes i - 1 and i.

    The suffixes share their first two bytes. Word by word: what is equal in a word is sorted by where it ends, which
    tells an end from the zeros that pad it, and what goes on is sorted by the next word.
    """
    stack = np.empty((items.size // 2 + 1, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, items.size, _SORTED_BYTES
    height = 1
    while height > 0:
        height -= 1
        low, high, depth = stack[height]
        reach = depth + _WORD_BYTES
        for index in range(low, high):
            position = np.int64(items[index])
            keys[index] = _word(data, position + depth, np.int64(remaining[position]) - depth)
        _sort_range(keys, items, low, high, spare_keys, spare)
        start = low
        while start < high:
            key = keys[start]
            end = start + 1
            mixed = False
            while end < high and keys[end] == key:
                mixed |= min(remaining[items[end]], reach) != min(remaining[items[start]], reach)
                end += 1
            if mixed:
                for index in range(start, end):
                    keys[index] = min(remaining[items[index]], reach)
                _sort_range(keys, items, start, end, spare_keys, spare)
                keys[start:end] = key
            if start > low:
                shared = depth + _equal_bytes(keys[start - 1], key)
                common[start] = min(shared, remaining[items[start - 1]], remaining[items[start]])
            going_on = start
            while going_on < end and remaining[items[going_on]] <= reach:
                going_on += 1
            for index in range(start + 1, end):
                common[index] = min(remaining[items[index - 1]], remaining[items[index]], reach)
            if end - going_on > 1:
                stack[height, 0], stack[height, 1], stack[height, 2] = going_on, end, reach
                height += 1
            start = end


@numba.njit(cache=True, nogil=True)
def _emit(out: Int64s, total: int, left: int, width: int, length: int, score: int) -> Int64s:
    if total == out.shape[0]:
        larger = np.empty((2 * total, NUM_COLUMNS), np.int64)
        larger[:total] = out
        out = larger
    out[total, LEFT] = left
    out[total, WIDTH] = width
    out[total, LENGTH] = length
    out[total, SCORE] = score
    return out


@numba.njit(cache=True, nogil=True)
def sort_and_scan(
    data: UInt8s,
    remaining: UInt8s,
    frequencies: Int64s,
    owners: Int64s,
    offsets: Int64s,
    owner_shift: int,
    ranks: Int32s,
    bounds: Int64s,
    first: int,
    last: int,
    max_bytes: int,
    min_score: int,
) -> Int64s:
    """Sorts the buckets `first` to `last` and returns their candidates of at least `min_score`, in no order.

    A candidate is a string of 2 to `max_bytes` bytes that is followed by different bytes or by a pretoken's end: a
    node of the suffix tree of the pretokens. Its frequency is the sum over its places of their pretokens' frequencies,
    at least 2; its score is frequency times length. `owners[p >> owner_shift]` is the first pretoken of that block of
    positions.
    """
    widest = 0
    for bucket in range(first, last):
        widest = max(widest, bounds[bucket + 1] - bounds[bucket])
    common = np.zeros(widest + 1, np.uint8)
    keys = np.empty(widest, np.uint64)
    spare_keys = np.empty(widest, np.uint64)
    spare = np.empty(widest, ranks.dtype)
    weights = np.zeros(widest + 1, np.int64)
    depths = np.empty(512, np.int64)
    lefts = np.empty(512, np.int64)
    out = np.empty((1 << 12, NUM_COLUMNS), np.int64)
    total = 0
    for bucket in range(first, last):
        begin = bounds[bucket]
        size = bounds[bucket + 1] - begin
        if size == 0 or bucket % FOLLOWERS == 0:
            continue
        items = ranks[begin : begin + size]
        common[0] = 0
        _sort_bucket(data, remaining, items, common, keys, spare_keys, spare)
        for index in range(size):
            position = np.int64(items[index])
            owner = owners[position >> owner_shift]
            while offsets[owner + 1] <= position:
                owner += 1
            weights[index + 1] = weights[index] + frequencies[owner]
        if (weights[size] * max_bytes) < min_score:
            continue
        common[0] = 0
        height = 0
        for index in range(size + 1):
            shared = np.int64(common[index]) if index < size else 0
            left = index
            while height > 0 and depths[height - 1] > shared:
                height -= 1
                left = lefts[height]
                depth = depths[height]
                weight = weights[index] - weights[left]
                if weight >= 2 and depth <= max_bytes and depth * weight >= min_score:
                    out = _emit(out, total, begin + left, index - left, depth, depth * weight)
                    total += 1
            if index == size:
                break
            if shared >= _SORTED_BYTES and (height == 0 or depths[height - 1] < shared):
                depths[height] = shared
                lefts[height] = left
                height += 1
            length = np.int64(remaining[items[index]])
            if height == 0 or depths[height - 1] < length:
                depths[height] = length
                lefts[height] = index
                height += 1
    return out[:total].copy()


@numba.njit(cache=True, nogil=True)
def assign_heads(
    ranks: Int32s,
    first_rank: int,
    last_rank: int,
    lefts: Int64s,
    widths: Int64s,
    numbers: Int32s,
    first: int,
    last: int,
    heads: Int32s,
    parents: Int32s,
) -> None:
    """Writes the longest seed that begins at each position, and each seed's longest proper prefix among the seeds.

    The seeds `first` to `last`, by place in the sorted order and then by length, are those of ranks `first_rank` to
    `last_rank`; `numbers` are their piece numbers. `heads` and `parents` hold the one-byte pieces beforehand.
    """
    ends = np.empty(512, np.int64)
    open_seeds = np.empty(512, np.int32)
    height = 0
    seed = first
    for rank in range(first_rank, last_rank):
        while height > 0 and ends[height - 1] <= rank:
            height -= 1
        while seed < last and lefts[seed] == rank:
            if height > 0:
                parents[numbers[seed]] = open_seeds[height - 1]
            ends[height] = rank + widths[seed]
            open_seeds[height] = numbers[seed]
            height += 1
            seed += 1
        if height > 0:
            heads[ranks[rank]] = open_seeds[height - 1]


@numba.njit(cache=True, nogil=True)
def byte_frequencies(offsets: Int64s, data: UInt8s, frequencies: Int64s) -> tuple[Int64s, Int64s]:
    """How often each of the 256 bytes occurs in the text that was counted, and where it first stands."""
    sums = np.zeros(256, np.int64)
    firsts = np.full(256, -1, np.int64)
    for item in range(offsets.size - 1):
        for position in range(offsets[item], offsets[item + 1]):
            value = data[position]
            if firsts[value] < 0:
                firsts[value] = position
            sums[value] += frequencies[item]
    return sums, firsts


@numba.njit(cache=True, nogil=True)
def gather_strings(data: UInt8s, places: Int64s, lengths: Int64s) -> tuple[Int64s, UInt8s]:
    """The strings of these lengths at these positions copied one after the other, as `(offsets, data)`."""
    offsets = np.zeros(places.size + 1, np.int64)
    for item in range(places.size):
        offsets[item + 1] = offsets[item] + lengths[item]
    out = np.empty(offsets[-1], np.uint8)
    for item in range(places.size):
        for index in range(lengths[item]):
            out[offsets[item] + index] = data[places[item] + index]
    return offsets, out
