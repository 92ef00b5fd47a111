"""What `finpile dedup` reads: files, folders, patterns, URLs and builds, as sources of a corpus."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from finpile.config import CleanConfig, SourceConfig
from finpile.document import RawDocument
from finpile.errors import ConfigError, InputError
from finpile.ledger import Removal
from finpile.sources.base import InputFile, list_inputs
from finpile.sources.compression import split_codecs
from finpile.sources.reading import read_file
from finpile.strict_yaml import nearest

#: All inputs are one dataset; its sources are named after their format.
DATASET = "input"
_FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
_KINDS = ".parquet, .jsonl, .ndjson or .json (.gz, .zst)"
_UNTOUCHED = CleanConfig(html="never", normalise=False)
_NUM_RECORDS_LOOKED_AT = 1000
_NUM_FILES_LOOKED_AT = 8


@dataclass(frozen=True, slots=True)
class Inputs:
    """Where relative paths start from, and the sources in the order of the arguments."""

    root: str
    sources: tuple[SourceConfig, ...]


def find_inputs(
    arguments: Sequence[str], out: str, text_field: str, timestamp_field: str | None, date_format: str | None = None
) -> Inputs:
    """The sources that the arguments name; a file that two of them name belongs to the first.

    Each folder, pattern or build is a source for each format in it; files named one after the other are one. Nothing
    below `out` is read.

    Raises: InputError for what is not there, holds nothing to read, or has no such fields; ConfigError for an argument
    in `out`.
    """
    places = [_find(argument) for argument in arguments]
    inside = [argument for argument, place in zip(arguments, places, strict=True) if _is_below(place.base, out)]
    if inside:
        raise ConfigError(f"{inside[0]} lies in -o {out}, which this command writes: name another folder with -o")
    bases = [place.base for place in places if "://" not in place.base]
    root = os.path.commonpath(bases) if bases else "."
    fields = {"text": text_field} | ({"timestamp": timestamp_field} if timestamp_field else {})
    sources = tuple(
        SourceConfig(
            name=kind,
            dataset=DATASET,
            format=kind,
            paths=tuple(path if "://" in path else posixpath.relpath(path, root) for path in paths),
            fields=fields,
            date_format=date_format,
            clean=_UNTOUCHED,
        )
        for kind, paths in _grouped(places, out)
    )
    if not sources:
        raise InputError(f"nothing to read but what lies in -o {out}: name other inputs")
    for source in sources:
        _check_fields(source, root)
    return Inputs(root, sources)


@dataclass(frozen=True, slots=True)
class _Place:
    """What one argument names."""

    base: str
    """Its folder: absolute, or a URL."""
    files: tuple[tuple[str, str], ...]
    """(format, path), sorted by path."""
    is_file: bool


def _find(argument: str) -> _Place:
    fs, path = _locate(argument)
    if fs.isfile(path):
        kind = _format(path) or ("jsonl" if split_codecs(path)[1] else None)
        if kind is None:
            raise InputError(f"{argument} is of an unknown kind: expected a name that ends in {_KINDS}")
        return _Place(_url(fs, posixpath.dirname(path)), ((kind, _url(fs, path)),), True)
    if fs.isdir(path):
        documents = f"{path.rstrip('/')}/documents"
        is_build = fs.isfile(f"{path.rstrip('/')}/manifest.json") and fs.isdir(documents)
        base, found = path, fs.find(documents if is_build else path)
    elif any(sign in path for sign in "*?["):
        plain = path[: min(path.find(sign) for sign in "*?[" if sign in path)]
        base, found = posixpath.dirname(plain), fs.glob(path)
    else:
        raise InputError(f"{argument}: no such file or folder{_beside(fs, path)}")
    files = tuple((kind, _url(fs, name)) for name in sorted(found) if (kind := _shown_format(fs, base, name)))
    if not files:
        raise InputError(f"{argument} holds nothing to read: expected files that end in {_KINDS}")
    return _Place(_url(fs, base), files, False)


def _locate(argument: str) -> tuple[Any, str]:
    if "://" not in argument:
        return LocalFileSystem(), os.path.abspath(argument).replace(os.sep, "/")
    try:
        return url_to_fs(argument)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise InputError(f"{argument}: {error}") from error


def _url(fs: Any, path: str) -> str:
    return path if isinstance(fs, LocalFileSystem) else str(fs.unstrip_protocol(path))


def _format(path: str) -> str | None:
    return _FORMATS.get(posixpath.splitext(split_codecs(path)[0])[1].lower())


def _shown_format(fs: Any, base: str, path: str) -> str | None:
    """The format of a file that a folder or pattern gives; None for hidden ones, folders and other kinds."""
    below = path[len(base) :].split("/")
    is_hidden = any(name.startswith((".", "_")) for name in below)
    kind = None if is_hidden else _format(path)
    return kind if kind and fs.isfile(path) else None


def _beside(fs: Any, path: str) -> str:
    folder = posixpath.dirname(path)
    if not fs.isdir(folder):
        return ""
    return nearest(posixpath.basename(path), [posixpath.basename(name) for name in fs.ls(folder, detail=False)])


def _is_below(path: str, folder: str) -> bool:
    whole = folder if "://" in folder else os.path.abspath(folder)
    return f"{path}/".startswith(f"{whole.rstrip('/')}/")


def _grouped(places: Iterable[_Place], out: str) -> Iterator[tuple[str, list[str]]]:
    """(format, paths) in the order of the arguments; of a run of single files they are one group."""
    seen: set[str] = set()
    runs = groupby(enumerate(places), key=lambda item: "files" if item[1].is_file else str(item[0]))
    for _, run in runs:
        kinds: dict[str, list[str]] = {}
        for _, place in run:
            for kind, path in place.files:
                if path not in seen and not _is_below(path, out):
                    seen.add(path)
                    kinds.setdefault(kind, []).append(path)
        yield from sorted(kinds.items())


# --- the first records -----------------------------------------------------------------------------------------------


def _check_fields(source: SourceConfig, root: str) -> None:
    """Looks at the first records, so that a misspelt field shows before hours of work.

    Raises: InputError naming the field that comes nearest.
    """
    for path in source.paths[:_NUM_FILES_LOOKED_AT]:
        (file,) = list_inputs(replace(source, paths=(path,)), root)
        found = list(islice(read_file(file, source), _NUM_RECORDS_LOOKED_AT))
        documents = [item for item in found if isinstance(item, RawDocument)]
        refused = [item for item in found if isinstance(item, Removal)]
        if documents:
            _check_timestamp(file, source, documents)
            return
        if any(item.reason == "no_text" for item in refused):
            text = source.fields["text"]
            names = sorted({name for item in refused for name in _names(file, source, item)})
            if text not in names:  # else it is there, and null
                raise InputError(
                    f"{file.url}: no field `{text}` in its first records (--text-field names it){nearest(text, names)}"
                )
        if refused and all(item.reason in ("broken_json", "not_an_object") for item in refused):
            raise InputError(
                f"{file.url}: its first lines are no JSON objects ({refused[0].detail}): expected one object a line; "
                f"of an array, jq -c '.[]' makes such lines"
            )


def _check_timestamp(file: InputFile, source: SourceConfig, documents: Sequence[RawDocument]) -> None:
    wanted = source.fields.get("timestamp")
    if wanted and not any("timestamp" in entry.fields_found for entry in documents):
        names = sorted({name for entry in documents for name in entry.meta})
        raise InputError(
            f"{file.url}: no field `{wanted}` in its first records (--timestamp-field names it, and may be left out)"
            f"{nearest(wanted, names)}"
        )


def _names(file: InputFile, source: SourceConfig, refused: Removal) -> list[str]:
    if source.format == "jsonl":
        try:
            record = json.loads(refused.removed_text)
        except ValueError:
            return []
        return list(record) if isinstance(record, dict) else []
    import pyarrow.parquet as pq

    fs, path = _locate(file.url)
    with fs.open(path, "rb") as stream:
        return list(pq.ParquetFile(stream).schema_arrow.names)
