"""The inputs of `finpile dedup`: files, folders, patterns, URLs and builds, as sources of a corpus."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from operator import itemgetter

from finpile.config import CleanConfig, SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.errors import ConfigError, InputError, nearest
from finpile.plugins.format import FORMATS
from finpile.sources.readers.finding import Documents, InputFile, find_documents, list_inputs, suffix_of
from finpile.sources.readers.peek import field_names
from finpile.sources.readers.reading import read_file
from finpile.storage.file_systems import OBJECT_STORES
from finpile.storage.folders import absolute

#: All inputs are one dataset; its sources are named after their format.
DATASET = "input"
#: The format of a compressed file whose name has no suffix of a format.
_DEFAULT_FORMAT = "jsonl"
#: The built-in formats that have suffixes.
WITH_SUFFIXES = ("jsonl", "parquet")
_UNTOUCHED = CleanConfig(html="never", normalise=False)
_NUM_RECORDS_LOOKED_AT = 1000
_NUM_FILES_LOOKED_AT = 8


@dataclass(frozen=True, slots=True)
class Inputs:
    """The root of relative paths, and the sources in the order of the arguments."""

    root: str
    sources: tuple[SourceConfig, ...]


def find_inputs(
    arguments: Sequence[str], out: str, text_field: str, timestamp_field: str | None, date_format: str | None = None
) -> Inputs:
    """The sources that the arguments name; a file that two of them name belongs to the first.

    Each folder, pattern or build is a source for each format in it; files of one format that are named one after the
    other are one. Nothing below `out` is read.

    Raises: InputError for an argument without documents, and for fields that no record has; ConfigError for an argument
    in `out`.
    """
    formats = _formats()
    found = [find_documents(argument, formats, any_compressed=True) for argument in arguments]
    inside = [argument for argument, place in zip(arguments, found, strict=True) if _is_below(place.base, out)]
    if inside:
        raise ConfigError(f"{inside[0]} lies in -o {out}, which this command writes: name another folder with -o")
    root = _root_of([place.base for place in found])
    fields = {"text": text_field} | ({"timestamp": timestamp_field} if timestamp_field else {})
    sources = tuple(
        SourceConfig(
            name=kind,
            dataset=DATASET,
            format=kind,
            paths=tuple(_relative(path, root) for path in paths),
            fields=fields,
            date_format=date_format,
            clean=_UNTOUCHED,
        )
        for kind, paths in _grouped(found, formats, out)
    )
    if not sources:
        raise InputError(f"nothing to read but what lies in -o {out}: name other inputs")
    for source in sources:
        _check_fields(source, root)
    return Inputs(root, sources)


def _root_of(bases: Sequence[str]) -> str:
    """The folder that holds all local inputs; the URL that holds all inputs if they are in one object store."""
    local = [base for base in bases if "://" not in base]
    if local:
        return os.path.commonpath(local)
    schemes, paths = zip(*(base.split("://", 1) for base in bases), strict=True)
    common = posixpath.commonpath(paths)
    return f"{schemes[0]}://{common}" if common and set(schemes) == {schemes[0]} & OBJECT_STORES else "."


def _relative(path: str, root: str) -> str:
    if "://" not in path:
        return posixpath.relpath(path, root)
    return path.removeprefix(f"{root}/")


def _formats() -> dict[str, str]:
    """The format that reads files of each suffix. Of built-in formats, only those that have one are imported."""
    names = [name for name in FORMATS.names() if name in WITH_SUFFIXES or name not in FORMATS.built_in]
    return {suffix: name for name in names for suffix in FORMATS.get(name).suffixes}


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{absolute(folder).rstrip('/')}/")


def _grouped(found: Sequence[Documents], formats: Mapping[str, str], out: str) -> Iterator[tuple[str, list[str]]]:
    """(format, paths) in the order of the arguments; consecutive single files of one format are one group."""

    def format_of(file: InputFile) -> str:
        return formats.get(suffix_of(file.url), _DEFAULT_FORMAT)

    seen: set[str] = set()
    keys = [format_of(one.files[0]) if one.kind == "file" else number for number, one in enumerate(found)]
    runs = groupby(zip(keys, found, strict=True), key=itemgetter(0))
    for _, run in runs:
        groups: dict[str, list[str]] = {}
        for _, documents in run:
            for file in documents.files:
                if file.url not in seen and not _is_below(file.url, out):
                    seen.add(file.url)
                    groups.setdefault(format_of(file), []).append(file.url)
        yield from sorted(groups.items())


# --- the first records -----------------------------------------------------------------------------------------------


def _check_fields(source: SourceConfig, root: str) -> None:
    """Looks at the first records, so that a misspelt field is an error before hours of work.

    Raises: InputError with the nearest field.
    """
    for path in source.paths[:_NUM_FILES_LOOKED_AT]:
        (file,) = list_inputs(replace(source, paths=(path,)), root)
        found = list(_first_records(file, source))
        documents = [item for item in found if isinstance(item, RawDocument)]
        refused = [item for item in found if isinstance(item, Removal)]
        if documents:
            _check_timestamp(file, source, documents)
            return
        if any(item.reason == "no_text" for item in refused):
            text = source.fields["text"]
            names = sorted({name for item in refused for name in field_names(file, source, item)})
            if text not in names:  # else it is there, and null
                raise InputError(
                    f"{file.url}: no field `{text}` in its first records (--text-field names it){nearest(text, names)}"
                )
        if refused and all(item.reason in ("broken_json", "not_an_object") for item in refused):
            raise InputError(
                f"{file.url}: its first lines are not JSON objects ({refused[0].detail}): expected one object a line; "
                "jq -c . makes a line of each object, jq -c '.[]' of each entry of an array"
            )


def _first_records(file: InputFile, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The first records of a file, up to one that has the fields, which settles that they are there."""
    for item in islice(read_file(file, source), _NUM_RECORDS_LOOKED_AT):
        yield item
        if isinstance(item, RawDocument) and ("timestamp" not in source.fields or "timestamp" in item.fields_found):
            return


def _check_timestamp(file: InputFile, source: SourceConfig, documents: Sequence[RawDocument]) -> None:
    wanted = source.fields.get("timestamp")
    if wanted and not any("timestamp" in entry.fields_found for entry in documents):
        names = sorted({name for entry in documents for name in entry.meta})
        raise InputError(
            f"{file.url}: no field `{wanted}` in its first records (--timestamp-field names it, and may be left out)"
            f"{nearest(wanted, names)}"
        )
