"""The manifest of a finished build."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from finpile import stage_record, stages, storage
from finpile.build_state import read_state
from finpile.errors import InputError
from finpile.layout import Layout

#: The manifest's key for the fingerprint of all its other keys.
CHECKSUM = "checksum"
#: The manifest's key for the certificate of a corpus as of a day (`finpile.as_of`).
CERTIFICATE = "as_of"
#: The version of the manifest's keys. Version 2 renames `config.report` and `config.decontaminate`.
MANIFEST_VERSION = 2


def checksum_of(manifest: Mapping[str, Any]) -> str:
    """The checksum of a manifest with this content. It detects edits by hand, not intent."""
    return stage_record.fingerprint({key: value for key, value in manifest.items() if key != CHECKSUM})


def write_manifest(layout: Layout, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the manifest with its checksum, and returns it."""
    sealed = {**manifest, CHECKSUM: checksum_of(manifest)}
    storage.write_json(layout.manifest, sealed)
    return sealed


def load_manifest(layout: Layout, *, through: str = "split") -> dict[str, Any]:
    """The manifest of a finished build that ran the stage `through`; `finpile dedup` ends with the split.

    Raises: InputError if there is none, if another version of FinPile wrote it, or if a build is changing the files
    that it lists.
    """
    state = read_state(layout)
    if state is not None and not state.is_whole:
        name = f"the build {state.name!r}" if state.name else "a build"
        raise InputError(
            f"{layout.root} holds no finished build: {name} is running, or was interrupted; the command that began it "
            f"ends it: finpile build CONFIG.yaml -o {layout.root}"
        )
    try:
        manifest: dict[str, Any] = storage.read_json(layout.manifest)
        ran = [stage["stage"] for stage in manifest["stages"]]
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{layout.root} holds no finished build (no manifest.json): "
            f"run `finpile build CONFIG.yaml -o {layout.root}`"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(layout) from error
    if manifest.get("version") != MANIFEST_VERSION:
        raise InputError(
            f"{layout.manifest} has version {manifest.get('version')}, and this FinPile reads version "
            f"{MANIFEST_VERSION}: run `finpile build CONFIG.yaml -o {layout.root}` again, which reuses finished stages"
        )
    if unknown := [name for name in ran if name not in stages.names()]:
        raise InputError(f"{layout.root} was built with the stage {unknown[0]}: install the package that defines it")
    if not stages.is_complete(ran):
        raise _damaged(layout)
    if through not in ran and "snapshot" in manifest:
        raise InputError(
            f"{layout.root} holds a snapshot of `finpile append`, which has no {through}: `finpile build --fresh` with "
            "all inputs makes them"
        )
    if through not in ran:
        raise InputError(f"{layout.root} was built without the stage {through}: run `finpile build` for it")
    return manifest


def find_damage(
    layout: Layout,
    manifest: Mapping[str, Any],
    folders: Iterable[str],
    read: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> list[str]:
    """Files below `folders` that the manifest lists and that are missing or have another size, as messages.

    For the files `read` (paths relative to the root) the checksum is compared too. `sizes` are the bytes of the files
    that exist, if they are known.
    """
    folders, read = set(folders), set(read)
    wrong = []
    files = [file for stage in manifest["stages"] for file in stage["files"] if file["path"].split("/")[0] in folders]
    if sizes is None:
        sizes = storage.sizes_of(layout.root, [file["path"] for file in files])
    for file in files:
        path = file["path"]
        if path not in sizes:
            wrong.append(f"{path} is missing")
        elif sizes[path] != file["size_bytes"]:
            wrong.append(f"{path} has {sizes[path]:,} bytes, expected {file['size_bytes']:,}")
        elif path in read and stage_record.file_record(layout.root, path).checksum != file["checksum"]:
            wrong.append(f"{path} is altered")
    if manifest.get(CHECKSUM) != checksum_of(manifest):
        wrong.append("manifest.json is altered")
    return wrong


def published(manifest: Mapping[str, Any], folder: str) -> list[str]:
    """The files below a folder of OUT that the manifest lists, as sorted paths relative to OUT."""
    paths = (file["path"] for stage in manifest["stages"] for file in stage["files"])
    return sorted(path for path in paths if path.startswith(f"{folder}/"))


def remedy(layout: Layout) -> str:
    """The remedy for a damaged output folder, for a message."""
    return (
        f"`finpile verify {layout.root}` says what else is damaged; the build's command writes missing files again, "
        "with --fresh all of them"
    )


def _damaged(layout: Layout) -> InputError:
    return InputError(
        f"{layout.manifest} is damaged, or no manifest of a build: delete it and run the build's command again"
    )
