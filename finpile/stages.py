"""The table of stages: facts that layout, ledger, reports, `verify`, `show` and the build read. Imports no Beam.

A stage has one name: that of its module, of its folder `.work/NAME`, of its key in the corpus file, and of the value
of `stage` in the ledger. Other packages add a dedup stage by an entry point in the group `finpile.stages` whose object
is a `StageInfo`. Such a stage is part of a build only if the corpus file has its key: installing a package changes no
build.

Decision: docs/decisions/0025-one-table-of-stages.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from finpile.errors import ConfigError

GROUP = "finpile.stages"
#: Publishes documents and ledger: the earliest stage with which a build may end.
DEDUPLICATED = "split"


@dataclass(frozen=True, kw_only=True, slots=True)
class StageInfo:
    """Facts about one stage."""

    name: str
    """Name of its module, folder, config key and ledger value."""
    pipeline: str
    """Its `finpile_pipelines.stage.Stage`, as in an entry point: `package.module:STAGE`."""
    key: str = ""
    """Dotted key in the corpus file; that of an added stage is `dedup.NAME`."""
    config: str = ""
    """Added stages: the frozen keyword-only dataclass of the key's settings, as `package.module:NameConfig`."""
    is_optional: bool = False
    """Whether it is part of a build only if the corpus file has its key, which `DedupConfig.optional_keys` lists. True
    for stages of other packages."""
    after: str = ""
    """Stages of other packages: the stage that it follows. Those that follow the same stage are ordered by name."""
    writes_ledger: bool = False
    """Whether it removes documents or spans, with rows in `removed/stage=NAME`."""
    is_dedup: bool = False
    """Whether it marks removals in clean shards, which `split` applies. Implies `writes_ledger`. An added stage marks
    whole documents; spans are those of `templates` and `substring` alone."""
    copy_reasons: tuple[str, ...] = ()
    """Reasons whose rows each name a kept document, in `duplicate_of`. If there are any, each whole document that the
    stage removes with a kept document counts as a copy of that document (`num_copies`)."""
    names_kept: bool = False
    """Whether rows with other reasons may name a kept document."""
    published: tuple[str, ...] = ()
    """Folders of OUT that it writes, and removes before it runs again."""

    def __post_init__(self) -> None:
        if self.config:
            object.__setattr__(self, "is_optional", True)

    @property
    def module(self) -> str:
        """The module of its pipeline."""
        return self.pipeline.partition(":")[0]

    @property
    def is_added(self) -> bool:
        """Whether the settings of its key are not fields of a config of this package: true for stages of other
        packages."""
        return bool(self.config)

    def load_config(self) -> Any:
        """The dataclass that `config` names."""
        module, _, name = self.config.partition(":")
        return getattr(importlib.import_module(module), name)


_PIPELINES = "finpile_pipelines"
#: Not in corpus files: it makes the stage `takedown` part of a snapshot that takes documents down, or follows one.
TAKEDOWN_KEY = "takedowns"
#: The stages of this package, in the order in which they run.
_OWN = (
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
    ),
    StageInfo(
        name="exact",
        pipeline=f"{_PIPELINES}.dedup.exact:STAGE",
        key="dedup.exact",
        is_dedup=True,
        copy_reasons=("exact_duplicate",),
    ),
    StageInfo(
        name="templates",
        pipeline=f"{_PIPELINES}.dedup.templates:STAGE",
        key="dedup.templates",
        is_optional=True,
        is_dedup=True,
        copy_reasons=("duplicate_after_cuts",),
        names_kept=True,
    ),
    StageInfo(
        name="near",
        pipeline=f"{_PIPELINES}.dedup.near:STAGE",
        key="dedup.near",
        is_dedup=True,
        copy_reasons=("near_duplicate",),
    ),
    StageInfo(
        name="substring",
        pipeline=f"{_PIPELINES}.dedup.substring:STAGE",
        key="dedup.substring",
        is_dedup=True,
        copy_reasons=("duplicate_after_cuts",),
        names_kept=True,
    ),
    StageInfo(
        name="overlap",
        pipeline=f"{_PIPELINES}.dedup.overlap:STAGE",
        key="heldout.overlap",
        is_dedup=True,
        names_kept=True,
    ),
    StageInfo(
        name="contamination", pipeline=f"{_PIPELINES}.dedup.contamination:STAGE", key="contamination", is_dedup=True
    ),
    StageInfo(
        name="split", pipeline=f"{_PIPELINES}.corpus.split:STAGE", key="heldout", published=("documents", "removed")
    ),
    StageInfo(
        name="tokenizer", pipeline=f"{_PIPELINES}.unigram.tokenizer:STAGE", key="tokenizer", published=("tokenizer",)
    ),
    StageInfo(name="tokens", pipeline=f"{_PIPELINES}.tokens:STAGE", key="tokens", published=("tokens",)),
    StageInfo(name="reports", pipeline=f"{_PIPELINES}.corpus.reports:STAGE", key="reports", published=("reports",)),
)
_REGISTERED: list[StageInfo] = []


def register(info: StageInfo) -> None:
    """Adds a stage for this process; an entry point in `GROUP` adds it for all. A second call changes nothing.

    Raises: ConfigError if the name is taken, or the stage is not a dedup stage with settings of its own.
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
    stages = list(_OWN)
    for info in sorted(added, key=lambda info: info.name, reverse=True):
        _check(info, stages)
        stages.insert(_names(stages).index(info.after) + 1, info)
    return tuple(stages)


def names() -> tuple[str, ...]:
    """The names of all stages, in order."""
    return _names(table())


def required() -> tuple[str, ...]:
    """The names of the stages of every build."""
    return tuple(info.name for info in table() if not info.is_optional)


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
    return sum(bool(info.copy_reasons or info.names_kept) for info in map(find, among))


def find(name: str) -> StageInfo:
    """Raises: ConfigError for a stage that neither this package nor an installed one defines."""
    for info in table():
        if info.name == name:
            return info
    raise ConfigError(f"there is no stage {name!r}: install the package that defines it")


def added() -> tuple[StageInfo, ...]:
    """The stages whose settings are not fields of a config of this package."""
    return tuple(info for info in table() if info.is_added)


def after(name: str) -> tuple[str, ...]:
    """The names of all stages after the one of that name."""
    found = names()
    return found[found.index(name) + 1 :]


def until(last: str, keys: Iterable[str]) -> tuple[str, ...]:
    """The stages of a build up to `last`; of optional ones, those of which the corpus file has the `keys` (`dedup.x`).

    Raises: ConfigError if no build can end with `last`.
    """
    ends = (DEDUPLICATED, *after(DEDUPLICATED))
    if last not in ends:
        raise ConfigError(f"a build cannot end with {last!r}: expected one of {', '.join(ends)}")
    later, given = after(last), set(keys)
    return tuple(
        info.name for info in table() if info.name not in later and (not info.is_optional or info.key in given)
    )


def is_complete(found: Iterable[str]) -> bool:
    """Whether these are the stages of a build in their order: all of this package up to `split` or a later one."""
    known = list(found)
    own = [info.name for info in _OWN if not info.is_optional]
    ran = [name for name in known if name in own]
    return DEDUPLICATED in ran and ran == own[: len(ran)] and known == [name for name in names() if name in known]


def _check(info: StageInfo, stages: Iterable[StageInfo]) -> None:
    stages = list(stages)
    if info.name in _names(stages):
        raise ConfigError(f"two stages have the name {info.name!r}: rename one, or uninstall its package")
    if not info.is_dedup or not info.is_added or info.key != f"dedup.{info.name}":
        raise ConfigError(f"stage {info.name!r}: an added stage has is_dedup=True, a config, and the key dedup.NAME")
    places = [other.name for other in stages if other.is_dedup]
    if info.after not in places:
        raise ConfigError(f"stage {info.name!r} follows {info.after!r}: expected one of {', '.join(places)}")


def _names(stages: Iterable[StageInfo]) -> tuple[str, ...]:
    return tuple(info.name for info in stages)
