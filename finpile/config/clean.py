"""The key `clean` of a source: its filters, and what becomes of its markup."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from finpile.config.values import to_dict
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS

#: By name: the filters of a preset, in order, with their parameters. The rules of C4 and Gopher are about English.
FILTER_PRESETS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "web": {"language": {"allow": ("en",)}, "gopher_repetition": {}, "gopher_quality": {}, "c4": {}},
}


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
    def all_named(cls, name: str) -> tuple[FilterConfig, ...]:
        """The filters of a preset, or the one filter of that name. Raises: as `named`."""
        if name not in FILTER_PRESETS:
            return (cls.named(name),)
        return tuple(
            cls(name=each, parameters=cls.parameters_of(each)(**values))
            for each, values in FILTER_PRESETS[name].items()
        )

    @classmethod
    def choices(cls) -> tuple[str, ...]:
        """The names of all filters and presets."""
        return (*FILTERS.names(), *FILTER_PRESETS)

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
    `fineweb`, `language`, `url_list`, `fasttext`, `pii`, or an entry point `finpile.filters` of another package. `web`
    is `{language: {allow: [en]}}, gopher_repetition, gopher_quality, c4`. Rules for web pages remove most of any other
    text."""
    html: Literal["auto", "always", "never"] = "auto"
    """`auto`: extracts the text of documents that the source declares as HTML."""
    tables: Literal["lines", "markdown"] = "lines"
    """Tables with data, of HTML and of text filings of EDGAR: a line for each row with tabs between its cells, or
    Markdown grids with their heads."""
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
        named = (FilterConfig.all_named(entry) if isinstance(entry, str) else (entry,) for entry in given)
        filters = tuple(itertools.chain.from_iterable(named))
        object.__setattr__(self, "filters", filters)  # callers in Python can give names
        for entry in filters[:-1]:
            if FILTERS.get(entry.name).masks:
                raise ConfigError(f"filters: `{entry.name}` masks text, which later filters would read: put it last")
