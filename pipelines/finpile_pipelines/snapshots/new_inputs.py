"""The files of a corpus file that a snapshot has not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from finpile.config import CorpusConfig, to_dict
from finpile.errors import ConfigError, InputError
from finpile.output import stage_record
from finpile.sources.readers.finding import InputFile, outside
from finpile.version import __version__
from finpile_pipelines.corpus.ingest import find_inputs
from finpile_pipelines.snapshots.base import Base

#: Settings of a source that may differ between snapshots: no stage reads the kind.
_FREE = ("paths", "kind")
_NUM_SHOWN = 3


def check_version(manifest: Mapping[str, Any]) -> None:
    """Raises: ConfigError if another version of FinPile made the snapshot."""
    if manifest["finpile"] != __version__:
        raise ConfigError(
            f"the corpus was built by FinPile {manifest['finpile']}, and this is {__version__}, which may decide "
            "otherwise: build it again with `finpile build --fresh`"
        )


def check_settings(config: CorpusConfig, manifest: Mapping[str, Any]) -> None:
    """Raises: ConfigError if settings other than the paths of sources are not those of the manifest."""
    check_version(manifest)
    here, there = (_compared(settings) for settings in (to_dict(config), manifest["config"]))
    changed = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    if changed:
        raise ConfigError(
            f"`{changed[0]}` is not as in the build to which documents are to be added: restore it, or build the "
            "corpus again with `finpile build`"
        )


def find_new(config: CorpusConfig, base: Base) -> list[list[InputFile]]:
    """The files of each source entry that no snapshot has read.

    Raises: InputError for files that have changed since they were read, or are missing.
    """
    found = outside(find_inputs(config), config, base.layout.root)
    changed, missing, new = [], [], []
    for files, known in zip(found, base.files, strict=True):
        before = {locator: (size, version) for locator, size, version in known}
        now = {file.locator: (file.size_bytes, file.version) for file in files}
        missing += [locator for locator in before if locator not in now]
        changed += [locator for locator, identity in before.items() if now.get(locator, identity) != identity]
        new.append([file for file in files if file.locator not in before])
    for what, remedy, names in (
        (f"{len(changed):,} changed", "restore them", changed),
        (f"`paths` does not find {len(missing):,}", "restore them, and let `paths` name all files", missing),
    ):
        if names:
            shown = ", ".join(sorted(names)[:_NUM_SHOWN]) + (", ..." if len(names) > _NUM_SHOWN else "")
            raise InputError(
                f"of the files that the corpus has read, {what}: {shown}. `append` adds new files alone: {remedy}, or "
                "build the corpus again with `finpile build --fresh`"
            )
    return new


def same_stage(manifest: Mapping[str, Any], stage: str, before: str, settings: Sequence[Any]) -> bool:
    """Whether a stage of the build had these settings."""
    recorded = {one["stage"]: one["fingerprint"] for one in manifest["stages"]}
    mark = stage_record.fingerprint(__version__, stage, settings, [recorded[before]])
    return bool(recorded[stage] == mark)


def _compared(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings without those that may differ; a configuration of a manifest or of `to_dict`."""
    sources = [{key: value for key, value in source.items() if key not in _FREE} for source in config["sources"]]
    return {**{key: value for key, value in config.items() if key != "root"}, "sources": sources}
