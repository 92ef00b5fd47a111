"""Laws of files: what the manifest lists is on disk, with its checksum, and nothing else is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile import shards
from finpile.tree import Tree
from finpile.verify.law import Advance, Law, law

_PUBLISHED = ("inputs", "documents", "removed", "tokenizer", "tokens", "reports")


def laws(tree: Tree, manifest: Mapping[str, Any], advance: Advance) -> list[Law]:
    """Reads every recorded file; `advance` receives its bytes."""
    recorded = {file["path"]: file for stage in manifest["stages"] for file in stage["files"]}
    wrong = []
    for path, expected in sorted(recorded.items()):
        if not shards.exists(shards.join(tree.root, path)):
            wrong.append(f"{path} is missing")
            continue
        found = shards.file_record(tree.root, path)
        advance(found.size_bytes)
        if found.checksum != expected["checksum"]:
            wrong.append(f"{path} is altered")
    for folder in _PUBLISHED:
        names = (f"{folder}/{name}" for name in shards.list_files(shards.join(tree.root, folder)))
        wrong += [f"{name} is not of this build" for name in names if name not in recorded]
    return [law("every file is there, unaltered, and no other", wrong, f"{len(recorded)} files")]
