"""The dataset card of a build: `README.md`, which the Hugging Face Hub and `datasets` read, and `croissant.json`.

Both are functions of what a manifest says of its input and settings: two builds of the same input have the same bytes.
No text of a document is in them.

Decision: docs/decisions/0089-out-is-a-dataset-repository.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from finpile import storage
from finpile.output import stage_record
from finpile.output.layout import CROISSANT, README, Layout
from finpile.output.manifest import CARD
from finpile.report.dataset_card.contents import CardFacts
from finpile.report.dataset_card.croissant import croissant
from finpile.report.dataset_card.readme import readme


def card_files(manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the card of a build or snapshot, by path relative to OUT."""
    facts = CardFacts.of(manifest)
    return {README: readme(facts).encode(), CROISSANT: croissant(facts).encode()}


def write_card(layout: Layout, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the card below `layout`; returns the manifest with the records of its files."""
    files = card_files(manifest)
    storage.write_files(layout.root, files)
    return {**manifest, CARD: [asdict(stage_record.file_record(layout.root, path)) for path in files]}
