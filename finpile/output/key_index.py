"""An index of keys: which documents of clean shards have a key. The files below `OUT/index`.

    OUT/index/STAGE/STEP/000003/part-00000-of-00016.parquet    keys of documents that snapshot 3 brought to a step
    OUT/index/STAGE/STEP/000003/index.json                     what the part of the index is of, written last

Keys are 64-bit hashes, spread evenly. A part has a range of them, in order, with their upper 40 bits and the place of
the document: so a search may find documents without the key (one in 10^12 times the number of entries, for each key),
and always finds all that have it. Entries are never removed: documents that a later snapshot removes are still found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finpile import storage
from finpile.errors import IntegrityError
from finpile.storage.file_systems import open_file

_U64 = npt.NDArray[np.uint64]
_I32 = npt.NDArray[np.int32]

#: A key of a document, and its place: row of a clean shard.
ENTRY_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)
PLACE_SCHEMA = pa.schema([ENTRY_SCHEMA.field(name) for name in ("shard", "row")])
#: Entries of one part, about: what a worker holds at once.
PART_ENTRIES = 1 << 20
_DROPPED_BITS = np.uint64(24)
#: Entries of a row group: those without a key that is looked for are not read.
_GROUP_ENTRIES = 1 << 16
_FACTS = "index.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """What one snapshot adds to the index of a step."""

    number: int
    """Of the snapshot."""
    mark: str
    """The fingerprint of the stage in that snapshot."""
    after: str | None
    """The mark of the generation before; None if this one has the documents of all earlier snapshots."""
    footers: tuple[str | None, ...]
    """The checksum of the footer of each part (`storage.footer_digest`); None if it has no entries, and no file."""

    @property
    def num_parts(self) -> int:
        """A power of two."""
        return len(self.footers)


def num_parts(num_entries: int) -> int:
    """The number of parts for about that many entries: a power of two."""
    return 1 << ((max(1, num_entries) - 1) // PART_ENTRIES).bit_length()


def generation_folder(folder: str, number: int) -> str:
    """Where a snapshot keeps its part of the index in `folder`."""
    return storage.join(folder, f"{number:06d}")


def write_part(folder: str, part: int, count: int, entries: pa.Table) -> str | None:
    """Writes the entries (`ENTRY_SCHEMA`) of a range of keys, each once, in order; returns the checksum of the footer.

    None if there are none; then it writes no file.
    """
    if not entries.num_rows:
        return None
    keys = entries["key"].to_numpy() >> _DROPPED_BITS
    shards, rows = entries["shard"].to_numpy(), entries["row"].to_numpy()
    order = np.lexsort((rows, shards, keys))
    keys, shards, rows = keys[order], shards[order], rows[order]
    is_first = np.ones(len(keys), bool)
    is_first[1:] = (keys[1:] != keys[:-1]) | (shards[1:] != shards[:-1]) | (rows[1:] != rows[:-1])
    arrays = [pa.array(column[is_first]) for column in (keys, shards, rows)]
    table = pa.Table.from_arrays(arrays, schema=ENTRY_SCHEMA)
    url = _part_url(folder, part, count)
    with storage.write_atomically(url, durable=False) as stream:
        pq.write_table(
            table,
            stream,
            row_group_size=_GROUP_ENTRIES,
            use_dictionary=False,
            column_encoding=dict.fromkeys(table.column_names, "DELTA_BINARY_PACKED"),
            compression="zstd",
            compression_level=1,
            write_page_checksum=True,
        )
    with open_file(url) as written:
        return storage.read_footer_digest(written)


def write_generation(folder: str, generation: Generation) -> None:
    """Marks a generation as complete, after its parts are written."""
    storage.write_json(storage.join(generation_folder(folder, generation.number), _FACTS), asdict(generation))


def generations(folder: str, number: int, mark: str) -> list[Generation] | None:
    """The generations of the index of a step as of snapshot `number`, of which `mark` is the stage's fingerprint.

    None if the index is not there, or is of other documents.
    """
    found: list[Generation] = []
    expected: str | None = mark
    while expected is not None:
        generation = _read(folder, number)
        if generation is None or (generation.number, generation.mark) != (number, expected):
            return None
        found.append(generation)
        number, expected = number - 1, generation.after
    return found


def search(folder: str, generation: Generation, keys: _U64) -> pa.Table:
    """The places (`shard`, `row`) of documents that have one of the `keys`, which are ascending; each once per key.

    Raises: IntegrityError if a part is missing or damaged.
    """
    if not len(keys):
        return PLACE_SCHEMA.empty_table()
    wanted = np.unique(keys >> _DROPPED_BITS)
    home = generation_folder(folder, generation.number)
    low, high = (_part_of(key, generation.num_parts) for key in (keys[0], keys[-1]))
    found = [
        _at_keys(group, wanted)
        for part, footer in enumerate(generation.footers)
        if low <= part <= high and footer is not None
        for group in _groups(_part_url(home, part, generation.num_parts), footer, wanted)
    ]
    return pa.concat_tables([PLACE_SCHEMA.empty_table(), *found])


def _groups(url: str, footer: str, wanted: _U64) -> Iterator[pa.Table]:
    """The row groups of a part that may have some of the keys; `footer` is the checksum of its footer."""
    try:
        with open_file(url) as stream:
            if storage.read_footer_digest(stream) != footer:
                raise _damage(url)
            file = storage.checked_parquet(stream)
            for number in range(file.num_row_groups):
                metadata = file.metadata.row_group(number)
                bounds = metadata.column(0).statistics
                if np.searchsorted(wanted, bounds.min, "left") < np.searchsorted(wanted, bounds.max, "right"):
                    group = file.read_row_group(number, use_threads=False)
                    if not _is_whole(group, metadata):
                        raise _damage(url)
                    yield group
    except (pa.ArrowException, OSError) as error:
        if storage.is_damage(error) or isinstance(error, FileNotFoundError):
            raise _damage(url) from error
        raise


def _is_whole(group: pa.Table, metadata: pq.RowGroupMetaData) -> bool:
    """Whether a row group has its values: the headers of pages, which say how to read them, have no checksum."""
    columns = [column.combine_chunks() for column in group.columns]
    return all(
        len(values) == metadata.num_rows
        and not values.null_count
        and pc.min_max(values).as_py() == {"min": bounds.min, "max": bounds.max}
        for values, bounds in zip(columns, (metadata.column(n).statistics for n in range(len(columns))), strict=True)
    )


def _damage(url: str) -> IntegrityError:
    home = url.rsplit("/", 1)[0]
    return IntegrityError(f"{url} is missing or damaged: delete {home}, which is then made anew")


def _at_keys(entries: pa.Table, wanted: _U64) -> pa.Table:
    keys = entries["key"].to_numpy()
    starts, ends = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    counts = ends - starts
    first = np.repeat(starts - np.r_[0, np.cumsum(counts)[:-1]], counts)
    return entries.select(["shard", "row"]).take(pa.array(first + np.arange(len(first))))


def _part_of(key: np.uint64, count: int) -> int:
    """The part of a key: `finpile_pipelines.exchange.partition.by_range` for a power of two."""
    top = int(key) >> 32
    return top * count >> 32


def _part_url(folder: str, part: int, count: int) -> str:
    return storage.join(folder, f"part-{part:05d}-of-{count:05d}.parquet")


def _read(folder: str, number: int) -> Generation | None:
    if number < 0:
        return None
    try:
        found = storage.read_json(storage.join(generation_folder(folder, number), _FACTS))
        return Generation(**{**found, "footers": tuple(found["footers"])})
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, KeyError):
        return None
