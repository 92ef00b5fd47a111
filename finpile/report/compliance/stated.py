"""What the provider of a model states for the papers and no build knows, as a YAML file; all keys are optional.

A paper marks what nobody stated as `not stated`. The sections are those of the European Commission's template
(`finpile.report.compliance.summary`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import yaml

from finpile.config import bounds
from finpile.config.strict_yaml import load_yaml, settings
from finpile.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderStatement:
    """Section 1.1."""

    name: str | None = None
    """Of the provider."""
    contact: str | None = None
    """An address that is published."""
    representative: str | None = None
    """The authorised representative in the Union, and its contact."""
    small: bool | None = None
    """Whether it is a small or medium-sized enterprise, which lists fewer domains in section 2.3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelStatement:
    """Section 1.2."""

    names: tuple[str, ...] = ()
    """With versions."""
    dependencies: str | None = None
    """Models of which it is a modification or fine-tuning."""
    placed_on_market: date | None = None
    """In the Union."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DataStatement:
    """Section 1.3."""

    acquired_until: date | None = None
    """The last day on which data was acquired."""
    continues: bool | None = None
    """Whether the model is trained on new data after that day."""
    languages: str | None = None
    """Of the data, if no filter says it."""
    characteristics: str | None = None
    """Others, such as regions and demography."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceStatement:
    """A source in sections 2.1 to 2.6."""

    link: str | None = None
    """Where the data set is."""
    description: str | None = None
    """Of its content."""
    first_day: date | None = None
    """Of the collection."""
    last_day: date | None = None
    """Of the collection."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CrawlerStatement:
    """A crawler of section 2.3."""

    name: str
    """As it names itself to sites."""
    purposes: str | None = None
    """Of the crawl."""
    behaviour: str | None = None
    """How it treats robots.txt, logins and paywalls."""
    first_day: date | None = None
    """Of the crawl."""
    last_day: date | None = None
    """Of the crawl."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UserDataStatement:
    """Section 2.4."""

    model_interactions: bool | None = None
    """Whether prompts and other interactions with the model are in the data."""
    other_services: bool | None = None
    """Whether interactions with other services of the provider are."""
    description: str | None = None
    """Of these services."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SyntheticStatement:
    """Section 2.5."""

    models: tuple[str, ...] = ()
    """Models on the market that generated data."""
    other_models: str | None = None
    """Others that did."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RightsStatement:
    """Section 3.1."""

    code_of_practice: bool | None = None
    """Whether the provider signed the Code of Practice for general-purpose AI models."""
    measures: str | None = None
    """By which reservations of rights are respected: protocols, lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TakedownStatement:
    """When and on whose request a snapshot took documents down."""

    snapshot: int
    """Its number."""
    day: date | None = None
    """Of the removal."""
    reference: str | None = None
    """Of the request, in the provider's files. It is published with the certificate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """The YAML file of `finpile report --compliance --stated`."""

    version: str | None = None
    """Of the summary."""
    updated: date | None = None
    """The day of its last change."""
    provider: ProviderStatement = field(default_factory=ProviderStatement)
    model: ModelStatement = field(default_factory=ModelStatement)
    data: DataStatement = field(default_factory=DataStatement)
    sources: Mapping[str, SourceStatement] = field(default_factory=dict)
    """By `DATASET/SOURCE`."""
    crawlers: tuple[CrawlerStatement, ...] = ()
    user_data: UserDataStatement = field(default_factory=UserDataStatement)
    synthetic: SyntheticStatement = field(default_factory=SyntheticStatement)
    rights: RightsStatement = field(default_factory=RightsStatement)
    illegal_content: str | None = None
    """Section 3.2: measures against it."""
    other: str | None = None
    """Section 3.3."""
    takedowns: tuple[TakedownStatement, ...] = ()

    def __post_init__(self) -> None:
        numbers = [one.snapshot for one in self.takedowns]
        if twice := sorted({number for number in numbers if numbers.count(number) > 1}):
            raise ConfigError(f"takedowns: snapshot {twice[0]} is there twice: keep one of the entries")

    def check(self, rows: Iterable[str], removals: Iterable[int]) -> None:
        """Checks that it is about sources (`DATASET/SOURCE`) and removals (snapshots) of the corpus.

        Raises: ConfigError.
        """
        known = sorted(rows)
        for row in self.sources:
            bounds.one_of("sources of the statement", row, known)
        there = set(removals)
        for one in self.takedowns:
            if one.snapshot not in there:
                raise ConfigError(
                    f"takedowns of the statement: snapshot {one.snapshot} took nothing down; those that did: "
                    f"{', '.join(map(str, sorted(there))) or 'none'}"
                )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSteps:
    """The steps of a training run that saw documents which a snapshot took down."""

    run: str
    """The name of its folder."""
    snapshot: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """`compliance/stated.yaml`: all that the papers are made of beside the build."""

    manifest: str
    """The checksum of the manifest of the build or snapshot that they are about."""
    suffixes: str
    """The version of the list of public suffixes (`finpile.report.compliance.domains`)."""
    stated: Statement = field(default_factory=Statement)
    runs: tuple[RunSteps, ...] = ()

    def to_yaml(self) -> bytes:
        """The file, with every key."""
        return yaml.safe_dump(_plain(self), sort_keys=False, allow_unicode=True, width=120).encode()


def load_statement(path: str) -> Statement:
    """Raises: ConfigError with file, line, the value found and the value expected."""
    return load_yaml(path, Statement, "the statement")


def load_given(url: str) -> Given:
    """The inverse of `Given.to_yaml`.

    Raises: ConfigError.
    """
    return load_yaml(url, Given, "what was stated")


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {entry.name: _plain(getattr(value, entry.name)) for entry in settings(value)}
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in sorted(value.items())}
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value
