"""Sizes of tasks, partitions and files. The stages cut their work by them, and `finpile plan` predicts from them."""

from __future__ import annotations

#: Text bytes of one intermediate shard: a task's worth of work, and what a worker holds at once.
SHARD_BYTES = 16 << 20
#: Text bytes of a shard of small corpora, of which there are `_FEW_SHARDS` before shards are larger.
_LEAST_SHARD_BYTES, _FEW_SHARDS = 4 << 20, 16
#: Text bytes of a shard of large corpora: of a published file, which a worker holds too.
MOST_SHARD_BYTES = 128 << 20
#: Shards from which on they are larger, as far as input bytes tell: each has records in the launcher, requests to a
#: store, and segments of exchanges.
_MANY_SHARDS = 4096
#: Text bytes of one published Parquet file, about; of the files of a small source down to an eighth. A worker holds
#: the rows of a file while it sorts them.
PART_BYTES, _LEAST_PART = 128 << 20, 8
#: Bytes of a published file that commands on a finished build hold at once.
READ_BYTES = 8 << 20
#: A task of `ingest` reads files that together have at least 4 MiB as they are stored: compressed, about a shard of
#: text. Small sources have up to 16 tasks.
LEAST_TASK_BYTES, SMALL_SOURCE_TASKS = 4 << 20, 16
#: A source of fewer full files than this is published as this number of smaller files.
SMALL_SOURCE_PARTS = 32
#: Text bytes whose ids make one piece of the stream of tokens: what a worker sorts at once.
STREAM_BYTES = 64 << 20
#: Tokens of one token shard.
SHARD_TOKENS = 1 << 24

#: Segments that one origin gives to an exchange at most: 8 KiB of a shard's text each, about. With one for each
#: partition, their number would grow with the square of the shards.
MOST_SEGMENTS = 2048
#: Text of documents for each of a shard's segments: to write and read a segment takes about as long as that of 64 KiB.
_SEGMENT_TEXT_BYTES = 64 << 10
#: Segments of documents up to which a shard has one for each published file, however small it is.
_FEW_SEGMENTS = 256
#: Bytes of segments of a range of partitions that are split in memory, which copies their rows; more in parts of this
#: size, in files.
RANGE_BYTES = 32 << 20
_MIN_PARTITIONS = 2
#: Up to this number, an exchange has one partition for each unit of its rows.
_EVEN_PARTITIONS = 4096
#: Units for each partition at most. The largest rows are the 450 band keys of `near: paper`, 2.8 bytes per byte of
#: text: of two shards they fit 128 MiB.
_UNITS_OF_PARTITION = 2
#: Keys of windows are rows of 90 bytes for each window's length of text: .45 bytes for each byte of text if windows
#: have 200 symbols, 1.8 if 50. So for each 50 symbols of a window, one more shard shares a partition, up to four.
_LENGTH_OF_SHARD, _MOST_SHARDS_OF_KEYS = 50, 4


def num_partitions(num_shards: int, shards_of_unit: int = 1) -> int:
    """The number of partitions of an exchange between shards.

    Up to 4,096 shards it is one per shard, so that a partition is about as large as a shard. Above, more shards share a
    partition, two at most. Rows that are small beside their texts count by units of several shards: each shard has a
    table for each partition, and ten times the text has a hundred times the tables.
    """
    units = -(-num_shards // shards_of_unit)
    even = max(_MIN_PARTITIONS, min(_EVEN_PARTITIONS, units))
    return max(even, -(-units // _UNITS_OF_PARTITION))


def most_document_segments(shard_bytes: int) -> int:
    """The segments that a shard of this many text bytes has at most when documents are sent to their files.

    A shard of 128 MiB of 10 TB of documents would have one for nearly each of them.
    """
    return max(_FEW_SEGMENTS, min(MOST_SEGMENTS, shard_bytes // _SEGMENT_TEXT_BYTES))


def shards_of_keys(window_length: int) -> int:
    """The number of shards whose keys of windows share a partition."""
    return max(1, min(_MOST_SHARDS_OF_KEYS, window_length // _LENGTH_OF_SHARD))


def shards_of_contexts(window_length: int) -> int:
    """The number of shards whose contexts share a partition: about 4 bytes for each byte of text that all repeats."""
    return max(1, shards_of_keys(window_length) // 2)


def shard_bytes_of(input_bytes: int) -> int:
    """The text bytes of a shard, from the bytes of all inputs as they are stored.

    16 MiB from 256 MiB to 64 GiB of inputs; half as much for each halving below, at least 4 MiB, and twice as much for
    each doubling above, at most 128 MiB.
    """
    size = SHARD_BYTES
    while size > _LEAST_SHARD_BYTES and size * _FEW_SHARDS > input_bytes:
        size //= 2
    while size < MOST_SHARD_BYTES and size * _MANY_SHARDS < input_bytes:
        size *= 2
    return size


def part_bytes_of(text_bytes: int, part_bytes: int = PART_BYTES) -> int:
    """The text bytes of each published file of a source."""
    return max(part_bytes // _LEAST_PART, min(part_bytes, text_bytes // SMALL_SOURCE_PARTS))


def task_bytes_of(stored_bytes: int, task_bytes: int = SHARD_BYTES) -> int:
    """A task of `ingest` takes files of a source until it has this many stored bytes; a range of a file has as many."""
    return min(task_bytes, max(LEAST_TASK_BYTES, stored_bytes // SMALL_SOURCE_TASKS))
