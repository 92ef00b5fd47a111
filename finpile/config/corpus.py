"""The corpus file as frozen dataclasses, read by `finpile.config.strict_yaml`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from finpile.config import bounds
from finpile.config.dedup import DedupConfig
from finpile.config.heldout import ContaminationConfig, HeldoutConfig, OverlapConfig
from finpile.config.limits import LimitsConfig
from finpile.config.mixture import WeightConfig, weights
from finpile.config.sources import SourceConfig, with_files_below
from finpile.config.strict_yaml import absolute, from_values, load_yaml
from finpile.config.tokenizer import TokenizerConfig, TokensConfig
from finpile.errors import ConfigError
from finpile.plugins.chart import CHARTS


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportsConfig:
    """The reports."""

    private: tuple[str, ...] = ("FinPile",)
    """Private datasets: the first rows of Table 1, and the columns of Table 2; all others are PUBLIC."""
    charts: tuple[str, ...] = ()
    """Charts of other packages on the page, by the names of their entry points `finpile.charts`."""

    def __post_init__(self) -> None:
        for name in self.charts:
            CHARTS.check(name)


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
    tokenizer: TokenizerConfig | None = field(default_factory=TokenizerConfig)
    """`none`: the build has documents, ledger and reports, but no tokenizer and no token shards."""
    tokens: TokensConfig = field(default_factory=TokensConfig)
    mixture: Mapping[str, float | WeightConfig] | None = None
    """How often documents are in the token shards, by source, dataset or `DATASET/SOURCE`: a number, `3 epochs`, `40%`
    of all tokens, or a mapping; sources without an entry: once. With a mixture, even an empty one, shards have their
    sources."""
    reports: ReportsConfig = field(default_factory=ReportsConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    """Limits of one input, for every source without limits of its own."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise ConfigError("sources is empty: list at least one under `sources:`")
        bounded = tuple(dataclasses.replace(source, limits=source.limits or self.limits) for source in self.sources)
        object.__setattr__(self, "sources", bounded)  # so that a source has all settings of its reading
        if self.dedup.preset is not None:
            self._complete_preset()
        grouped = [source.label for source in self.sources if source.template_group is not None]
        if grouped and self.dedup.templates is None:
            raise ConfigError(
                f"dedup.templates are not searched, and source {grouped[0]!r} has a `template_group`: add "
                "`templates: {}` to `dedup`, or remove it"
            )
        if self.dedup.templates is not None and not grouped:
            raise ConfigError("dedup: `templates` needs a source with a `template_group`, such as host or meta.cik")
        known = sorted({source.dataset for source in self.sources})
        for name in self.tokenizer.train_on if self.tokenizer else ():
            bounds.one_of("tokenizer.train_on", name, known)
        self._check_kinds()
        if self.tokenizer is None and self.mixture is not None:
            raise ConfigError("mixture is of token shards, and `tokenizer: none` makes none: remove one of them")
        self.heldout.check_dedup(exact=self.dedup.exact, order=self.dedup.order)
        if self.mixture is not None:
            weights(self.mixture, self.rows)

    def _check_kinds(self) -> None:
        """Documents have the kind of their row."""
        kinds: dict[tuple[str, str], str] = {}
        for source in self.sources:
            for row in source.rows:
                if source.kind is not None and kinds.setdefault((source.dataset, row), source.kind) != source.kind:
                    raise ConfigError(
                        f"kind: the row {row!r} of {source.dataset} is {kinds[source.dataset, row]} and {source.kind}: "
                        "give its entries one kind, or names of their own"
                    )

    def _complete_preset(self) -> None:
        """Adds the settings of `dedup: thorough` that are under other keys; what is given stays."""
        grouped = tuple(
            dataclasses.replace(source, template_group=source.template_group or "host") for source in self.sources
        )
        object.__setattr__(self, "sources", grouped)
        if self.heldout.after is not None and self.heldout.overlap is None:
            object.__setattr__(self, "heldout", dataclasses.replace(self.heldout, overlap=OverlapConfig()))

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """(dataset, source) of all sources, sorted."""
        return tuple(sorted({(source.dataset, row) for source in self.sources for row in source.rows}))

    @property
    def has_sub_sources(self) -> bool:
        """Whether the documents have the column `sub_source`."""
        return any(source.sub_source is not None for source in self.sources)


def load_config(path: str | Path, root: str | None = None) -> CorpusConfig:
    """Reads a corpus file; its `root` is absolute in the result. Another `root`, relative to the current folder,
    overrides it.

    Raises: ConfigError with file, line, the value found and the value expected.
    """
    config = load_yaml(path, CorpusConfig, "the corpus")
    if root is None:
        root = absolute(path, config.root)
    elif "://" not in root:
        root = str(Path(root).resolve())
    return dataclasses.replace(
        config, root=root, sources=tuple(with_files_below(source, root) for source in config.sources)
    )


def from_dict(values: Mapping[str, Any]) -> CorpusConfig:
    """The inverse of `to_dict` for a corpus file, as its values are in a manifest.

    Raises: ConfigError for values of another version.
    """
    after = values["heldout"]["after"]
    heldout = {**values["heldout"], "after": None if after is None else date.fromisoformat(after)}
    return from_values({**values, "heldout": heldout}, CorpusConfig, "the corpus of the manifest")
