"""Labels of documents, each by a rule that a source chooses: its groups of templates, and its sub-sources.

    source      one label for all documents of a source: its name
    host        the host of the document's URL, in lower case, without `www.`
    folder      the folder of the document's file: `2019` of `archive.zip/2019/a.htm`; the archive for a file at its top
    meta.KEY    a value of the document's metadata, the first of a list: `meta.cik`; dots select nested keys
    region      the region of the host's top-level domain: `US`, `UK`, `Asia-Pac`, ... (`finpile.documents.regions`)
    region.meta.KEY  the region of a country's two letters in metadata: `region.meta.country`

A document without the value has no label.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from finpile.documents.fields import find_in_json
from finpile.documents.regions import region_of_country, region_of_host
from finpile.errors import ConfigError, nearest

_META = "meta."
_REGION = "region."
#: Characters of a label; the rest is cut.
MAX_CHARACTERS = 200


def check_rule(what: str, rule: str) -> None:
    """Raises: ConfigError for a rule that is none of those above."""
    key = rule.removeprefix(_REGION)
    if key == _META or (not key.startswith(_META) and key in ("", "meta")):
        raise ConfigError(f"{what} is {rule!r}: expected {', '.join(_RULES)} or the name of metadata, such as meta.cik")
    if not key.startswith(_META):
        known = (*_RULES, f"{_META}KEY")
        if rule not in known:
            raise ConfigError(f"{what}: {rule!r} is not known{nearest(rule, known)}")


def meta_key(rule: str) -> str | None:
    """The key of the metadata that a rule reads; None for other rules."""
    key = rule.removeprefix(_REGION)
    return key.removeprefix(_META) if key.startswith(_META) else None


def label_columns(rules: Iterable[str | None]) -> tuple[str, ...]:
    """The columns that `document_labels` reads for these rules, sorted."""
    return tuple(sorted({"meta" if _META in rule else _RULES[rule][0] for rule in rules if rule is not None}))


def document_labels(documents: pa.RecordBatch | pa.Table, rule: str) -> list[str | None]:
    """The label of each document under a rule that `check_rule` accepts.

    Reads the columns `source`, `url`, `locator` or `meta`.
    """
    key = meta_key(rule)
    if key is not None:
        values = [_short(_meta_value(text, key)) for text in documents["meta"].to_pylist()]
        is_of_country = rule.startswith(_REGION)
        return [region_of_country(value) if value else None for value in values] if is_of_country else values
    column, find = _RULES[rule]
    return [_short(find(value)) for value in documents[column].to_pylist()]


def host_of(url: str | None) -> str | None:
    """The host of a URL, without `www.`; None for text that is no URL of a host."""
    try:
        host = urlsplit(url or "").hostname
    except ValueError:  # such as brackets without an address of IPv6
        return None
    return host.removeprefix("www.") if host else None


def _region(url: str | None) -> str | None:
    host = host_of(url)
    return region_of_host(host) if host else None


def _folder(locator: str) -> str:
    return posixpath.basename(posixpath.dirname(locator))


_RULES: Mapping[str, tuple[str, Callable[[Any], str | None]]] = {
    "source": ("source", str),
    "host": ("url", host_of),
    "region": ("url", _region),
    "folder": ("locator", _folder),
}


def _meta_value(text: str, key: str) -> str | None:
    value = find_in_json(text, key)
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value)


def _short(label: str | None) -> str | None:
    """Without white space at the ends; None for a label of nothing else."""
    return (label or "").strip()[:MAX_CHARACTERS] or None
