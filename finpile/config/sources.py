"""A source of the corpus file: its files, their format, and the dataset that it belongs to."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from finpile.config import bounds
from finpile.config.clean import CleanConfig
from finpile.config.limits import LimitsConfig
from finpile.config.rows import RowsConfig
from finpile.config.strict_yaml import PLACE, Place
from finpile.config.text_template import is_template, parse_template
from finpile.documents.labels import check_rule
from finpile.errors import ConfigError
from finpile.plugins.filter import with_root
from finpile.plugins.format import FORMATS
from finpile.timestamps import check_pattern, date_format

#: Bytes of the name of a folder, `dataset=D` or `source=S`, that file systems allow.
_MAX_FOLDER_BYTES = 255
#: Bytes that records are found by, and that separate their fields.
_ASCII_MARKS = b'\r\n\t{}[]<>":,;|'
#: The kinds of sources, in the order of the European Commission's template for summaries of training content.
Kind = Literal["public", "licensed", "private", "crawled", "user", "synthetic", "own"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """A set of files, which is a source, a part of one, or several sources."""

    name: str | RowsConfig
    """The source: `News`, `Web`, `GitHub`, ... Several entries can have one. Or the field of the records with it:
    `{field: meta.pile_set_name, allow: [ArXiv, Github]}`."""
    dataset: str
    """The group of sources: `FinPile`, `The Pile`, `C4`, `Wikipedia`, ..."""
    format: str
    """`jsonl`, `json`, `parquet`, `csv`, `text`, `edgar`, `warc`, `sgml`, `wikipedia`, `jats`, `uspto`, `tei`,
    `subtitles`, `pdf`, `mail`, `stackexchange`, `irc`, `code`, `markdown`, `latex`, or an entry point
    `finpile.formats` of another package."""
    paths: tuple[str, ...]
    """Files or patterns: relative to `root`, or fsspec URLs. Archives (.tar[.gz|.zst|.lz4], .zip) are opened."""
    members: tuple[str, ...] = ()
    """Patterns of files inside archives; empty: all files."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """jsonl, json, parquet, csv: the input fields of `text`, `timestamp`, `title`, `url`, `license`. Dots select keys.
    `text` can be a template of several: `"{{title}} {{#turns}}{{speaker}}: {{text}} {{/turns}}"`."""
    date_pattern: str | None = None
    """Date in the path, as strptime pattern: `%Y-%m-%d`, `%y%m%d`. It can be anywhere in the file name without adjacent
    digits; with `*` at its end (`%Y%m%d*`), more digits can follow, as in `201603092` for the second on 2016-03-09.
    Without a day it is of a period, which counts as its last second: `%Y-%m`, `q%q_%Y` (`%q`: quarter, `%h`: half)."""
    date_format: str | None = None
    """jsonl, json, parquet, csv: the format of the date field: `day-first`, `month-first`, `year-first`, or a pattern
    like `%d-%m-%Y`. If null, dates such as 2/10/2008 need a value that proves their order: `23/10/2008`."""
    encoding: tuple[str, ...] = ()
    """Encodings to try in order; empty: those of the format (strict UTF-8 for jsonl, parquet and text). Lines of jsonl
    and csv are found by their bytes: UTF-16 is for formats of whole files, such as text and json."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    license: str | None = None
    """Licence of documents without a licence of their own."""
    kind: Kind | None = None
    """Where its data comes from, for the papers of `finpile report --compliance`: `crawled` from online sources,
    `public` data set, `licensed` from rightsholders, `private` data set of another third party, `user` data of the
    provider's services, `synthetic`, or `own`. Null: that of the format (`warc` is crawled, `edgar`, `stackexchange`,
    `uspto` and `wikipedia` are public), else not stated. Entries of one row have one kind."""
    sub_source: str | None = None
    """The parts of the source, such as sites, outlets or forms, with a line of Table 1 each: a rule as for
    `template_group`, or `region` (US, UK, Asia-Pac, ... by the domain of the URL) or `region.meta.KEY` (by the two
    letters of a country). Documents get the column `sub_source`; null: it has no parts."""
    template_group: str | None = None
    """The documents among which `dedup.templates` counts lines: `source` (all of the source), `host` (those of one host
    of their URLs), `folder` (one folder of their files) or a name of metadata, such as `meta.cik`; null: none, so that
    no template is cut from this source. Documents without the value are in no group."""
    max_removed: float = 0.5
    """A warning names each reason and each filter that removes more than this share of the source's documents, or of
    its cleaned text in spans, in (0, 1]."""
    limits: LimitsConfig | None = None
    """Limits of one input of this source; null: the limits of the corpus."""

    where: Place = field(default_factory=Place, compare=False, repr=False, metadata=PLACE)
    """Where the entry is in the corpus file."""

    @property
    def label(self) -> str:
        """The name; of an entry with several sources, what replaces it in messages and accounts."""
        return self.name if isinstance(self.name, str) else self.name.label

    @property
    def rows(self) -> tuple[str, ...]:
        """The sources of the documents."""
        return (self.name,) if isinstance(self.name, str) else self.name.rows

    def of_row(self, row: str | None) -> SourceConfig:
        """The entry restricted to one of several sources; itself for None."""
        return self if row is None else dataclasses.replace(self, name=row)

    def __post_init__(self) -> None:
        for key in ("label", "dataset"):
            if not getattr(self, key).strip():
                key = key.replace("label", "name")
                raise ConfigError(f"{key} of a source is empty: it is the name of a source or of a group of sources")
        for key, value in (("dataset", self.dataset), *(("source", row) for row in self.rows)):
            if (size := len(f"{key}={quote(value, safe='')}")) > _MAX_FOLDER_BYTES:
                raise ConfigError(
                    f"{key} {value!r} is too long for the name of a folder, in which it takes {size} bytes of "
                    f"{_MAX_FOLDER_BYTES}: shorten it (a character that is not ASCII takes 6 bytes or more)"
                )
        FORMATS.check(self.format)
        bounds.part(f"max_removed of source {self.label!r}", self.max_removed)
        for key, rule in (("template_group", self.template_group), ("sub_source", self.sub_source)):
            if rule is not None:
                check_rule(f"{key} of source {self.label!r}", rule)
        if not self.paths:
            raise ConfigError(f"paths of source {self.label!r} is empty: name at least one file or pattern")
        if self.clean.items == "documents" and FORMATS.get(self.format).sections is None:
            raise ConfigError(
                f"clean.items: format {self.format} of source {self.label!r} has no items: remove `items: documents`"
            )
        fields = FORMATS.get(self.format).fields if self.fields or self.date_format is not None else ()
        if self.fields and not fields:
            raise ConfigError(
                f"fields: format {self.format} of source {self.label!r} has no named fields: remove `fields`"
            )
        for key in self.fields:
            bounds.one_of("fields", key, fields)
        if is_template(self.fields.get("text", "")):
            parse_template(self.fields["text"])
        if self.date_format is not None:
            if "timestamp" not in fields:
                raise ConfigError(f"date_format: format {self.format} has no date field, in source {self.label!r}")
            date_format(self.date_format)
        if self.date_pattern is not None:
            check_pattern(self.date_pattern)
        for name in self.encoding:
            try:
                "".encode(name)
            except (LookupError, ValueError):
                raise ConfigError(
                    f"encoding: no encoding is called {name!r}, in source {self.label!r}; try utf-8 or latin-1"
                ) from None
            if FORMATS.get(self.format).has_ascii_marks and not _has_ascii(name):
                raise ConfigError(
                    f"encoding: format {self.format} needs an encoding that ASCII is a part of, and {name} is not one, "
                    f"in source {self.label!r}: convert the files to UTF-8, as by `iconv -f {name} -t utf-8`"
                )


def _has_ascii(encoding: str) -> bool:
    """Whether the bytes that records are found by mean in the encoding what they mean in ASCII."""
    try:
        return _ASCII_MARKS.decode(encoding) == _ASCII_MARKS.decode()
    except UnicodeError:
        return False


def with_files_below(source: SourceConfig, root: str) -> SourceConfig:
    """The source with the files of its filters relative to the root of the corpus."""

    def place(path: str) -> str:
        return path if "://" in path else posixpath.join(root, path)

    filters = tuple(
        dataclasses.replace(entry, parameters=with_root(entry.parameters, place)) for entry in source.clean.filters
    )
    return dataclasses.replace(source, clean=dataclasses.replace(source.clean, filters=filters))
