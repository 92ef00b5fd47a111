"""The table of stages: facts that layout, ledger, reports, `verify`, `show` and the build read. Imports no Beam.

A stage has one name: that of its module, of its folder `.work/NAME`, of its key in the corpus file, and of the value
of `stage` in the ledger.

A deduplication stage is an `Algorithm`: facts, and the plan that all executors run. Other packages add one by an entry
point in the group `finpile.stages`. It is part of a build only if the corpus file has its key: installing a package
changes no build.

Decisions: docs/decisions/0025-one-table-of-stages.md, 0080-one-plan-per-algorithm.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any, cast

from finpile.errors import ConfigError

GROUP = "finpile.stages"
#: Publishes documents and ledger: the earliest stage with which a build may end.
DEDUPLICATED = "split"


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason of ledger rows."""

    name: str
    meaning: str
    """For the guide; in Markdown."""
    is_copy: bool = False
    """Whether each row names a kept document, in `duplicate_of`. If a stage has such a reason, each whole document that
    it removes with a kept document counts as a copy of that document (`num_copies`)."""
    names_kept: bool = False
    """Whether rows name a document that is kept, and is no copy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInfo:
    """Facts about one stage."""

    name: str
    """Name of its module, folder, config key and ledger value."""
    pipeline: str = ""
    """Its `finpile_pipelines.stage.Stage`, as in an entry point: `package.module:STAGE`."""
    key: str = ""
    """Dotted key in the corpus file."""
    is_optional: bool = False
    """Whether it is part of a build only if the corpus file has its key, which `DedupConfig.optional_keys` lists."""
    makes_tokens: bool = False
    """Whether it is left out of builds with `tokenizer: none`."""
    writes_ledger: bool = False
    """Whether it removes documents or spans, with rows in `removed/stage=NAME`."""
    is_dedup: bool = False
    """Whether it marks removals in clean shards, which `split` applies. Implies `writes_ledger`."""
    reasons: tuple[Reason, ...] = ()
    """Dedup stages: the reasons of its rows."""
    published: tuple[str, ...] = ()
    """Folders of OUT that it writes, and removes before it runs again."""

    @property
    def module(self) -> str:
        """The module that defines its work."""
        return self.pipeline.partition(":")[0]

    @property
    def copy_reasons(self) -> tuple[str, ...]:
        """The reasons of copies."""
        return tuple(reason.name for reason in self.reasons if reason.is_copy)

    @property
    def redirects(self) -> bool:
        """Whether it may remove a document and name another one that is kept."""
        return any(reason.is_copy or reason.names_kept for reason in self.reasons)


@dataclass(frozen=True, kw_only=True, slots=True)
class Algorithm(StageInfo):
    """A deduplication algorithm: a stage that any executor can run from its plan (`finpile.dedup.plan`)."""

    plan: str
    """A function from `finpile.dedup.plan.Settings` to a `Plan`, or None if the settings do not ask for it:
    `package.module:function`."""
    is_dedup: bool = True
    config: str = ""
    """Of an algorithm whose settings are no field of a config of this package: the frozen keyword-only dataclass of the
    key's settings, as `package.module:NameConfig`."""
    after: str = ""
    """Of other packages: the stage that it follows. Those that follow the same stage are ordered by name."""
    rate: str = "exact"
    """The stage whose measured time `finpile plan` takes if it has no measurement of this one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or f"dedup.{self.name}")
        if self.config:
            object.__setattr__(self, "is_optional", True)

    @property
    def module(self) -> str:
        return self.plan.partition(":")[0]

    def load_plan(self) -> Callable[[Any], Any]:
        """The function that `plan` names."""
        return cast(Callable[[Any], Any], _load(self.plan))

    def load_config(self) -> type:
        """The dataclass that `config` names."""
        return cast(type, _load(self.config))


_PIPELINES = "finpile_pipelines"
#: Not in corpus files: it makes the stage `takedown` part of a snapshot that takes documents down, or follows one.
TAKEDOWN_KEY = "takedowns"
#: The stages of this package, in the order in which they run: facts, or where an `Algorithm` is defined.
_OWN: tuple[StageInfo | str, ...] = (
    StageInfo(
        name="ingest",
        pipeline=f"{_PIPELINES}.corpus.ingest:STAGE",
        key="sources",
        writes_ledger=True,
        published=("inputs",),
    ),
    StageInfo(name="clean", pipeline=f"{_PIPELINES}.corpus.clean:STAGE", key="sources.clean", writes_ledger=True),
    StageInfo(
        name="takedown",
        pipeline=f"{_PIPELINES}.dedup.takedown:STAGE",
        key=TAKEDOWN_KEY,
        is_optional=True,
        is_dedup=True,
        reasons=(
            Reason("taken_down", "a document that `finpile remove` took down; `detail` has why; there is no text"),
        ),
    ),
    "finpile.dedup.exact:ALGORITHM",
    "finpile.dedup.templates:ALGORITHM",
    "finpile.dedup.near:ALGORITHM",
    "finpile.dedup.substring:ALGORITHM",
    "finpile.dedup.overlap:ALGORITHM",
    "finpile.dedup.contamination:ALGORITHM",
    StageInfo(
        name="split",
        pipeline=f"{_PIPELINES}.corpus.split:STAGE",
        key="heldout",
        published=("documents", "facts", "removed"),
    ),
    StageInfo(
        name="tokenizer",
        pipeline=f"{_PIPELINES}.unigram.tokenizer:STAGE",
        key="tokenizer",
        makes_tokens=True,
        published=("tokenizer",),
    ),
    StageInfo(
        name="tokens", pipeline=f"{_PIPELINES}.tokens:STAGE", key="tokens", makes_tokens=True, published=("tokens",)
    ),
    StageInfo(name="reports", pipeline=f"{_PIPELINES}.corpus.reports:STAGE", key="reports", published=("reports",)),
)
_REGISTERED: list[Algorithm] = []


def register(info: Algorithm) -> None:
    """Adds an algorithm for this process; an entry point in `GROUP` adds it for all. A second call changes nothing.

    Raises: ConfigError if the name is taken, or it is not an algorithm with settings of its own.
    """
    if info in _REGISTERED:
        return
    _REGISTERED.append(info)
    table.cache_clear()
    try:
        table()
    except ConfigError:
        unregister(info.name)
        raise


def unregister(name: str) -> None:
    """Takes back `register`."""
    _REGISTERED[:] = [info for info in _REGISTERED if info.name != name]
    table.cache_clear()


@cache
def table() -> tuple[StageInfo, ...]:
    """All stages in the order in which a document passes through them, those of other packages included.

    Raises: ConfigError for an added stage that is not valid.
    """
    added = [*_REGISTERED, *(point.load() for point in entry_points(group=GROUP))]
    stages = list(_own())
    for info in sorted(added, key=lambda info: info.name, reverse=True):
        _check(info, stages)
        stages.insert(_names(stages).index(info.after) + 1, info)
    return tuple(stages)


def _own() -> tuple[StageInfo, ...]:
    return tuple(_load(entry) if isinstance(entry, str) else entry for entry in _OWN)


def _load(place: str) -> Any:
    """The object at `package.module:name`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def names() -> tuple[str, ...]:
    """The names of all stages, in order."""
    return _names(table())


def ledger_stages() -> tuple[str, ...]:
    """Those that write rows of the removal ledger."""
    return tuple(info.name for info in table() if info.writes_ledger or info.is_dedup)


def dedup_stages() -> tuple[str, ...]:
    """Those after `clean`, which mark in clean text what `split` removes."""
    return tuple(info.name for info in table() if info.is_dedup)


def copy_stages() -> tuple[str, ...]:
    """Those that remove copies, which the kept document's `num_copies` counts."""
    return tuple(info.name for info in table() if info.copy_reasons)


def num_redirecting(among: Iterable[str]) -> int:
    """How many of these stages may remove a document and name another one that is kept."""
    return sum(info.redirects for info in map(find, among))


def find(name: str) -> StageInfo:
    """Raises: ConfigError for a stage that neither this package nor an installed one defines."""
    for info in table():
        if info.name == name:
            return info
    raise ConfigError(f"there is no stage {name!r}: install the package that defines it")


def algorithms() -> tuple[Algorithm, ...]:
    """The deduplication algorithms, in order."""
    return tuple(info for info in table() if isinstance(info, Algorithm))


def added() -> tuple[Algorithm, ...]:
    """The algorithms whose settings are not a field of a config of this package."""
    return tuple(info for info in algorithms() if info.config)


def after(name: str) -> tuple[str, ...]:
    """The names of all stages after the one of that name."""
    found = names()
    return found[found.index(name) + 1 :]


def until(last: str, keys: Iterable[str], *, has_tokens: bool = True) -> tuple[str, ...]:
    """The stages of a build up to `last`; of optional ones, those of which the corpus file has the `keys` (`dedup.x`).
    Without tokens, those that make them are left out.

    Raises: ConfigError if no build can end with `last`.
    """
    ends = (DEDUPLICATED, *after(DEDUPLICATED))
    if last not in ends:
        raise ConfigError(f"a build cannot end with {last!r}: expected one of {', '.join(ends)}")
    later, given = after(last), set(keys)
    if find(last).makes_tokens and not has_tokens:
        raise ConfigError(f"a build cannot end with {last!r}: the corpus file says `tokenizer: none`")
    return tuple(
        info.name
        for info in table()
        if info.name not in later
        and (not info.is_optional or info.key in given)
        and (has_tokens or not info.makes_tokens)
    )


def is_complete(found: Iterable[str]) -> bool:
    """Whether these are the stages of a build in their order: all of this package up to `split` or a later one, with or
    without those that make tokens."""
    known = list(found)
    own = [info for info in _own() if not info.is_optional]
    ran = [info.name for info in own if info.name in known]
    whole = [[info.name for info in own], [info.name for info in own if not info.makes_tokens]]
    is_whole = any(ran == order[: len(ran)] for order in whole)
    return DEDUPLICATED in ran and is_whole and known == [name for name in names() if name in known]


def _check(info: Algorithm, stages: Iterable[StageInfo]) -> None:
    stages = list(stages)
    if info.name in _names(stages):
        raise ConfigError(f"two stages have the name {info.name!r}: rename one, or uninstall its package")
    if not isinstance(info, Algorithm) or not info.config or info.key != f"dedup.{info.name}":
        raise ConfigError(f"stage {info.name!r}: an added stage is an Algorithm with a config and the key dedup.NAME")
    places = [other.name for other in stages if other.is_dedup]
    if info.after not in places:
        raise ConfigError(f"stage {info.name!r} follows {info.after!r}: expected one of {', '.join(places)}")


def _names(stages: Iterable[StageInfo]) -> tuple[str, ...]:
    return tuple(info.name for info in stages)
