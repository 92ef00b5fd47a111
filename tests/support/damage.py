"""Damages copies of a build so that no checksum shows it: files are edited, and the manifest is mended."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.documents.document import PUBLISHED_SCHEMA
from finpile.documents.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.manifest import CHECKSUM, checksum_of
from finpile.report.dataset_card import write_card
from finpile.verify import distinct, inputs, texts, verify
from tests.support.trees import read_published, rows_below

Row = dict[str, Any]
Change = Callable[[list[Row]], list[Row] | None]

FILES = "every file is there, unaltered, and no other"
ACCOUNTS = "the accounts of inputs are those of the documents and the ledger"
COUNTED = "documents read = kept + removed, for every source"
BEFORE_EXACT = "kept text + ledger = the text before exact, near, substring, overlap and contamination, byte for byte"
BEFORE_CLEAN = "kept text + ledger = the text before clean, byte for byte"
COPIES = "every duplicate's kept copy is kept"
DISTINCT = "kept texts are distinct within the scope"
IDS = "every id is that of its source and locator, once"
DATES_OF_CUTS = "what was cut from a document has its date"
LATER = "what is held out is later than all that is trained on"


_OF_TEXTS = (inputs.checks, texts.checks, distinct.checks)


def broken(out: Path) -> set[str]:
    """Of files, inputs, texts, ids and split. An edit that breaks one of these breaks some of counts, too."""
    return {check.name for check in verify(str(out), groups=_OF_TEXTS) if not check.ok}


def detail(out: Path, name: str) -> str:
    (check,) = (check for check in verify(str(out), groups=_OF_TEXTS) if check.name == name)
    assert not check.ok
    return check.detail


def edit(path: Path, schema: pa.Schema, change: Change) -> None:
    """Rewrites a Parquet file, its rows changed in place or by the list that comes back."""
    before = read_published(str(path)).to_pylist()
    after = json.loads(json.dumps(before, default=_escape), object_hook=_unescape)
    changed = change(after)
    after = after if changed is None else changed
    assert after != before, "the damage must change something"
    storage.write_parquet(str(path), pa.Table.from_pylist(after, schema=schema))


def _escape(value: Any) -> Row:
    return {"moment": value.isoformat()} if isinstance(value, datetime) else {"hex": value.hex()}


def _unescape(value: Row) -> Any:
    if value.keys() == {"hex"}:
        return bytes.fromhex(value["hex"])
    return datetime.fromisoformat(value["moment"]) if value.keys() == {"moment"} else value


def edit_ledger(out: Path, stage: str, change: Change) -> None:
    (path,) = (out / "removed" / f"stage={stage}").iterdir()
    edit(path, PUBLISHED_LEDGER_SCHEMA, change)
    mend_manifest(out)


def edit_documents(out: Path, source: str, change: Change, split: str = "train") -> None:
    (path,) = (out / "documents").glob(f"*/source={source}/{split}-*.parquet")
    edit(path, PUBLISHED_SCHEMA, change)
    mend_manifest(out)


def read_documents(out: Path) -> list[Row]:
    return rows_below(out / "documents")


def edit_manifest(out: Path, change: Callable[[Row], None]) -> None:
    path = out / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest = write_card(Layout(str(out)), manifest)
    path.write_text(json.dumps({**manifest, CHECKSUM: checksum_of(manifest)}))


def mend_manifest(out: Path) -> None:
    """Makes the manifest agree with whatever lies there now, file by file."""

    def change(manifest: Row) -> None:
        for stage in manifest["stages"]:
            for file in stage["files"]:
                found = stage_record.file_record(str(out), file["path"])
                file["size_bytes"], file["checksum"] = found.size_bytes, found.checksum

    edit_manifest(out, change)


def find(rows: list[Row], **wanted: Any) -> Row:
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def flip(text: bytes) -> bytes:
    """The same length, another first byte."""
    return bytes([text[0] ^ 1]) + text[1:]
