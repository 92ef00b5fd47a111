"""Checks of the dataset card: written again from the manifest, it equals the files on disk."""

from __future__ import annotations

from finpile import storage
from finpile.output.layout import CARD_FILES
from finpile.output.manifest import CARD
from finpile.report.dataset_card import card_files
from finpile.verify.check import Check
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads the files of the card."""
    wrong = []
    if [file["path"] for file in output.manifest.get(CARD, ())] != list(CARD_FILES):
        wrong.append("manifest.json does not list the files of the card")
    for path, expected in card_files(output.manifest).items():
        try:
            found = storage.read_bytes(storage.join(output.layout.root, path))
        except FileNotFoundError:
            wrong.append(f"{path} is missing")
            continue
        output.advance(len(found))
        if found != expected:
            wrong.append(f"{path} is not what the manifest gives")
    return [Check.of("dataset card = the manifest", wrong, ", ".join(CARD_FILES))]
