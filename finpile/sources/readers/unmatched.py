"""Settings of a source that match nothing in its first records: a misspelt key, a rule for another format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from finpile.config import SourceConfig
from finpile.documents.labels import document_labels, meta_key
from finpile.errors import closest
from finpile.sources.readers.peek import Peek

_NUM_KEYS = 30
#: Rules that read something else than metadata, and why no document may have a label under them.
_WHY_NONE = {
    "host": "no document has a URL",
    "region": "no document has a URL whose domain is of a country",
    "folder": "no file is in a folder",
}


def unmatched(source: SourceConfig, found: Peek, documents: pa.RecordBatch) -> list[str]:
    """A warning for each setting that matches none of the first records, with what there is instead.

    `documents` are those of `found` after cleaning.
    """
    if not documents.num_rows:
        return []
    return [*_rules(source, documents), *_template(source, found), *_pattern(source, documents), *_rows(source, found)]


def _rules(source: SourceConfig, documents: pa.RecordBatch) -> Iterator[str]:
    for setting, rule in (("sub_source", source.sub_source), ("template_group", source.template_group)):
        if rule is not None and not any(document_labels(documents, rule)):
            yield f"{source.where.of(setting)}`{setting}: {rule}`: {_why_no_label(rule, documents)}"


def _why_no_label(rule: str, documents: pa.RecordBatch) -> str:
    key = meta_key(rule)
    if key is None:
        return _WHY_NONE[rule]
    there = _meta_keys(json.loads(meta) for meta in documents["meta"].to_pylist())
    if key in there:
        kind = "a text or a number" if rule.startswith("meta.") else "the two letters of a country"
        return f"no document has {kind} in `{key}`"
    listed = ", ".join(sorted(there)[:_NUM_KEYS])
    return f"no document has `{key}` in `meta`; keys there are: {listed or 'none'}{closest(key, there)}"


def _meta_keys(metas: Iterable[Mapping[str, Any]], prefix: str = "") -> list[str]:
    """The keys of all documents, most frequent first; those of objects behind the key of the object and a dot."""
    counts: Counter[str] = Counter()
    for meta in metas:
        for key, value in meta.items():
            counts[f"{prefix}{key}"] += 1
            if isinstance(value, dict):
                counts.update(_meta_keys([value], f"{prefix}{key}."))
    return [key for key, _ in counts.most_common()]


def _template(source: SourceConfig, found: Peek) -> Iterator[str]:
    """Sections for texts, which may be missing from every record."""
    place = source.where.of("fields", source.fields.get("text", ""))
    for name in found.evidence.unknown_names(source):
        yield f"{place}{found.evidence.describe_unknown(name, source)}"


def _pattern(source: SourceConfig, documents: pa.RecordBatch) -> Iterator[str]:
    origins = Counter(documents["timestamp_origin"].to_pylist())
    if source.date_pattern is not None and origins["none"] and not origins["filename"]:
        yield (
            f"{source.where.of('date_pattern')}`date_pattern: {source.date_pattern}` matches no name of a file, such "
            f"as {documents['locator'][0].as_py()}"
        )


def _rows(source: SourceConfig, found: Peek) -> Iterator[str]:
    """Rows of which no record is, if all records were read."""
    if isinstance(source.name, str) or not found.is_whole:
        return
    there = {document.row for document in found.documents}
    if missing := [row for row in source.rows if row not in there]:
        yield f"{source.where.of('name')}no record is of the rows {', '.join(missing)}, which `allow` lists"
