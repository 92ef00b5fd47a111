"""The corpus file as frozen dataclasses, read by `finpile.strict_yaml`."""

from __future__ import annotations

import dataclasses
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal

from finpile import bounds, stages
from finpile.document_labels import check_rule
from finpile.errors import ConfigError
from finpile.filter import FILTERS, with_root
from finpile.format import FORMATS
from finpile.limits import LimitsConfig
from finpile.mixture import WeightConfig, to_setting, weights
from finpile.rows import RowsConfig
from finpile.strict_yaml import PLACE, Place, absolute, added_field, added_keys, from_values, load_yaml, settings
from finpile.text_template import is_template, parse_template
from finpile.timestamps import check_pattern, date_format

_WINDOW_REASON = "the symbols around a repeated window are compared in memory, up to twice its length"
_DOCUMENTS_REASON = "a larger number bounds nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class FilterConfig:
    """A filter of a source, as a name or with parameters: `c4`, `{c4: {min_sentences: 5}}`."""

    name: str
    """A module of `finpile.clean.filters`, or an entry point `finpile.filters` of another package."""
    parameters: Any
    """An instance of the filter's dataclass of parameters."""

    @classmethod
    def named(cls, name: str) -> FilterConfig:
        """The filter with its default parameters. Raises: ConfigError for an unknown name or a required parameter."""
        required = cls._required(name)
        if required:
            wanted = ", ".join(f"{key}: ..." for key in required)
            raise ConfigError(f"filter `{name}` has required parameters: write {{{name}: {{{wanted}}}}}")
        return cls(name=name, parameters=cls.parameters_of(name)())

    @classmethod
    def _required(cls, name: str) -> list[str]:
        missing = dataclasses.MISSING
        entries = dataclasses.fields(cls.parameters_of(name))
        return [entry.name for entry in entries if entry.default is missing and entry.default_factory is missing]

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
        if not self._required(self.name) and self == FilterConfig.named(self.name):
            return self.name
        return {self.name: to_dict(self.parameters)}


@dataclass(frozen=True, kw_only=True, slots=True)
class CleanConfig:
    """Cleaning of the text of a source."""

    filters: tuple[FilterConfig, ...] = ()
    """Filters in order, by name or as `{NAME: {PARAMETER: VALUE}}`: `c4`, `gopher_quality`, `gopher_repetition`,
    `fineweb`, `language`, `url_list`, `fasttext`, `pii`, or an entry point `finpile.filters` of another package. Rules
    for web pages remove most of any other text."""
    html: Literal["auto", "always", "never"] = "auto"
    """`auto`: extracts the text of documents that the source declares as HTML."""
    tables: Literal["lines", "markdown"] = "lines"
    """Tables of HTML with data: a line for each row with tabs between its cells, or Markdown grids with their heads."""
    items: Literal["meta", "documents"] = "meta"
    """edgar: `documents` makes each item of a main document a document of its own, and what is in no item too; `meta`
    only names them."""
    mojibake: Literal["keep", "repair"] = "keep"
    """`repair`: lines that were decoded with another encoding than their own (`schÃ¶n`) are repaired before the normal
    form; a row of the ledger has their number."""
    normalise: bool = True
    """Converts to Unicode NFC and normalises white space; `false` with `html: never` keeps texts byte for byte."""

    def __post_init__(self) -> None:
        given: tuple[FilterConfig | str, ...] = self.filters
        filters = tuple(FilterConfig.named(entry) if isinstance(entry, str) else entry for entry in given)
        object.__setattr__(self, "filters", filters)  # callers in Python can give names
        for entry in filters[:-1]:
            if FILTERS.get(entry.name).masks:
                raise ConfigError(f"filters: `{entry.name}` masks text, which later filters would read: put it last")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """A set of files, which is a row of Table 1, a part of one, or several rows."""

    name: str | RowsConfig
    """The row: `News`, `Web`, `GitHub`, ... Several entries can share a row. Or the field of the records with it:
    `{field: meta.pile_set_name, allow: [ArXiv, Github]}`."""
    dataset: str
    """The group of rows: `FinPile`, `The Pile`, `C4`, `Wikipedia`, ..."""
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
    """Encodings to try in order; empty: those of the format (strict UTF-8 for jsonl, parquet and text)."""
    clean: CleanConfig = field(default_factory=CleanConfig)
    license: str | None = None
    """Licence of documents without a licence of their own."""
    sub_source: str | None = None
    """The parts of the row, such as sites, outlets or forms, with a line of Table 1 each: a rule as for
    `template_group`, or `region` (US, UK, Asia-Pac, ... by the domain of the URL) or `region.meta.KEY` (by the two
    letters of a country). Documents get the column `sub_source`; null: the row has no parts."""
    template_group: str | None = None
    """The documents among which `dedup.templates` counts lines: `row` (all of the row), `host` (those of one host of
    their URLs), `folder` (one folder of their files) or a name of metadata, such as `meta.cik`; null: none, so that no
    template is cut from this source. Documents without the value are in no group."""
    max_removed: float = 0.5
    """A warning names each reason and each filter that removes more than this share of the source's documents, or of
    its cleaned text in spans, in (0, 1]."""
    limits: LimitsConfig | None = None
    """Limits of one input of this source; null: the limits of the corpus."""

    where: Place = field(default_factory=Place, compare=False, repr=False, metadata=PLACE)
    """Where the entry is in the corpus file."""

    @property
    def label(self) -> str:
        """The row; of a source with several, what replaces it in messages and accounts."""
        return self.name if isinstance(self.name, str) else self.name.label

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of the documents."""
        return (self.name,) if isinstance(self.name, str) else self.name.rows

    def of_row(self, row: str | None) -> SourceConfig:
        """The source restricted to one of several rows; itself for None."""
        return self if row is None else dataclasses.replace(self, name=row)

    def __post_init__(self) -> None:
        for key in ("label", "dataset"):
            if not getattr(self, key).strip():
                key = key.replace("label", "name")
                raise ConfigError(f"{key} of a source is empty: it is the name of a row or group of rows of Table 1")
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


#: `dedup: {near: NAME}`. P(candidate) at J = .5, .6, .7, .8: paper .0004 .016 .30 .995, fast .12 .42 .85 .997.
_NEAR_PRESETS = {"paper": (450, 20), "fast": (32, 8)}


@dataclass(frozen=True, kw_only=True, slots=True)
class NearConfig:
    """Near duplicates: MinHash candidates, each pair compared. Defaults as in Lee et al. 2022, appendix A."""

    ngram: int = 5
    """Words per shingle."""
    bands: int = 450
    """Number of bands; two documents that agree in all rows of one band are a candidate pair."""
    rows: int = 20
    """Hash values per band."""
    edit_similarity: float = 0.8
    """A candidate is a duplicate if its edit similarity over words is above this value."""
    numbers: Literal["keep", "any"] = "keep"
    """`keep`: documents with different sequences of numbers are not duplicates (two dividend notices, two quarters)."""

    @classmethod
    def named(cls, name: str) -> NearConfig:
        """`paper`: the setting of Lee et al.; `fast`: 256 hashes, for .85 of the pairs with J = .7, .997 at .8."""
        bounds.one_of("near", name, _NEAR_PRESETS)
        bands, rows = _NEAR_PRESETS[name]
        return cls(bands=bands, rows=rows)

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names that `named` accepts."""
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
    """Exact substrings: removes passages that occur elsewhere too. The default is one pass over bytes.

    Source: Lee et al. 2022, section 4.1, with the setting `{min_length: 50, unit: tokens, keep: none}`.
    """

    min_length: int = 200
    """Minimal length of a repeated passage, in symbols."""
    unit: Literal["bytes", "tokens"] = "bytes"
    """The symbols of `min_length`."""
    tokenizer: str | None = None
    """`unit: tokens`: the folder or tokenizer.json of a FinPile tokenizer, relative to the corpus's `root`."""
    keep: Literal["first", "none"] = "first"
    """`first`: keeps the earliest copy; `none`: removes all copies, as the code of Lee et al."""
    rounds: int | Literal["fixpoint"] = 1
    """Number of passes: a cut can join text into a new repeated passage. `fixpoint`: until nothing is cut."""
    snap: Literal["none", "word", "line"] = "word"
    """Cuts shrink to whole words or lines and never join two of them; `none`: only to whole characters, so that the
    words before and after a cut can be joined."""
    min_chars: int = 20
    """A document with fewer characters after cuts, not counting surrounding white space, is removed as a whole."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class TemplatesConfig:
    """Lines and paragraphs that earlier documents of a group have: navigation, disclaimers, footers of agencies.

    A document is cut because of earlier documents alone, in order of time, undated ones last.
    """

    min_documents: int = 10
    """A line or paragraph is cut if at least this number of earlier documents of the group, of different texts, have
    it. These first ones keep it."""
    min_block_chars: int = 20
    """Lines with fewer characters are cut only at the beginning and at the end of a text, where all lines before them,
    or after them, are cut too: short lines inside are names of tables' rows. The same holds for lines without a letter.
    Lines with a digit are cut from twice as many characters on."""
    min_chars: int = 20
    """A document with fewer characters after cuts, not counting surrounding white space, is removed as a whole."""

    def __post_init__(self) -> None:
        why = "that number of documents is kept for each line while lines are counted"
        bounds.within("templates.min_documents", self.min_documents, 1, bounds.MAX_EARLIER_DOCUMENTS, why)
        why = "longer lines are not cut, and few lines have more"
        bounds.within("templates.min_block_chars", self.min_block_chars, 1, bounds.MAX_WINDOW, why)
        why = "it bounds what is left of a document, and few have more"
        bounds.within("templates.min_chars", self.min_chars, 0, bounds.MAX_WINDOW, why)


def _added_stages() -> dict[str, Any]:
    return {info.name: info.load_config() for info in stages.added()}


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupConfig:
    """Deduplication: which duplicates are removed, and in which scope."""

    exact: bool = True
    """Whether to remove all but one of the documents with equal text."""
    exact_fold: Literal["none", "whitespace", "case", "case_whitespace"] = "none"
    """Differences that the comparison ignores: white space, case (Unicode case folding), or both."""
    templates: TemplatesConfig | None = None
    """Removal of lines and paragraphs that earlier documents of a group have, for sources with a `template_group`; null
    keeps them."""
    near: NearConfig | None = field(default_factory=NearConfig)
    """A setting, or the name of one: `paper` or `fast`; null keeps near duplicates."""
    substring: SubstringConfig | None = None
    """Removal of repeated passages; null keeps them."""
    order: Literal["priority", "time"] = "priority"
    """Which of several copies is kept. `priority`: that of the earlier source, then the earlier one. `time`: the
    earlier one, then that of the earlier source; no decision about a document depends on a later document, undated ones
    are last, and a timestamp at 00:00:00 UTC counts as the end of its day."""
    scope: Literal["dataset", "corpus"] = "dataset"
    """`dataset`: within each dataset, as in BloombergGPT §2; `corpus`: across all datasets."""
    added: Mapping[str, Any] = field(default_factory=dict, metadata=added_keys(_added_stages))
    """The settings of dedup stages of other packages, by name: in the file, keys beside those above."""

    def __post_init__(self) -> None:
        for what, asked in (("near duplicates", self.near), ("repeated substrings", self.substring)):
            if asked is not None and not self.exact:
                raise ConfigError(f"dedup: {what} are searched among distinct texts: set `exact: true`")
        if self.order == "time" and self.substring is not None and self.substring.keep == "none":
            raise ConfigError(
                "dedup.substring: `keep: none` cuts a passage because of later documents: set `keep: first`, or "
                "`order: priority`"
            )

    @property
    def optional_keys(self) -> tuple[str, ...]:
        """The keys of its stages that are part of a build only if they are given."""
        own = ("dedup.templates",) if self.templates is not None else ()
        return (*own, *(f"dedup.{name}" for name in self.added))


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlapConfig:
    """Removal of held-out documents that share text with training documents of any dataset."""

    min_length: int = 200
    """Minimal length, in bytes, of a passage that a removed held-out document shares with a training document."""
    max_documents: int = 10
    """A passage in more training documents than this is boilerplate and does not count."""
    near: NearConfig | None = field(default_factory=lambda: NearConfig.named("fast"))
    """Removes held-out documents that are near duplicates of training documents; null: no such search."""

    def __post_init__(self) -> None:
        bounds.within("overlap.min_length", self.min_length, 2, bounds.MAX_WINDOW, _WINDOW_REASON)
        bounds.within("overlap.max_documents", self.max_documents, 1, bounds.MAX_DOCUMENTS, _DOCUMENTS_REASON)


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalSetConfig:
    """An evaluation set; documents that contain its items are removed."""

    name: str
    """Name of the set in the ledger: `LAMBADA`, `ConvFinQA`, ..."""
    paths: tuple[str, ...]
    """Files or patterns: .jsonl, .json or .parquet, also with .gz, .zst, .bz2, .xz or .lz4."""
    fields: tuple[str, ...]
    """Fields with the texts of an item: `passage`, `doc.pre_text`. Dots select keys of objects and of list entries."""
    records: str | None = None
    """JSON: the key of the list of items (`dev`); null if the file is the list."""
    id: str | None = None
    """The field with the name of an item; null: its number in the set, from 0."""
    min_coverage: float | None = None
    """Overrides `min_coverage` for this set."""

    where: Place = field(default_factory=Place, compare=False, repr=False, metadata=PLACE)
    """Where the entry is in the corpus file."""

    def __post_init__(self) -> None:
        for key in ("name", "paths", "fields"):
            if not getattr(self, key):
                raise ConfigError(f"{key} of evaluation set {self.name!r} is empty: a set has a name, files and fields")
        if self.min_coverage is not None:
            bounds.part(f"min_coverage of evaluation set {self.name!r}", self.min_coverage)


#: Upper bound of `ngram`.
MAX_GRAM_WORDS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ContaminationConfig:
    """Removal of documents with items of evaluation sets. Defaults after Brown et al. 2020 (GPT-3), appendix C."""

    sets: tuple[EvalSetConfig, ...]
    """The evaluation sets, with distinct names."""
    ngram: int = 13
    """Consecutive words of a match, at most 32."""
    min_words: int = 8
    """Texts with fewer words are not searched for; texts with fewer than `ngram` words only as a whole."""
    max_documents: int = 10
    """An n-gram in more documents than this is boilerplate and does not count."""
    min_coverage: float = 0.3
    """Share of an item's searched words that a document must contain, in (0, 1]. The default is more than one sentence
    of a passage; use a value near 1 for items that consist of standard phrases of filings."""

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
    """Documents published after this day (UTC) are held out; null: none."""
    undated: Literal["train", "drop", "heldout"] | None = None
    """Documents without a date; required with `after`: `train` makes them training documents, although some may be
    from after that day, `drop` removes them with rows in the ledger, `heldout` holds them out."""
    overlap: OverlapConfig | None = None
    """Removal of held-out documents that share text with training documents; null keeps them."""

    def __post_init__(self) -> None:
        if self.after is not None and self.undated is None:
            raise ConfigError(
                "heldout.after needs `undated`, the choice for documents without a date: "
                "`undated: train` trains on them, although some may be from after that day; `undated: drop` removes "
                "them; `undated: heldout` holds them out"
            )
        if self.undated is not None and self.after is None:
            raise ConfigError("heldout.undated needs a temporal split: set its day with `after`")
        if self.overlap is not None and self.after is None:
            raise ConfigError("heldout.overlap needs held-out documents: set the day of the split with `after`")

    def check_order(self, order: str) -> None:
        """Raises: ConfigError if a decision would depend on later documents under `order` of `dedup`."""
        if order == "time" and self.overlap is not None and self.undated == "train":
            raise ConfigError(
                "heldout: `overlap` would remove held-out documents because of undated training documents, which are "
                "later under `order: time` of `dedup`: set `undated: drop` or `heldout`, or `order: priority`"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """The Unigram tokenizer, BloombergGPT §2.3."""

    mode: Literal["split-merge", "refit", "global"] = "split-merge"
    """`split-merge`: the average of one model per chunk, as in the paper; `refit`: followed by EM on all text;
    `global`: one model of all text, without chunks."""
    vocab_size: int = 131_072
    """Number of entries: pieces, the 256 bytes and `<|endoftext|>`."""
    chunks: int | Literal["auto"] = "auto"
    """Chunks per domain, with one model each: 256 in the paper; `auto` gives every chunk enough text."""
    chunk_vocab_size: int = 65_536
    """Pieces of the model of a chunk (fewer if its text is too short)."""
    max_piece_bytes: int = 32
    """Length of the longest piece, in bytes."""
    train_on: tuple[str, ...] = ()
    """Datasets to train on (The Pile in the paper); empty: all."""

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
    """Private datasets: the first rows of Table 1, and the columns of Table 2; all others are PUBLIC."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusConfig:
    """A corpus file."""

    name: str
    """Name of the corpus, for reports."""
    sources: tuple[SourceConfig, ...]
    """The sources in order of priority: of two duplicates, the one from the earlier source is kept."""
    root: str = "."
    """Base folder of relative paths, itself relative to the corpus file."""
    dedup: DedupConfig = field(default_factory=DedupConfig)
    contamination: ContaminationConfig | None = None
    """Evaluation sets: documents with their items are removed from training and held-out documents; null: no search."""
    heldout: HeldoutConfig = field(default_factory=HeldoutConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    tokens: TokensConfig = field(default_factory=TokensConfig)
    mixture: Mapping[str, float | WeightConfig] | None = None
    """How often documents are in the token shards, by row, dataset or `DATASET/ROW`: a number, `3 epochs`, `40%` of all
    tokens, or a mapping; rows without an entry: once. With a mixture, even an empty one, shards have their sources."""
    reports: ReportsConfig = field(default_factory=ReportsConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    """Limits of one input, for every source without limits of its own."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("sources is empty: list at least one under `sources:`")
        bounded = tuple(dataclasses.replace(source, limits=source.limits or self.limits) for source in self.sources)
        object.__setattr__(self, "sources", bounded)  # so that a source has all settings of its reading
        grouped = [source.label for source in self.sources if source.template_group is not None]
        if grouped and self.dedup.templates is None:
            raise ConfigError(
                f"dedup.templates are not searched, and source {grouped[0]!r} has a `template_group`: add "
                "`templates: {}` to `dedup`, or remove it"
            )
        if self.dedup.templates is not None and not grouped:
            raise ConfigError("dedup: `templates` needs a source with a `template_group`, such as host or meta.cik")
        known = sorted({source.dataset for source in self.sources})
        for name in self.tokenizer.train_on:
            bounds.one_of("tokenizer.train_on", name, known)
        self.heldout.check_order(self.dedup.order)
        if self.mixture is not None:
            weights(self.mixture, self.rows)

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """(dataset, source) of all rows of Table 1, sorted."""
        return tuple(sorted({(source.dataset, row) for source in self.sources for row in source.rows}))

    @property
    def has_sub_sources(self) -> bool:
        """Whether the documents have the column `sub_source`."""
        return any(source.sub_source is not None for source in self.sources)


def load_config(path: str | Path) -> CorpusConfig:
    """Reads a corpus file; `root` of the result is absolute.

    Raises: ConfigError with file, line, the value found and the value expected.
    """
    config = load_yaml(path, CorpusConfig, "the corpus")
    root = absolute(path, config.root)
    return dataclasses.replace(config, root=root, sources=tuple(_with_root(source, root) for source in config.sources))


def from_dict(values: Mapping[str, Any]) -> CorpusConfig:
    """The inverse of `to_dict` for a corpus file, as its values are in a manifest.

    Raises: ConfigError for values of another version.
    """
    after = values["heldout"]["after"]
    heldout = {**values["heldout"], "after": None if after is None else date.fromisoformat(after)}
    return from_values({**values, "heldout": heldout}, CorpusConfig, "the corpus of the manifest")


def _with_root(source: SourceConfig, root: str) -> SourceConfig:
    """The source with the files of its filters relative to the root of the corpus."""

    def place(path: str) -> str:
        return path if "://" in path else posixpath.join(root, path)

    filters = tuple(
        dataclasses.replace(entry, parameters=with_root(entry.parameters, place)) for entry in source.clean.filters
    )
    return dataclasses.replace(source, clean=dataclasses.replace(source.clean, filters=filters))


def to_dict(value: Any) -> Any:
    """A configuration as JSON values, including defaults."""
    if isinstance(value, FilterConfig):
        return value.to_setting()
    if isinstance(value, WeightConfig):
        return to_setting(value)
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
