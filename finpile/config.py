"""The corpus file as frozen dataclasses, read by `finpile.strict_yaml`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, ClassVar, Literal

from finpile import bounds, stages
from finpile.errors import ConfigError
from finpile.filter import FILTERS
from finpile.format import FORMATS
from finpile.limits import LimitsConfig
from finpile.strict_yaml import PLACE, Place, added_field, added_keys, load_yaml, settings
from finpile.timestamps import date_format

_WINDOW_REASON = "the symbols around a repeated window are compared in memory, up to twice its length"
_DOCUMENTS_REASON = "a larger number bounds nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterConfig:
    """A filter of a source, by its name alone or with parameters: `c4`, `{c4: {min_sentences: 5}}`."""

    name: str
    """A module of `finpile.clean.filters`, or an entry point `finpile.filters` of another package."""
    parameters: Any
    """An instance of the filter's dataclass of parameters."""

    @classmethod
    def named(cls, name: str) -> FilterConfig:
        """The filter with its default parameters. Raises: ConfigError for an unknown name."""
        return cls(name=name, parameters=cls.parameters_of(name)())

    @classmethod
    def parameters_of(cls, name: str) -> type[Any]:
        """The dataclass of a filter's parameters. Raises: ConfigError for an unknown name."""
        return FILTERS.get(name).parameters

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names of all filters."""
        return FILTERS.names()

    def to_setting(self) -> Any:
        """As a corpus file gives it: the name, with parameters only if they are not the defaults."""
        if self == FilterConfig.named(self.name):
            return self.name
        return {self.name: to_dict(self.parameters)}


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig:
    """What is done to a source's text."""

    filters: tuple[FilterConfig, ...] = ()
    """Published rule sets, in order, by name or as `{NAME: {PARAMETER: VALUE}}`: `c4`. Rules for web pages erase other
    text."""
    html: Literal["auto", "always", "never"] = "auto"
    """`auto`: what the source declares as HTML is reduced to its text."""
    normalise: bool = True
    """Unicode goes to NFC, white space is put in order; `false` with `html: never` leaves a text byte for byte."""

    def __post_init__(self) -> None:
        given: tuple[FilterConfig | str, ...] = self.filters
        filters = tuple(FilterConfig.named(entry) if isinstance(entry, str) else entry for entry in given)
        object.__setattr__(self, "filters", filters)  # callers in Python may give names


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """One set of files that makes (part of) a row of Table 1."""

    name: str
    """The row: `News`, `Web`, `GitHub`, ... Several entries may share a row."""
    dataset: str
    """The group of rows: `FinPile`, `The Pile`, `C4`, `Wikipedia`, ..."""
    format: str
    """`jsonl`, `parquet`, `text`, `edgar`, `warc`, `sgml`, or an entry point `finpile.formats` of another package."""
    paths: tuple[str, ...]
    """Files or patterns: relative to `root`, or fsspec URLs. Archives (.tar[.gz|.zst|.lz4], .zip) are walked."""
    members: tuple[str, ...] = ()
    """Patterns that a file inside an archive must match; all files where empty."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """jsonl, parquet: which input field is `text`, `timestamp`, `title`, `url`, `license`. Dots reach into objects."""
    date_pattern: str | None = None
    """Date in the path, as strptime: `%Y-%m-%d`, `%y%m%d`. Found anywhere in the file's name, where no other digit
    touches it; with `*` at its end (`%Y%m%d*`) more digits may follow, as in `20160309-2` written `201603092`."""
    date_format: str | None = None
    """jsonl, parquet: how the date field is written: `day-first`, `month-first`, `year-first`, or as strptime, such as
    `%d-%m-%Y`. Where null, dates such as 2/10/2008 need a value that proves their order: `23/10/2008`."""
    encoding: tuple[str, ...] = ()
    """Encodings to try in order; the format's own where empty (UTF-8, strictly, for jsonl, parquet and text)."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    license: str | None = None
    """Usage rights of every document that does not name its own."""
    limits: LimitsConfig | None = None
    """The most that one input of this source may cost; the corpus's limits where null."""

    where: Place = field(default_factory=Place, compare=False, repr=False, metadata=PLACE)
    """Where the entry is in the corpus file."""

    def __post_init__(self) -> None:
        for key in ("name", "dataset"):
            if not getattr(self, key).strip():
                raise ConfigError(f"{key} of a source is empty: it names a row, or a group of rows, of Table 1")
        FORMATS.check(self.format)
        if not self.paths:
            raise ConfigError(f"source {self.name!r} has no paths: name at least one file or pattern")
        fields = FORMATS.get(self.format).fields if self.fields or self.date_format is not None else ()
        if self.fields and not fields:
            raise ConfigError(f"source {self.name!r}: format {self.format} has no named fields: remove `fields`")
        for key in self.fields:
            bounds.one_of("fields", key, fields)
        if self.date_format is not None:
            if "timestamp" not in fields:
                raise ConfigError(f"date_format: format {self.format} has no date field, in source {self.name!r}")
            date_format(self.date_format)
        for name in self.encoding:
            try:
                "".encode(name)
            except (LookupError, ValueError):
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
        bounds.one_of("near", name, _NEAR_PRESETS)
        bands, rows = _NEAR_PRESETS[name]
        return cls(bands=bands, rows=rows)

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names that `named` knows."""
        return tuple(_NEAR_PRESETS)

    def __post_init__(self) -> None:
        why = "each shingle of a text is hashed word by word"
        bounds.within("near.ngram", self.ngram, 1, bounds.MAX_SHINGLE_WORDS, why)
        why = "every shingle of every document is hashed as often as bands x rows, and each band is a key of 8 bytes"
        bounds.within("near.bands", self.bands, 1, bounds.MAX_HASHES, why)
        bounds.within("near.rows", self.rows, 1, bounds.MAX_HASHES, why)
        bounds.within("near.bands x near.rows", self.bands * self.rows, 1, bounds.MAX_HASHES, why)
        if not 0 < self.edit_similarity <= 1:
            raise ConfigError(f"near.edit_similarity is {self.edit_similarity}: expected 0 < value <= 1, such as 0.8")


@dataclass(frozen=True, kw_only=True, slots=True)
class SubstringConfig:
    """Exact substrings: text that stands elsewhere too is cut out. Defaults are one pass over bytes.

    Source: Lee et al. 2022, section 4.1, whose setting is `{min_length: 50, unit: tokens, keep: none}`.
    """

    min_length: int = 200
    """Symbols of the shortest text that counts as repeated."""
    unit: Literal["bytes", "tokens"] = "bytes"
    """What a symbol is."""
    tokenizer: str | None = None
    """`unit: tokens`: the folder or tokenizer.json of a FinPile tokenizer, relative to the corpus's `root`."""
    keep: Literal["first", "none"] = "first"
    """`first`: the earliest copy stays; `none`: all copies go, as Lee et al.'s code has it."""
    rounds: int | Literal["fixpoint"] = 1
    """Passes: where text was cut, what is left may meet what stands elsewhere. `fixpoint`: until nothing is cut."""
    snap: Literal["none", "word", "line"] = "word"
    """Cuts shrink to whole words or lines, and join no two of them; `none`: to whole characters only, so that the
    words before and after a cut may become one."""
    min_chars: int = 20
    """A document of which cuts leave fewer characters, white space around them not counted, goes as a whole."""

    def __post_init__(self) -> None:
        bounds.within("substring.min_length", self.min_length, 2, bounds.MAX_WINDOW, _WINDOW_REASON)
        why = "it bounds what is left of a document, and few have more"
        bounds.within("substring.min_chars", self.min_chars, 0, bounds.MAX_WINDOW, why)
        if self.rounds != "fixpoint":
            why = "each round reads all text; `fixpoint` ends by itself"
            bounds.within("substring.rounds", self.rounds, 1, bounds.MAX_ROUNDS, why)
        if (self.unit == "tokens") != (self.tokenizer is not None):
            raise ConfigError(
                "substring: `unit: tokens` and `tokenizer: FOLDER` belong together: name a tokenizer for tokens, none "
                "for bytes"
            )


def _added_stages() -> dict[str, Any]:
    return {info.name: info.config for info in stages.added()}


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Which duplicates go, and how far to look for them."""

    exact: bool = True
    """Whether equal texts go."""
    exact_fold: Literal["none", "whitespace", "case", "case_whitespace"] = "none"
    """Texts that differ only in this are equal: in white space, in case (Unicode's folding), in either."""
    near: NearConfig | None = field(default_factory=NearConfig)
    """A setting, or the name of one: `paper` or `fast`; null leaves near duplicates in."""
    substring: SubstringConfig | None = None
    """How repeated text is cut out of documents; null leaves it in."""
    scope: Literal["dataset", "corpus"] = "dataset"
    """`dataset`: each dataset on its own, as BloombergGPT §2 does; `corpus`: across all of them."""
    added: Mapping[str, Any] = field(default_factory=dict, metadata=added_keys(_added_stages))
    """The settings of dedup stages of other packages, by name: in the file, keys beside those above."""

    def __post_init__(self) -> None:
        for what, asked in (("near duplicates", self.near), ("repeated substrings", self.substring)):
            if asked is not None and not self.exact:
                raise ConfigError(f"dedup: {what} are looked for among distinct texts: set `exact: true`")


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlapConfig:
    """Which held-out documents go because training text, of any dataset, gives them away."""

    min_length: int = 200
    """Bytes: a held-out document goes that shares a text of this length with a training document."""
    max_documents: int = 10
    """A text that more training documents than these have is boilerplate, and gives nothing away."""
    near: NearConfig | None = field(default_factory=lambda: NearConfig.named("fast"))
    """A held-out document goes that is a near duplicate of a training document; null: that is not looked for."""

    def __post_init__(self) -> None:
        bounds.within("overlap.min_length", self.min_length, 2, bounds.MAX_WINDOW, _WINDOW_REASON)
        bounds.within("overlap.max_documents", self.max_documents, 1, bounds.MAX_DOCUMENTS, _DOCUMENTS_REASON)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalSetConfig:
    """An evaluation set, no item of which may stand in the corpus."""

    name: str
    """What the ledger calls it: `LAMBADA`, `ConvFinQA`, ..."""
    paths: tuple[str, ...]
    """Files or patterns: .jsonl, .json or .parquet, also with .gz, .zst, .bz2, .xz or .lz4."""
    fields: tuple[str, ...]
    """The texts of an item: `passage`, `doc.pre_text`. Dots reach into objects, and into each object of a list."""
    records: str | None = None
    """JSON: where in the file's object the list of items stands (`dev`); null where the file is the list."""
    id: str | None = None
    """The field that names an item; its number in the set, from 0, where null."""
    min_coverage: float | None = None
    """This set's own, in the place of the one for all sets."""

    where: Place = field(default_factory=Place, compare=False, repr=False, metadata=PLACE)
    """Where the entry is in the corpus file."""

    def __post_init__(self) -> None:
        for key in ("name", "paths", "fields"):
            if not getattr(self, key):
                raise ConfigError(f"{key} of evaluation set {self.name!r} is empty: a set has a name, files and fields")
        if self.min_coverage is not None:
            bounds.part(f"min_coverage of evaluation set {self.name!r}", self.min_coverage)


#: No gram of an evaluation item has more words.
MAX_GRAM_WORDS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ContaminationConfig:
    """Documents that hold an item of an evaluation set go. Defaults after Brown et al. 2020 (GPT-3), appendix C."""

    sets: tuple[EvalSetConfig, ...]
    """The evaluation sets, each under a name of its own."""
    ngram: int = 13
    """Words that must stand together, 32 at most."""
    min_words: int = 8
    """A text of fewer words is not looked for; one of fewer than `ngram` only as a whole."""
    max_documents: int = 10
    """A gram in more documents than this is boilerplate."""
    min_coverage: float = 0.3
    """Part of an item's words, among those looked for, that a document must hold, in (0, 1]. Above what one sentence
    makes of a passage; nearer 1 where items are themselves full of the set phrases of filings."""

    def __post_init__(self) -> None:
        if not self.sets:
            raise ConfigError(
                "contamination.sets is empty: list at least one evaluation set, or leave contamination out"
            )
        names = [one.name for one in self.sets]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"contamination.sets has two sets of the name {twice!r}: expected each name once")
        if not 1 <= self.ngram <= MAX_GRAM_WORDS:
            raise ConfigError(f"contamination.ngram is {self.ngram}: expected 1 to {MAX_GRAM_WORDS} words, such as 13")
        if not 1 <= self.min_words <= self.ngram:
            raise ConfigError(
                f"contamination.min_words is {self.min_words}: expected 1 to ngram, which is {self.ngram}"
            )
        bounds.within("contamination.max_documents", self.max_documents, 1, bounds.MAX_DOCUMENTS, _DOCUMENTS_REASON)
        bounds.part("contamination.min_coverage", self.min_coverage)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutConfig:
    """The temporal split."""

    after: date | None = None
    """Documents published after this day (UTC) are held out; nothing is where it is null."""
    undated: Literal["train", "drop", "heldout"] | None = None
    """What becomes of documents without a date, to be said wherever `after` is: `train` may train on text from after
    that day, `drop` removes them with rows in the ledger, `heldout` holds them out."""
    overlap: OverlapConfig | None = None
    """What becomes of held-out documents that training text repeats; null leaves them in."""

    def __post_init__(self) -> None:
        if self.after is not None and self.undated is None:
            raise ConfigError(
                "heldout: `after` needs `undated`, which says what becomes of documents without a date: "
                "`undated: train` trains on them, although some may be from after that day; `undated: drop` removes "
                "them; `undated: heldout` holds them out"
            )
        if self.undated is not None and self.after is None:
            raise ConfigError("heldout: `undated` is about a split: say from which day on with `after`")
        if self.overlap is not None and self.after is None:
            raise ConfigError("heldout: `overlap` compares what is held out: say from which day on with `after`")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """The Unigram tokenizer, BloombergGPT §2.3."""

    mode: Literal["split-merge", "refit", "global"] = "split-merge"
    """`split-merge`: a model for each chunk, then their average, as in the paper; `refit`: then EM on all text;
    `global`: one model of all text, and no chunk's."""
    vocab_size: int = 131_072
    """Entries in all: pieces, the 256 bytes and `<|endoftext|>`."""
    chunks: int | Literal["auto"] = "auto"
    """Chunks of each domain, each with a model of its own: 256 in the paper; `auto` gives every chunk enough text."""
    chunk_vocab_size: int = 65_536
    """Pieces of one chunk's model (fewer where its text cannot feed so many)."""
    max_piece_bytes: int = 32
    """Longest piece."""
    train_on: tuple[str, ...] = ()
    """Datasets (The Pile, in the paper); all where empty."""

    def __post_init__(self) -> None:
        why = "each entry takes memory in the tokenizer and a row of a model's embedding"
        bounds.within("tokenizer.vocab_size", self.vocab_size, 258, bounds.MAX_ENTRIES, why)
        bounds.within("tokenizer.chunk_vocab_size", self.chunk_vocab_size, 258, bounds.MAX_ENTRIES, why)
        if self.chunks != "auto":
            why = "each chunk of a domain is a training and a file of its own"
            bounds.within("tokenizer.chunks", self.chunks, 1, bounds.MAX_CHUNKS, why)
        if not 2 <= self.max_piece_bytes <= 254:
            raise ConfigError(f"tokenizer.max_piece_bytes is {self.max_piece_bytes}: expected 2 to 254")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokensConfig:
    """Token shards."""

    sequence_length: int = 2048
    """Tokens of one training sequence."""

    def __post_init__(self) -> None:
        why = "a sequence is one row, which a reader holds in memory"
        bounds.within("tokens.sequence_length", self.sequence_length, 2, bounds.MAX_SEQUENCE, why)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportsConfig:
    """Tables 1 and 2."""

    private: tuple[str, ...] = ("FinPile",)
    """Datasets of the company's own: their rows stand first in Table 1 and make Table 2; all others are PUBLIC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig:
    """A whole corpus file."""

    RENAMED: ClassVar[Mapping[str, str]] = {"decontaminate": "contamination", "report": "reports"}

    name: str
    """Of the corpus; stands on its reports."""
    sources: tuple[SourceConfig, ...]
    """Their order is their priority: of two duplicates the one of the earlier source is kept."""
    root: str = "."
    """Folder that relative paths start from; itself relative to the corpus file."""
    dedup: DedupConfig = field(default_factory=DedupConfig)
    contamination: ContaminationConfig | None = None
    """Evaluation sets whose items go, from training and held-out documents alike; null looks for none."""
    heldout: HeldoutConfig = field(default_factory=HeldoutConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    tokens: TokensConfig = field(default_factory=TokensConfig)
    reports: ReportsConfig = field(default_factory=ReportsConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    """The most that one input may cost, in every source that has no limits of its own."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("the corpus has no sources: list at least one under `sources:`")
        bounded = tuple(dataclasses.replace(source, limits=source.limits or self.limits) for source in self.sources)
        object.__setattr__(self, "sources", bounded)  # so that a source, alone, says all of how it is read
        known = sorted({source.dataset for source in self.sources})
        for name in self.tokenizer.train_on:
            bounds.one_of("tokenizer.train_on", name, known)


def load_config(path: str | Path) -> CorpusConfig:
    """Reads a corpus file; `root` comes back absolute.

    Raises: ConfigError naming file, line, what was found, what was expected.
    """
    config = load_yaml(path, CorpusConfig, "the corpus")
    root = config.root if "://" in config.root else str((Path(path).parent / config.root).resolve())
    return dataclasses.replace(config, root=root)


def to_dict(value: Any) -> Any:
    """A config as plain JSON-able values, defaults included."""
    if isinstance(value, FilterConfig):
        return value.to_setting()
    if dataclasses.is_dataclass(value):
        added = added_field(value)
        return {
            **{entry.name: to_dict(getattr(value, entry.name)) for entry in settings(value)},
            **({} if added is None else to_dict(getattr(value, added.name))),
        }
    if isinstance(value, (tuple, list)):
        return [to_dict(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: to_dict(entry) for key, entry in value.items()}
    return value.isoformat() if isinstance(value, date) else value
