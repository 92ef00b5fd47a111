"""The key `dedup` of the corpus file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from finpile.config import bounds
from finpile.config.strict_yaml import PRESET, added_keys
from finpile.errors import ConfigError
from finpile.plugins import stages

#: `dedup: {near: NAME}`: words per shingle, bands, rows.
_NEAR_PRESETS = {"fast": (1, 48, 10), "paper": (5, 450, 20)}


@dataclass(frozen=True, kw_only=True, slots=True)
class NearConfig:
    """Near duplicates: MinHash candidates, each pair compared. The default is `fast`."""

    ngram: int = 1
    """Words per shingle."""
    bands: int = 48
    """Number of bands; two documents that agree in all rows of one band are a candidate pair."""
    rows: int = 10
    """Hash values per band."""
    edit_similarity: float = 0.8
    """A candidate is a duplicate if its edit similarity over words is above this value."""
    numbers: Literal["keep", "any"] = "keep"
    """`keep`: documents with different sequences of numbers are not duplicates (two dividend notices, two quarters)."""

    @classmethod
    def named(cls, name: str) -> NearConfig:
        """`fast`: 480 hashes of single words; `paper`: 9,000 of shingles of five, as Lee et al. 2022, appendix A."""
        bounds.one_of("near", name, _NEAR_PRESETS)
        ngram, bands, rows = _NEAR_PRESETS[name]
        return cls(ngram=ngram, bands=bands, rows=rows)

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names that `named` accepts."""
        return tuple(_NEAR_PRESETS)

    def __post_init__(self) -> None:
        bounds.literals("near", self)
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
        bounds.literals("substring", self)
        bounds.within("substring.min_length", self.min_length, 2, bounds.MAX_WINDOW, bounds.WINDOW_REASON)
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
    """Deduplication: which duplicates are removed, and in which scope. `thorough` is `{near: fast, substring: {},
    templates: {}}` with `template_group: host` of each source without one, and with `heldout: {overlap: {}}` if
    documents are held out."""

    exact: bool = True
    """Whether to remove all but one of the documents with equal text."""
    exact_fold: Literal["none", "whitespace", "case", "case_whitespace"] = "none"
    """Differences that the comparison ignores: ASCII white space (not U+00A0 and U+3000), case (Unicode case folding),
    or both."""
    templates: TemplatesConfig | None = None
    """Removal of lines and paragraphs that earlier documents of a group have, for sources with a `template_group`; null
    keeps them."""
    near: NearConfig | None = field(default_factory=NearConfig)
    """A setting, or the name of one: `fast` or `paper`; null keeps near duplicates."""
    substring: SubstringConfig | None = None
    """Removal of repeated passages; null keeps them."""
    order: Literal["priority", "time"] = "priority"
    """Which of several copies is kept. `priority`: that of the earlier source, then the earlier one. `time`: the
    earlier one, then that of the earlier source; no decision about a document depends on a later document, undated ones
    are last, and a timestamp at 00:00:00 UTC counts as the end of its day."""
    scope: Literal["dataset", "corpus"] = "dataset"
    """`dataset`: within each dataset, as in BloombergGPT §2; `corpus`: across all datasets."""
    preset: str | None = field(default=None, compare=False, repr=False, metadata=PRESET)
    """The preset whose settings these are, for those that it has under other keys."""
    added: Mapping[str, Any] = field(default_factory=dict, metadata=added_keys(_added_stages))
    """The settings of dedup stages of other packages, by name: in the file, keys beside those above."""

    def __post_init__(self) -> None:
        bounds.literals("dedup", self)
        for what, asked in (("near duplicates", self.near), ("repeated substrings", self.substring)):
            if asked is not None and not self.exact:
                raise ConfigError(f"dedup: {what} are searched among distinct texts: set `exact: true`")
        if self.order == "time" and self.substring is not None and self.substring.keep == "none":
            raise ConfigError(
                "dedup.substring: `keep: none` cuts a passage because of later documents: set `keep: first`, or "
                "`order: priority`"
            )

    @classmethod
    def named(cls, name: str) -> DedupConfig:
        """`thorough`: near duplicates, substrings and templates; a corpus adds what it has under other keys."""
        bounds.one_of("dedup", name, cls.choices())
        return cls(substring=SubstringConfig(), templates=TemplatesConfig(), preset=name)

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names that `named` accepts."""
        return ("thorough",)

    @property
    def optional_keys(self) -> tuple[str, ...]:
        """The keys of its stages that are part of a build only if they are given."""
        own = ("dedup.templates",) if self.templates is not None else ()
        return (*own, *(f"dedup.{name}" for name in self.added))
