"""The corpus file: strict YAML to frozen dataclasses.

Whatever the file says that FinPile does not know is an error with its line and the nearest name that is known.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

import yaml

from finpile.errors import ConfigError

T = typing.TypeVar("T")

FORMATS = ("jsonl", "parquet", "text", "edgar", "warc", "sgml")
FILTERS = ("c4",)


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig:
    """What is done to a source's text beyond markup, Unicode and white space."""

    filters: tuple[str, ...] = ()
    """Published rule sets, in order, each a module of `finpile.clean`: `c4`. Rules for web pages erase other text."""
    html: Literal["auto", "always", "never"] = "auto"
    """`auto`: what the source declares as HTML is reduced to its text."""

    def __post_init__(self) -> None:
        for name in self.filters:
            _one_of("filters", name, FILTERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """One set of files that makes (part of) a row of Table 1."""

    name: str
    """The row: `News`, `Web`, `GitHub`, ... Several entries may share a row."""
    dataset: str
    """The group of rows: `FinPile`, `The Pile`, `C4`, `Wikipedia`, ..."""
    format: str
    """A module of `finpile.sources`: jsonl, parquet, text, edgar, warc, sgml."""
    paths: tuple[str, ...]
    """Files or patterns: relative to `root`, or fsspec URLs. Archives (.tar[.gz|.zst], .zip) are walked."""
    members: tuple[str, ...] = ()
    """Patterns that a file inside an archive must match; all files where empty."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """jsonl, parquet: which input field is `text`, `timestamp`, `title`, `url`, `license`. Dots reach into objects."""
    date_pattern: str | None = None
    """Date in the path, as strptime: `%Y-%m-%d`, `%y%m%d`. Found anywhere in the file's name, where no other digit
    touches it; with `*` at its end (`%Y%m%d*`) more digits may follow, as in `20160309-2` written `201603092`."""
    encoding: tuple[str, ...] = ()
    """Encodings to try in order; the format's own where empty (UTF-8, strictly, for jsonl, parquet and text)."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    license: str | None = None
    """Usage rights of every document that does not name its own."""

    def __post_init__(self) -> None:
        _one_of("format", self.format, FORMATS)
        if not self.paths:
            raise ConfigError(f"source {self.name!r} has no paths: name at least one file or pattern")
        if self.fields and self.format not in ("jsonl", "parquet"):
            raise ConfigError(f"source {self.name!r}: `fields` belongs to jsonl and parquet, not to {self.format}")
        for key in self.fields:
            _one_of("fields", key, ("text", "timestamp", "title", "url", "license"))
        for name in self.encoding:
            try:
                "".encode(name)
            except LookupError:
                raise ConfigError(
                    f"source {self.name!r}: no encoding is called {name!r}; try utf-8 or latin-1"
                ) from None


#: `dedup: {near: NAME}`. P(candidate) at J = .5, .6, .7, .8: paper .0004 .016 .30 .995, fast .12 .42 .85 .997.
_NEAR_PRESETS = {"paper": (450, 20), "fast": (32, 8)}


@dataclass(frozen=True, kw_only=True, slots=True)
class NearConfig:
    """Near duplicates: MinHash candidates, each verified. Defaults are those of Lee et al. 2022, appendix A."""

    ngram: int = 5
    """Words of one shingle."""
    bands: int = 450
    """Bands; two documents that agree in all rows of one band are a candidate pair."""
    rows: int = 20
    """Hash values of one band."""
    edit_similarity: float = 0.8
    """A candidate is a duplicate when its edit similarity over words is above this."""
    numbers: Literal["keep", "any"] = "keep"
    """`keep`: documents whose sequences of numbers differ are no duplicates (two dividend notices, two quarters)."""

    @classmethod
    def named(cls, name: str) -> NearConfig:
        """`paper`: Lee et al.'s setting; `fast`: 256 hashes, which finds almost every pair from J = .7 on."""
        _one_of("near", name, _NEAR_PRESETS)
        bands, rows = _NEAR_PRESETS[name]
        return cls(bands=bands, rows=rows)

    def __post_init__(self) -> None:
        for name in ("ngram", "bands", "rows"):
            _at_least(f"near.{name}", getattr(self, name), 1)
        if not 0 < self.edit_similarity <= 1:
            raise ConfigError(f"near.edit_similarity is {self.edit_similarity}: expected 0 < value <= 1, such as 0.8")


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Which duplicates go, and how far to look for them."""

    exact: bool = True
    exact_fold: Literal["none", "whitespace"] = "none"
    """`whitespace`: texts that differ only in white space are equal."""
    near: NearConfig | None = field(default_factory=NearConfig)
    """A setting, or the name of one: `paper` or `fast`; null leaves near duplicates in."""
    scope: Literal["dataset", "corpus"] = "dataset"
    """`dataset`: each dataset on its own, as BloombergGPT §2 does; `corpus`: across all of them."""

    def __post_init__(self) -> None:
        if self.near is not None and not self.exact:
            raise ConfigError("dedup: near duplicates are looked for among distinct texts: set `exact: true`")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutConfig:
    """The temporal split."""

    after: date | None = None
    """Documents published after this day (UTC) are held out; nothing is where it is null."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """The Unigram tokenizer by split and merge, BloombergGPT §2.3."""

    vocab_size: int = 131_072
    """Entries in all: pieces, the 256 bytes and `<|endoftext|>`."""
    chunks: int | Literal["auto"] = "auto"
    """Chunks of each domain, each with a model of its own: 256 in the paper; `auto` gives every chunk enough text."""
    chunk_vocab_size: int = 65_536
    """Pieces of one chunk's model (fewer where its text cannot feed so many)."""
    max_piece_bytes: int = 16
    """Longest piece."""
    train_on: tuple[str, ...] = ()
    """Datasets (The Pile, in the paper); all where empty."""

    def __post_init__(self) -> None:
        _at_least("tokenizer.vocab_size", self.vocab_size, 258)
        _at_least("tokenizer.chunk_vocab_size", self.chunk_vocab_size, 258)
        if self.chunks != "auto":
            _at_least("tokenizer.chunks", self.chunks, 1)
        if not 2 <= self.max_piece_bytes <= 255:
            raise ConfigError(f"tokenizer.max_piece_bytes is {self.max_piece_bytes}: expected 2 to 255")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokensConfig:
    """Token shards."""

    sequence_length: int = 2048

    def __post_init__(self) -> None:
        _at_least("tokens.sequence_length", self.sequence_length, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportConfig:
    """Tables 1 and 2."""

    private: tuple[str, ...] = ("FinPile",)
    """Datasets of the company's own: their rows stand first in Table 1 and make Table 2; all others are PUBLIC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig:
    """A whole corpus file."""

    name: str
    sources: tuple[SourceConfig, ...]
    """Their order is their priority: of two duplicates the one of the earlier source is kept."""
    root: str = "."
    """Folder that relative paths start from; itself relative to the corpus file."""
    dedup: DedupConfig = field(default_factory=DedupConfig)
    heldout: HeldoutConfig = field(default_factory=HeldoutConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    tokens: TokensConfig = field(default_factory=TokensConfig)
    report: ReportConfig = field(default_factory=ReportConfig)

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("the corpus has no sources: list at least one under `sources:`")
        known = sorted({source.dataset for source in self.sources})
        for name in self.tokenizer.train_on:
            _one_of("tokenizer.train_on", name, known)


def load_config(path: str | Path) -> CorpusConfig:
    """Reads a corpus file; `root` comes back absolute.

    Raises: ConfigError naming file, line, what was found, what was expected.
    """
    config = load_yaml(path, CorpusConfig, "the corpus")
    root = config.root if "://" in config.root else str((Path(path).parent / config.root).resolve())
    return dataclasses.replace(config, root=root)


def load_yaml(path: str | Path, kind: type[T], what: str = "the file") -> T:
    """Reads a YAML file into a dataclass: no unknown key, no missing one, no value of another type.

    Raises: ConfigError naming file, line, what was found, what was expected.
    """
    file = Path(path)
    try:
        node = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); give the path of a YAML file") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: is not YAML: {' '.join(str(error).split())}") from error
    if node is None:
        raise ConfigError(f"{file}: is empty; expected the keys of {what}")
    return typing.cast(T, _Reader(str(file)).read(node, kind, what))


def line_of(path: str | Path, text: str) -> int | None:
    """The first line of a corpus file, from 1, that says `text`; None where none does."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, start=1) if text in line), None)


def to_dict(value: Any) -> Any:
    """A config as plain JSON-able values, defaults included."""
    if dataclasses.is_dataclass(value):
        return {entry.name: to_dict(getattr(value, entry.name)) for entry in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_dict(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: to_dict(entry) for key, entry in value.items()}
    return value.isoformat() if isinstance(value, date) else value


class _Reader:
    """Turns YAML nodes, which know their lines, into values of annotated types."""

    def __init__(self, file: str) -> None:
        self._file = file

    def read(self, node: yaml.Node, kind: Any, what: str) -> Any:
        if dataclasses.is_dataclass(kind):
            return self._dataclass(node, typing.cast(type, kind), what)
        origin = typing.get_origin(kind)
        if origin in (typing.Union, types.UnionType):
            return self._union(node, kind, what)
        if origin is Literal:
            value = self._scalar(node, str, what)
            return value if value in typing.get_args(kind) else self._fail(node, what, _choices(typing.get_args(kind)))
        if origin is tuple:
            return self._tuple(node, typing.get_args(kind)[0], what)
        if origin is Mapping:
            return self._mapping(node, what)
        return self._scalar(node, kind, what)

    def _dataclass(self, node: yaml.Node, kind: type, what: str) -> Any:
        if isinstance(node, yaml.ScalarNode) and hasattr(kind, "named"):
            return self._named(node, kind, what)
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, what, "a mapping")
        hints = typing.get_type_hints(kind)
        values: dict[str, Any] = {}
        for key, child in node.value:
            if key.value not in hints:
                self._error(key, f"unknown key `{key.value}` in {what}{_nearest(key.value, hints)}")
            if key.value in values:
                self._error(key, f"key `{key.value}` stands twice in {what}: keep one of them")
            values[key.value] = self.read(child, hints[key.value], f"`{key.value}`")
        for entry in dataclasses.fields(kind):
            required = entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING
            if required and entry.name not in values:
                self._error(node, f"key `{entry.name}` is missing in {what}")
        try:
            return kind(**values)
        except ConfigError as error:
            self._error(node, str(error))

    def _named(self, node: yaml.Node, kind: Any, what: str) -> Any:
        try:
            return kind.named(self._scalar(node, str, what))
        except ConfigError as error:
            self._error(node, str(error))

    def _union(self, node: yaml.Node, kind: Any, what: str) -> Any:
        options = typing.get_args(kind)
        if type(None) in options:
            if node.tag == "tag:yaml.org,2002:null":
                return None
            options = tuple(option for option in options if option is not type(None))
        if node.tag == "tag:yaml.org,2002:int" and int in options:
            return self.read(node, int, what)
        literals = [option for option in options if option is not int]
        return self.read(node, (literals or list(options))[0], what)

    def _tuple(self, node: yaml.Node, kind: Any, what: str) -> tuple[Any, ...]:
        if isinstance(node, yaml.ScalarNode) and kind is str:
            return (self._scalar(node, str, what),)
        if not isinstance(node, yaml.SequenceNode):
            self._fail(node, what, "a list")
        return tuple(self.read(child, kind, f"an entry of {what}") for child in node.value)

    def _mapping(self, node: yaml.Node, what: str) -> dict[str, str]:
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, what, "a mapping of names")
        return {key.value: self._scalar(child, str, f"`{key.value}` of {what}") for key, child in node.value}

    def _scalar(self, node: yaml.Node, kind: Any, what: str) -> Any:
        value = yaml.SafeLoader("").construct_object(node, deep=True) if isinstance(node, yaml.ScalarNode) else node
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self._fail(
                node,
                what,
                {
                    str: "text",
                    int: "a whole number",
                    float: "a number",
                    bool: "true or false",
                    date: "a day such as 2022-07-31",
                }.get(kind, kind.__name__),
            )
        return value

    def _fail(self, node: yaml.Node, what: str, expected: str) -> typing.NoReturn:
        found = (
            repr(node.value)
            if isinstance(node, yaml.ScalarNode)
            else "a list"
            if isinstance(node, yaml.SequenceNode)
            else "a mapping"
        )
        self._error(node, f"{what} is {found}: expected {expected}")

    def _error(self, node: yaml.Node, message: str) -> typing.NoReturn:
        raise ConfigError(
            message if message.startswith(self._file) else f"{self._file}:{node.start_mark.line + 1}: {message}"
        )


def _one_of(what: str, value: str, choices: typing.Iterable[str]) -> None:
    if value not in choices:
        raise ConfigError(f"{what}: {value!r} is not known{_nearest(value, choices)}")


def _at_least(what: str, value: int, least: int) -> None:
    if value < least:
        raise ConfigError(f"{what} is {value}: expected at least {least}")


def _nearest(name: str, known: typing.Iterable[str]) -> str:
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean `{close[0]}`?" if close else f"; known: {', '.join(sorted(known))}"


def _choices(values: typing.Iterable[Any]) -> str:
    return " or ".join(str(value) for value in values)
