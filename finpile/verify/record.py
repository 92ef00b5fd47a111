"""Checks of the manifest: it is as the build wrote it, and consistent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile.counts.published import FACTS_FILE
from finpile.output.layout import Layout
from finpile.output.manifest import is_unaltered
from finpile.output.stage_record import fingerprint
from finpile.verify.check import Check
from finpile.verify.output import Output

#: Keys of the record of a file, and of its counts, that have the same value.
_ALIKE = (("size_bytes", "size_bytes"), ("checksum", "checksum"), ("footer", "footer"), ("num_rows", "rows"))


def checks(output: Output) -> list[Check]:
    """Reads the manifest alone."""
    manifest, wrong = output.manifest, []
    if not is_unaltered(manifest):
        wrong.append("manifest.json is altered: its checksum is another")
    if manifest["name"] != manifest["config"]["name"]:
        wrong.append(f"its name is {manifest['name']!r}, that of its corpus file {manifest['config']['name']!r}")
    if manifest["config_hash"] != fingerprint(manifest["config"]):
        wrong.append("config_hash is not that of the corpus file")
    for stage in manifest["stages"]:
        wrong += _files(stage, output.layout)
    return [Check.of("the manifest is as it was written", wrong, f"{len(manifest['stages'])} stages")]


def _files(stage: Mapping[str, Any], layout: Layout) -> list[str]:
    """Contradictions in the files of a stage."""
    folders = [folder[len(layout.root) :].strip("/") for folder in layout.published(stage["stage"])]
    paths = [file["path"] for file in stage["files"]]
    wrong = [f"{path} is not a file of {stage['stage']}" for path in paths if path.split("/")[0] not in folders]
    if stage["stage"] == "split":
        entries = [entry for name in ("documents", "ledger") for entry in stage["counts"][name]]
        facts = [entry[FACTS_FILE] for entry in entries if FACTS_FILE in entry]
        counted = {entry["path"]: entry for entry in (*entries, *facts)}
        for file in stage["files"]:
            entry = counted.pop(file["path"], {})
            for name, other in _ALIKE:
                if file[name] != entry.get(other):
                    wrong.append(f"{file['path']}: two values of {name}")
        wrong += [f"{path} is counted and not listed" for path in counted]
    return wrong
