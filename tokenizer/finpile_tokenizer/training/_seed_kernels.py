"""The kernels that sort suffixes of pretokens and find repeats; the conventions are those of `arrays._hash_kernels`.

A suffix is a position in `data`; it ends with its pretoken and is read up to `limit` bytes, one more than a piece may
have. `ranks` is the sorted order of all positions: first by their first two symbols (`bucket`), the end of a pretoken
being a symbol smaller than any byte, then, bucket by bucket, by the rest.
"""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays._array_kernels import doubled
from finpile_tokenizer.arrays.buffers import Int32s, Int64s, UInt8s, UInt64s
from finpile_tokenizer.arrays.jit import inlined, inner, kernel

#: A bucket for each byte followed by the pretoken's end or by each byte.
FOLLOWERS = 257
NUM_BUCKETS = 256 * FOLLOWERS
#: Bytes that buckets are sorted by.
_SORTED_BYTES = 2
#: Bytes of text in a key of 64 bits, and its lowest byte where the suffix goes on after them.
_KEY_BYTES = 7
_GOES_ON = 8
#: Ranges of at most this many are sorted by comparisons.
_FEW = 64
_BYTE = np.uint64(255)

#: Columns of a candidate: its place in the sorted order, how many suffixes begin with it, its bytes, its score.
LEFT, WIDTH, LENGTH, SCORE = 0, 1, 2, 3
NUM_COLUMNS = 4
#: Numbers of the stack that `_sort_range` needs, and of the stacks of a scan: a string has at most 255 prefixes.
STACK_NUMBERS = 3 * 8 * 256
NESTED = 512


@kernel
def fill_remaining(offsets: Int64s, limit: int, remaining: UInt8s) -> None:
    """Writes for each position the bytes from it to its pretoken's end, at most `limit` (itself at most 255)."""
    for item in range(offsets.size - 1):
        stop = offsets[item + 1]
        for position in range(offsets[item], stop):
            remaining[position] = stop - position if stop - position < limit else limit


@inlined
def _bucket(data: UInt8s, remaining: UInt8s, position: int) -> int:
    first = np.int64(data[position]) * FOLLOWERS
    return int(first if remaining[position] == 1 else first + 1 + np.int64(data[position + 1]))


@kernel
def bucket_positions(data: UInt8s, remaining: UInt8s, ranks: Int32s, bounds: Int64s) -> None:
    """Fills `ranks` with all positions by bucket, ascending in each bucket, and `bounds` with the buckets' starts.

    `bounds` has two numbers more than there are buckets: the end of the last one, and one that serves the counting. It
    is 0 beforehand.
    """
    for position in range(remaining.size):
        bounds[_bucket(data, remaining, position) + 2] += 1
    for bucket in range(NUM_BUCKETS):
        bounds[bucket + 2] += bounds[bucket + 1]
    for position in range(remaining.size):
        place = _bucket(data, remaining, position) + 1
        ranks[bounds[place]] = position
        bounds[place] += 1


@inlined
def _key(data: UInt8s, position: int, left: int) -> np.uint64:
    """Seven bytes as a big-endian number, zeros where the suffix has ended, and in the lowest byte how many of these
    seven it has: 8 if it goes on. `left` are the bytes from `position` to its end."""
    num_bytes = left if left < _KEY_BYTES else _KEY_BYTES
    key = np.uint64(left if left < _GOES_ON else _GOES_ON)
    for index in range(num_bytes):
        key |= np.uint64(data[position + index]) << np.uint64(56 - 8 * index)
    return key


@inner
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


@inner
def _sort_range(
    keys: UInt64s,
    items: Int32s,
    low: int,
    high: int,
    spare_keys: UInt64s,
    spare: Int32s,
    tally: Int64s,
    stack: Int64s,
) -> None:
    """Radix sort, most significant byte first, down to ranges of a few."""
    stack[0], stack[1], stack[2] = low, high, 56
    height = 3
    while height > 0:
        height -= 3
        begin, end, shift = stack[height], stack[height + 1], stack[height + 2]
        if end - begin <= _FEW:
            _sort_few(keys, items, begin, end)
            continue
        for value in range(256):
            tally[value] = 0
        for index in range(begin, end):
            tally[(keys[index] >> np.uint64(shift)) & _BYTE] += 1
        total = begin
        for value in range(256):
            count = tally[value]
            tally[value] = total
            if count > 1 and shift > 0:
                stack[height], stack[height + 1], stack[height + 2] = total, total + count, shift - 8
                height += 3
            total += count
        for index in range(begin, end):
            byte = (keys[index] >> np.uint64(shift)) & _BYTE
            place = tally[byte]
            spare_keys[place] = keys[index]
            spare[place] = items[index]
            tally[byte] = place + 1
        for index in range(begin, end):
            keys[index] = spare_keys[index]
            items[index] = spare[index]


@inlined
def _shared_bytes(first: np.uint64, second: np.uint64) -> int:
    """How many bytes two suffixes with these keys share; the keys differ, and the bytes before them do not."""
    differing = first ^ second
    ends = _lesser(np.int64(first & _BYTE), np.int64(second & _BYTE))
    count = 0
    while count < ends and differing >> np.uint64(56 - 8 * count) == 0:
        count += 1
    return count


@inlined
def _lesser(first: int, second: int) -> int:
    return first if first < second else second


@inner
def _sort_bucket(
    data: UInt8s,
    remaining: UInt8s,
    items: Int32s,
    common: UInt8s,
    keys: UInt64s,
    spare_keys: UInt64s,
    spare: Int32s,
    tally: Int64s,
    radix_stack: Int64s,
    stack: Int64s,
) -> None:
    """Sorts one bucket's positions `items` and writes to `common[i]` the length shared by suffixes i - 1 and i.

    The suffixes share their first two bytes. They are sorted by the key that follows; those of one key that go on, by
    the next one.
    """
    common[0] = 0
    stack[0], stack[1], stack[2] = 0, items.size, _SORTED_BYTES
    height = 3
    while height > 0:
        height -= 3
        low, high, depth = stack[height], stack[height + 1], stack[height + 2]
        for index in range(low, high):
            position = np.int64(items[index])
            keys[index] = _key(data, position + depth, np.int64(remaining[position]) - depth)
        _sort_range(keys, items, low, high, spare_keys, spare, tally, radix_stack)
        start = low
        while start < high:
            key = keys[start]
            if start > low:
                common[start] = depth + _shared_bytes(keys[start - 1], key)
            end = start + 1
            while end < high and keys[end] == key:
                common[end] = depth + _lesser(np.int64(key & _BYTE), _KEY_BYTES)
                end += 1
            if np.int64(key & _BYTE) == _GOES_ON and end - start > 1:
                stack[height], stack[height + 1], stack[height + 2] = start, end, depth + _KEY_BYTES
                height += 3
            start = end


@inlined
def _add(out: Int64s, total: int, left: int, width: int, length: int, score: int) -> tuple[Int64s, int]:
    """Adds a candidate; returns the array, which may be a larger one, and how many it has."""
    at = NUM_COLUMNS * total
    if at == out.size:
        out = doubled(out)
    out[at + LEFT] = left
    out[at + WIDTH] = width
    out[at + LENGTH] = length
    out[at + SCORE] = score
    return out, total + 1


@kernel
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
    common: UInt8s,
    keys: UInt64s,
    spare_keys: UInt64s,
    spare: Int32s,
    weights: Int64s,
    stacks: Int64s,
    bucket_stack: Int64s,
    out: Int64s,
) -> tuple[Int64s, int]:
    """Sorts the buckets `first` to `last`; returns their candidates of at least `min_score`, in no order, and how many.

    A candidate is a string of 2 to `max_bytes` bytes that is followed by different bytes or by a pretoken's end: a
    node of the suffix tree of the pretokens. Its frequency is the sum over its places of their pretokens' frequencies,
    at least 2; its score is frequency times length. `owners[p >> owner_shift]` is the first pretoken of that block of
    positions.

    The arrays from `common` on are room for the work: see `seed`. `out` is room for the first candidates.
    """
    depths, lefts = stacks[:NESTED], stacks[NESTED : 2 * NESTED]
    tally, radix_stack = stacks[2 * NESTED : 2 * NESTED + 256], stacks[2 * NESTED + 256 :]
    weights[0] = 0
    total = 0
    for bucket in range(first, last):
        begin = bounds[bucket]
        size = bounds[bucket + 1] - begin
        if size == 0 or bucket % FOLLOWERS == 0:
            continue
        items = ranks[begin : begin + size]
        _sort_bucket(data, remaining, items, common, keys, spare_keys, spare, tally, radix_stack, bucket_stack)
        for index in range(size):
            position = np.int64(items[index])
            owner = owners[position >> owner_shift]
            while offsets[owner + 1] <= position:
                owner += 1
            weights[index + 1] = weights[index] + frequencies[owner]
        if (weights[size] * max_bytes) < min_score:
            continue
        height = 0
        for index in range(1, size + 1):
            left = index - 1
            shared = np.int64(common[index]) if index < size else 0
            # A suffix that ends, and that no other one begins with, occurs as often as its pretoken.
            weight = weights[index] - weights[left]
            if weight >= 2 and weight * max_bytes >= min_score:
                length = np.int64(remaining[items[left]])
                if length <= max_bytes and length > shared and length > common[left] and length * weight >= min_score:
                    out, total = _add(out, total, begin + left, 1, length, length * weight)
            while height > 0 and depths[height - 1] > shared:
                height -= 1
                left = lefts[height]
                depth = depths[height]
                weight = weights[index] - weights[left]
                if weight >= 2 and depth <= max_bytes and depth * weight >= min_score:
                    out, total = _add(out, total, begin + left, index - left, depth, depth * weight)
            if shared >= _SORTED_BYTES and (height == 0 or depths[height - 1] < shared):
                depths[height] = shared
                lefts[height] = left
                height += 1
    return out, total


@kernel
def assign_longest(
    ranks: Int32s,
    first_rank: int,
    last_rank: int,
    lefts: Int64s,
    widths: Int64s,
    numbers: Int32s,
    first: int,
    last: int,
    stack: Int64s,
    longest_piece_at: Int32s,
    parents: Int32s,
) -> None:
    """Writes the longest seed that begins at each position, and each seed's longest proper prefix among the seeds.

    The seeds `first` to `last`, by place in the sorted order and then by length, are those of ranks `first_rank` to
    `last_rank`; `numbers` are their piece numbers. `longest_piece_at` and `parents` hold the one-byte pieces
    beforehand. `stack` is room for `2 * NESTED` numbers.
    """
    height = 0
    seed = first
    for rank in range(first_rank, last_rank):
        while height > 0 and stack[height - 2] <= rank:
            height -= 2
        while seed < last and lefts[seed] == rank:
            if height > 0:
                parents[numbers[seed]] = stack[height - 1]
            stack[height] = rank + widths[seed]
            stack[height + 1] = numbers[seed]
            height += 2
            seed += 1
        if height > 0:
            longest_piece_at[ranks[rank]] = stack[height - 1]


@kernel
def byte_frequencies(offsets: Int64s, data: UInt8s, frequencies: Int64s, sums: Int64s, firsts: Int64s) -> None:
    """Writes how often each of the 256 bytes occurs in the counted text, and its first position, -1 beforehand."""
    for item in range(offsets.size - 1):
        for position in range(offsets[item], offsets[item + 1]):
            value = data[position]
            if firsts[value] < 0:
                firsts[value] = position
            sums[value] += frequencies[item]
