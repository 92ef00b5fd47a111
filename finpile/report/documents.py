"""Texts to count over, from whatever holds them: a build's OUT folder, Parquet, JSON Lines, plain text.

Records that name a `dataset` and `source` keep them, and those of a build have the names of its folders; all other
texts belong to the path they were asked for by. A file that is cut short or broken is an error: a count over half a
file would look like one over all of it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from finpile.errors import InputError
from finpile.layout import row_of
from finpile.split import TRAIN

#: Text of one yielded array; what all tokenizers see between two reads.
BATCH_BYTES = 4 << 20
_READ_BYTES = 1 << 20
_PARQUET_ROWS = 1024
_SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".txt", ".text", ".md")
_COMPRESSIONS = (".gz", ".zst")

Label = tuple[str, str]


def iter_texts(paths: Iterable[str | Path], limit_bytes: int | None = None) -> Iterator[tuple[str, str, pa.Array]]:
    """`(dataset, source, texts)` in the order of paths, then names; texts are large_string arrays of about 4 MiB.

    With `limit_bytes` a source ends with the first text that brings it to so many UTF-8 bytes.

    Raises: InputError naming the file and, where there is one, the line.
    """
    taken: dict[Label, int] = defaultdict(int)
    for path in paths:
        files = [(file, _label_of(file, Path(path))) for file in _files(Path(path))]
        yield from _batches(record for file in files for record in _limited(*file, taken, limit_bytes))


def list_files(paths: Iterable[str | Path]) -> list[tuple[Path, Label]]:
    """Each file that `iter_texts` reads, and the label of those of its texts that name none."""
    return [(file, _label_of(file, Path(path))) for path in paths for file in _files(Path(path))]


def iter_file(file: Path, label: Label) -> Iterator[tuple[str, str, pa.Array]]:
    """What `iter_texts` yields of one of the files of `list_files`."""
    yield from _batches(_records(file, label))


def total_bytes(paths: Iterable[str | Path]) -> int:
    """Size on disk of the files that `iter_texts` would read."""
    return sum(file.stat().st_size for path in paths for file in _files(Path(path)))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: no such file or folder; expected an OUT folder, or files ending in {_kinds()}")
    if path.is_file():
        _reader(path)
        return [path]
    root = path / "documents" if (path / "documents").is_dir() else path
    found = sorted(file for file in root.rglob("*") if file.is_file() and _kind(file) in _SUFFIXES)
    if not found:
        raise InputError(f"{root}: holds no documents; expected files ending in {_kinds()}")
    return found


def _limited(file: Path, label: Label, taken: dict[Label, int], limit_bytes: int | None) -> Iterator[tuple[Label, str]]:
    """The file's records but for those of sources of which enough is taken; adds to `taken`."""
    if limit_bytes is None:
        yield from _records(file, label)
        return
    for found, text in _records(file, label):
        if taken[found] < limit_bytes:
            taken[found] += len(text.encode())
            yield found, text
        elif _one_source(file):
            return


def _batches(records: Iterable[tuple[Label, str]]) -> Iterator[tuple[str, str, pa.Array]]:
    pending: dict[Label, list[str]] = defaultdict(list)
    held: dict[Label, int] = defaultdict(int)
    for label, text in records:
        held[label] += len(text.encode())
        pending[label].append(text)
        if held[label] >= BATCH_BYTES:
            yield (*label, pa.array(pending.pop(label), pa.large_string()))
            held[label] = 0
    for label, texts in pending.items():
        yield (*label, pa.array(texts, pa.large_string()))


def _records(file: Path, label: Label) -> Iterator[tuple[Label, str]]:
    return _reader(file)(file, label)


def _reader(file: Path) -> Callable[[Path, Label], Iterator[tuple[Label, str]]]:
    kind = _kind(file)
    if kind == ".parquet":
        return _read_parquet
    if kind in (".jsonl", ".ndjson"):
        return _read_jsonl
    if kind in _SUFFIXES:
        return _read_text
    raise InputError(f"{file}: is of an unknown kind; expected a name ending in {_kinds()}")


def _read_parquet(file: Path, label: Label) -> Iterator[tuple[Label, str]]:
    try:
        parquet = pq.ParquetFile(file)
        names = parquet.schema_arrow.names
        if "text" not in names:
            raise InputError(f"{file}: has no column `text` but {', '.join(names)}")
        columns = [name for name in ("text", "dataset", "source", "split") if name in names]
        for batch in parquet.iter_batches(batch_size=_PARQUET_ROWS, columns=columns):
            for row in batch.to_pylist():
                if row.get("split", TRAIN) == TRAIN:  # tables tell of what is trained on
                    yield _label_in(row, label), row["text"] or ""
    except pa.ArrowInvalid as error:
        raise InputError(f"{file}: is not a whole Parquet file: {error}") from error


def _read_jsonl(file: Path, label: Label) -> Iterator[tuple[Label, str]]:
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"{file}:{number}: is not JSON in UTF-8: {error}") from error
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            raise InputError(f"{file}:{number}: has no string under the key `text`")
        yield _label_in(record, label), record["text"]


def _read_text(file: Path, label: Label) -> Iterator[tuple[Label, str]]:
    try:
        yield label, b"".join(_blocks(file)).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start} is not UTF-8; convert the file first") from error


def _lines(file: Path) -> Iterator[bytes]:
    rest = b""
    for block in _blocks(file):
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    if rest:
        yield rest


def _blocks(file: Path) -> Iterator[bytes]:
    """The file's bytes, decompressed; an archive that ends early is an error, not an end."""
    try:
        with file.open("rb") as stream:
            if file.suffix == ".zst":
                yield from _zstandard_blocks(file, stream)
            elif file.suffix == ".gz":
                with gzip.open(stream) as plain:
                    yield from _read_blocks(plain)
            else:
                yield from _read_blocks(stream)
    except (EOFError, zlib.error, zstandard.ZstdError, gzip.BadGzipFile) as error:
        raise InputError(f"{file}: is damaged or cut short: {error}") from error


def _read_blocks(stream: IO[bytes] | gzip.GzipFile) -> Iterator[bytes]:
    return iter(lambda: stream.read(_READ_BYTES), b"")


def _zstandard_blocks(file: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """Frame after frame. The library's stream readers take the end of the file for the end of a frame."""
    frame = None
    for block in _read_blocks(stream):
        rest = block
        while rest:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(rest)
            rest = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise InputError(f"{file}: is cut short: its last zstd frame has no end")


def _label_in(record: dict[str, Any], label: Label) -> Label:
    """The record's own names; else those of the path. `meta.pile_set_name` is where The Pile keeps its components."""
    dataset, source = record.get("dataset"), record.get("source")
    meta = record.get("meta")
    if isinstance(meta, dict) and isinstance(meta.get("pile_set_name"), str):
        return label[0], meta["pile_set_name"]
    return (dataset if isinstance(dataset, str) else label[0], source if isinstance(source, str) else label[1])


def _label_of(file: Path, path: Path) -> Label:
    """Of a build's shard the row of its folders; of another file below `path`, the name of that."""
    if _one_source(file):
        return row_of(file.as_posix())
    name = path.resolve().name
    for suffix in (*_COMPRESSIONS, *_SUFFIXES):
        name = name.removesuffix(suffix)
    return name, name


def _one_source(file: Path) -> bool:
    """Whether all of a file's records are of one source, as the shards of a build are."""
    return file.parent.name.startswith("source=") and file.parent.parent.name.startswith("dataset=")


def _kind(file: Path) -> str:
    bare = file.with_suffix("") if file.suffix in _COMPRESSIONS else file
    return bare.suffix


def _kinds() -> str:
    return ", ".join(_SUFFIXES) + " (also with .gz or .zst behind)"
