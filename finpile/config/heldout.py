"""The keys `heldout` and `contamination` of the corpus file: what is kept from training."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from finpile.config import bounds
from finpile.config.dedup import NearConfig
from finpile.config.strict_yaml import PLACE, Place
from finpile.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class OverlapConfig:
    """Removal of held-out documents that share text with training documents of any dataset."""

    min_length: int = 200
    """Minimal length, in bytes, of a passage that a removed held-out document shares with a training document."""
    max_documents: int = 10
    """A passage in more training documents than this is boilerplate and does not count."""
    near: NearConfig | None = field(default_factory=NearConfig)
    """Removes held-out documents that are near duplicates of training documents; null: no such search."""

    def __post_init__(self) -> None:
        bounds.within("overlap.min_length", self.min_length, 2, bounds.MAX_WINDOW, bounds.WINDOW_REASON)
        bounds.within("overlap.max_documents", self.max_documents, 1, bounds.MAX_DOCUMENTS, bounds.DOCUMENTS_REASON)


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
        bounds.within(
            "contamination.max_documents", self.max_documents, 1, bounds.MAX_DOCUMENTS, bounds.DOCUMENTS_REASON
        )
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

    def check_dedup(self, *, exact: bool, order: str) -> None:
        """Raises: ConfigError if a search of `overlap` cannot run after `dedup` with these settings: near duplicates
        are searched among distinct texts, and no decision may depend on later documents under `order: time`."""
        if not exact and self.overlap is not None and self.overlap.near is not None:
            raise ConfigError(
                "heldout.overlap: near duplicates are searched among distinct texts: set `exact: true` of `dedup`, or "
                "`overlap: {near: null}`"
            )
        if order == "time" and self.overlap is not None and self.undated == "train":
            raise ConfigError(
                "heldout: `overlap` would remove held-out documents because of undated training documents, which are "
                "later under `order: time` of `dedup`: set `undated: drop` or `heldout`, or `order: priority`"
            )
