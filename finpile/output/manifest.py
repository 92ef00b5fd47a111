"""The manifest of a finished build or of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from finpile import storage
from finpile.errors import InputError, IntegrityError, command_line
from finpile.output import stage_record
from finpile.output.build_state import DEDUP_NAME, read_state
from finpile.output.layout import Layout
from finpile.output.stage_record import FileRecord
from finpile.plugins import stages

#: The manifest's key for the fingerprint of all its other keys.
CHECKSUM = "checksum"
#: The manifest's key for the certificate of a corpus as of a day (`finpile.as_of`).
CERTIFICATE = "as_of"
#: The manifest's key for the facts of a snapshot; a build has none.
SNAPSHOT = "snapshot"
#: The manifest's key for the records of the dataset card (`finpile.report.dataset_card`).
CARD = "card"
#: The version of the manifest's keys.
MANIFEST_VERSION = 1
_ALTERED = "is altered: its checksum is another"


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """The checksum of a manifest with this content. It detects edits by hand, not intent."""
    return stage_record.fingerprint({key: value for key, value in manifest.items() if key != CHECKSUM})


def is_unaltered(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest has the checksum of its content."""
    return bool(manifest.get(CHECKSUM) == checksum_of(manifest))


def write_manifest(url: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the manifest of a build or of a snapshot with its checksum, and returns it."""
    sealed = {**manifest, CHECKSUM: checksum_of(manifest)}
    storage.write_json(url, sealed)
    return sealed


def find_manifest(layout: Layout) -> dict[str, Any] | None:
    """The manifest in OUT, of any version; None if there is none, or it is damaged or altered."""
    try:
        found = storage.read_json(layout.manifest)
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and is_unaltered(found) else None


def load_manifest(layout: Layout, *, through: str = "split") -> dict[str, Any]:
    """The manifest of a finished build that ran the stage `through`; `finpile dedup` ends with the split.

    Raises: InputError if there is none, if another version of FinPile wrote it, or if a build is changing the files
    that it lists; IntegrityError if it is damaged or altered.
    """
    manifest = read_manifest(layout, through=through)
    if not is_unaltered(manifest):
        raise damaged_manifest(layout.manifest, _ALTERED)
    return manifest


def read_manifest(layout: Layout, *, through: str = "split") -> dict[str, Any]:
    """The same, altered or not: for commands that report what is altered.

    Raises: as `load_manifest`, but for an altered one.
    """
    state = read_state(layout)
    if state is not None and not state.is_whole:
        name = f"the build {state.name!r}" if state.name else "a build"
        raise InputError(
            f"{layout.root} holds no finished build: {name} is running, or was interrupted: "
            f"`{state.command(layout.root)}` ends it"
        )
    build = command_line("build", "CONFIG.yaml", "-o", layout.root)
    try:
        manifest: dict[str, Any] = storage.read_json(layout.manifest)
        ran = [stage["stage"] for stage in manifest["stages"]]
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{layout.root} holds no finished build (no manifest.json): run `{build}`") from None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged_manifest(layout.manifest) from error
    if manifest.get("version") != MANIFEST_VERSION:
        raise InputError(
            f"{layout.manifest} has version {manifest.get('version')}, and this FinPile reads version "
            f"{MANIFEST_VERSION}: run `{build}` again, which reuses finished stages"
        )
    if through in ran and stages.is_complete(ran):
        return manifest
    if not is_unaltered(manifest):
        raise damaged_manifest(layout.manifest, _ALTERED)
    raise _why_not(layout, manifest, ran, through)


def _why_not(layout: Layout, manifest: Mapping[str, Any], ran: list[str], through: str) -> Exception:
    """Why a manifest cannot be used, whose build ran these stages."""
    if unknown := [name for name in ran if name not in stages.names()]:
        return InputError(f"{layout.root} was built with the stage {unknown[0]}: install the package that defines it")
    if not stages.is_complete(ran):
        return damaged_manifest(layout.manifest)
    if manifest["name"] == DEDUP_NAME:
        return InputError(f"{layout.root} is of `finpile dedup`, which makes no {through}")
    if SNAPSHOT in manifest:
        return InputError(
            f"{layout.root} holds a snapshot of `finpile append`, which has no {through}: `finpile build --fresh` with "
            "all inputs makes them"
        )
    if stages.find(through).makes_tokens and manifest["config"]["tokenizer"] is None:
        return InputError(
            f"{layout.root} has no {through}: its corpus file says `tokenizer: none`: give it a tokenizer, and run "
            "`finpile build` again"
        )
    return InputError(f"{layout.root} was built without the stage {through}: run `finpile build` for it")


def find_damage(layout: Layout, manifest: Mapping[str, Any], folders: Iterable[str]) -> list[str]:
    """Files below `folders` that the manifest lists and that are missing or have another size, as messages."""
    folders = set(folders)
    files = [file for path, file in recorded_files(manifest).items() if path.split("/")[0] in folders]
    return stage_record.find_damage(layout.root, files)


def file_of_list(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The record of the list of takedowns of a snapshot, or of a corpus as of a day; None if it has none."""
    facts = manifest.get(SNAPSHOT) or manifest.get(CERTIFICATE) or {}
    found: Mapping[str, Any] | None = facts.get("takedowns")
    return found


def recorded_files(manifest: Mapping[str, Any]) -> dict[str, FileRecord]:
    """The files that a manifest lists, by path; those of the snapshot that it describes are among them.

    Raises: IntegrityError for an altered manifest whose lists cannot be read.
    """
    try:
        facts = manifest.get(SNAPSHOT, {})
        files = [file for stage in manifest["stages"] for file in stage["files"]]
        files += [file for file in (facts.get("copies"), file_of_list(manifest)) if file]
        files += (facts.get("tokens") or {"files": []})["files"]
        files += manifest.get(CARD, [])
        return {file["path"]: FileRecord(**file) for file in files}
    except (LookupError, TypeError, AttributeError) as error:
        raise damaged_manifest("manifest.json", f"is altered ({type(error).__name__}: {error})") from error


def counts_by_stage(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each stage counted, by its name."""
    return {stage["stage"]: stage["counts"] for stage in manifest["stages"]}


def published(manifest: Mapping[str, Any], folder: str) -> list[str]:
    """The files below a folder of OUT that the manifest lists, as sorted paths relative to OUT."""
    paths = (file["path"] for stage in manifest["stages"] for file in stage["files"])
    return sorted(path for path in paths if path.startswith(f"{folder}/"))


def remedy(layout: Layout) -> str:
    """The remedy for a damaged output folder, for a message."""
    return (
        f"`{command_line('verify', layout.root)}` says what else is damaged; of a build without snapshots, its command "
        "writes missing files again; else restore them, or build the corpus again with --fresh"
    )


def damaged_manifest(url: str, what: str = "is damaged, or no manifest of a build") -> IntegrityError:
    """The error for the manifest of a build or snapshot that is not as it was written."""
    return IntegrityError(
        f"{url} {what}: restore it; snapshots/ has a copy of manifest.json under the number of the current snapshot. "
        "Of a build without snapshots, delete it and run the build's command again"
    )
