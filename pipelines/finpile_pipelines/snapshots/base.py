"""What a new snapshot is made from: the manifest of the current one, and the files that it left in `.work`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from finpile import storage
from finpile.errors import ConfigError, IntegrityError
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage, find_damage, remedy
from finpile.output.published_files import PublishedFiles
from finpile.output.snapshots import number_of
from finpile.output.stage_record import StageRecord
from finpile.plugins import stages
from finpile_pipelines.corpus.ingest import FILES
from finpile_pipelines.executors.incremental import Before
from finpile_pipelines.shard_refs import FinishedFolder, ShardRef, shard_refs
from finpile_pipelines.stage import removal_folders

#: A file of a source entry as it was read: locator, bytes, version.
FileIdentity = tuple[str, int, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Base:
    """The current snapshot of an output folder."""

    layout: Layout
    manifest: Mapping[str, Any]
    refs: tuple[ShardRef, ...]
    """All clean shards."""
    files: tuple[tuple[FileIdentity, ...], ...]
    """All files that were read, by source entry."""
    records: Mapping[str, StageRecord]
    """Of the dedup stages and of `split`."""

    @classmethod
    def of(cls, layout: Layout, manifest: Mapping[str, Any]) -> Base:
        """Raises: ConfigError if `.work` lacks what the snapshot left there."""
        works = _works(layout, manifest)
        try:
            refs = clean_shards(layout, manifest)
            files = _files(works)
        except FileNotFoundError as error:
            raise _incomplete(layout) from error
        records = {}
        for stage in manifest["stages"]:
            name = stage["stage"]
            if stages.find(name).is_dedup or name == stages.DEDUPLICATED:
                record = stage_record.load_stage(works[-1].work(name))
                if record is None or record.fingerprint != stage["fingerprint"]:
                    raise _incomplete(layout)
                records[name] = record
        return cls(layout=layout, manifest=manifest, refs=refs, files=files, records=records)

    def check_files(self) -> None:
        """Looks for all files that a next snapshot may read: the published ones, and clean shards.

        Raises: IntegrityError for a published file that is missing or has another size; ConfigError for a clean shard.
        """
        if damage := find_damage(self.layout, self.manifest, ("documents", "facts", "removed")):
            raise IntegrityError(f"{self.layout.root}: {damage[0]}: {remedy(self.layout)}")
        there = {folder: set((folder / "documents").names()) for folder in {ref.folder for ref in self.refs}}
        if any(f"{ref.name}.arrow" not in there[ref.folder] for ref in self.refs):
            raise _incomplete(self.layout)

    @property
    def published(self) -> PublishedFiles:
        """Its files."""
        return PublishedFiles(self.layout, self.manifest)

    @property
    def number(self) -> int:
        return number_of(self.manifest)

    @property
    def work(self) -> Layout:
        """Where the snapshot left its decisions."""
        return _works(self.layout, self.manifest)[-1]

    def counts(self, stage: str) -> Mapping[str, Any]:
        return counts_by_stage(self.manifest)[stage]

    @property
    def removal_folders(self) -> dict[str, tuple[FinishedFolder, ...]]:
        """The folders in which the dedup stages left removals and spans, by stage."""
        return removal_folders(self.work, self.records)

    def before(self) -> Before:
        """What a deduplication stage of the next snapshot has to know."""
        return Before(
            number=self.number,
            refs=self.refs,
            records=self.records,
            removal_folders=self.removal_folders,
            text_bytes=sum(row["text_bytes"] for row in self.counts("clean")["sources"]),
            layout=self.layout,
        )


def clean_shards(layout: Layout, manifest: Mapping[str, Any]) -> tuple[ShardRef, ...]:
    """The clean shards of a snapshot.

    Raises: FileNotFoundError if `.work` does not list them.
    """
    refs: list[ShardRef] = []
    for work in _works(layout, manifest):
        clean, read = (stage_record.files_of(work.work(stage)) for stage in ("clean", "ingest"))
        found = shard_refs(storage.read_json(read.file("tasks.json")), clean, len(refs))
        refs += [replace(ref, places=layout.batch_places(ref.index)) for ref in found]
    return tuple(refs)


def largest_shard(layout: Layout, manifest: Mapping[str, Any]) -> int:
    """Bytes of the largest file among the clean shards of a snapshot; 0 if `.work` has none."""
    records = (stage_record.load_stage(work.work("clean")) for work in _works(layout, manifest))
    return max((seal.size_bytes for record in records if record is not None for seal in record.seals), default=0)


def _works(layout: Layout, manifest: Mapping[str, Any]) -> list[Layout]:
    """Where the build and each snapshot up to this one were made."""
    works = (layout.snapshot_work(snapshot) for snapshot in range(number_of(manifest) + 1))
    return [replace(work, is_kept=True) for work in works]


def _files(works: list[Layout]) -> tuple[tuple[FileIdentity, ...], ...]:
    entries: list[list[FileIdentity]] = []
    for work in works:
        read = storage.read_json(stage_record.files_of(work.work("ingest")).file(FILES))
        found = [[(file[0], file[1], file[2]) for file in entry] for entry in read]
        entries = [[*before, *more] for before, more in zip(entries or [[]] * len(found), found, strict=True)]
    return tuple(map(tuple, entries))


def _incomplete(layout: Layout) -> ConfigError:
    return ConfigError(
        f"{layout.root}/.work lacks what its last build or snapshot left there, from which new documents are decided: "
        "build the corpus again with `finpile build --fresh`"
    )
