"""`finpile verify`: the laws of a finished build, checked on what lies on disk.

Nothing here trusts the run that wrote the tree: files are read and hashed again, and kept text and ledger are put
together again to the text that went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import shards
from finpile.clean.clean import BEFORE_FILTERS
from finpile.digest import add, multiset_digest, to_hex
from finpile.document import document_id, text_views
from finpile.errors import InputError
from finpile.ledger import restore
from finpile.split import HELDOUT, assign_split
from finpile.tree import STAGES, Tree

_PUBLISHED = ("documents", "removed", "tokenizer", "tokens", "reports")
_DEDUP_STAGES = ("exact", "near")
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class Law:
    """One law and how it stands."""

    name: str
    holds: bool
    detail: str
    """What was counted; where the law is broken, the first places."""


def verify(out: str, advance: Callable[[float], None] = lambda size_bytes: None) -> list[Law]:
    """Checks every law of the tree `out`; `advance` is told of the bytes read.

    Raises: InputError where `out` holds no finished build.
    """
    tree = Tree(out)
    manifest = load_manifest(tree)
    audit = _Audit(tree, manifest)
    laws = [_files_are_as_recorded(tree, manifest, advance)]
    if not laws[0].holds:
        return laws  # the rest would read files that are known to be wrong
    audit.read(advance)
    return [*laws, *audit.laws()]


def load_manifest(tree: Tree) -> dict[str, Any]:
    """The manifest of a finished build.

    Raises: InputError where there is none.
    """
    if not shards.exists(tree.manifest):
        raise InputError(
            f"{tree.root} holds no finished build (no manifest.json): run `finpile build CONFIG.yaml -o {tree.root}`"
        )
    try:
        manifest: dict[str, Any] = shards.read_json(tree.manifest)
        stages = {stage["stage"] for stage in manifest["stages"]}
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(tree) from error
    if stages != set(STAGES):
        raise _damaged(tree)
    return manifest


def _damaged(tree: Tree) -> InputError:
    return InputError(
        f"{tree.manifest} is damaged, or no manifest of a build: delete it and run the build's command again"
    )


def _files_are_as_recorded(tree: Tree, manifest: Mapping[str, Any], advance: Callable[[float], None]) -> Law:
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
    return _law("every file is there, unaltered, and no other", wrong, f"{len(recorded)} files")


class _Audit:
    """One pass over the documents and one over the ledger, and what they must add up to."""

    def __init__(self, tree: Tree, manifest: Mapping[str, Any]) -> None:
        self._tree = tree
        self._stages = {stage["stage"]: stage for stage in manifest["stages"]}
        self._kept: dict[tuple[str, str], int] = {}
        self._removed: dict[tuple[str, str], int] = {}
        self._digests: dict[tuple[str, str], int] = {}
        self._digests_before: dict[tuple[str, str], int] = {}
        self._spans: dict[str, list[tuple[int, int, bytes]]] = {}
        self._wanted: dict[str, list[tuple[str, int, bytes]]] = {}
        self._ids: set[str] = set()
        self._wrong_ids: list[str] = []
        self._wrong_copies: list[str] = []
        self._num_copies = 0
        after = manifest["config"]["heldout"]["after"]
        self._heldout_after = date.fromisoformat(after) if after else None
        self._num_heldout = 0
        self._wrong_split: list[str] = []

    def read(self, advance: Callable[[float], None]) -> None:
        for table in self._tables("removed"):
            self._read_ledger(table)
            advance(table.nbytes)
        for table in self._tables("documents"):
            self._read_documents(table)
            advance(table.nbytes)

    def laws(self) -> list[Law]:
        return [
            self._nothing_is_lost(),
            self._text_is_restored(*_DEDUP_STAGES, digest="digest", found=self._digests),
            self._text_is_restored("clean", digest="digest_before_filters", found=self._digests_before),
            self._duplicates_are_kept(),
            _law("every id is that of its source and locator, once", self._wrong_ids, f"{len(self._ids):,} documents"),
            self._heldout_is_later(),
        ]

    def _tables(self, folder: str) -> Iterator[pa.Table]:
        root = shards.join(self._tree.root, folder)
        for name in shards.list_files(root):
            yield shards.read_parquet(shards.join(root, name))

    def _read_ledger(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            source = (row["dataset"], row["source"])
            if row["start"] is None:
                self._removed[source] = self._removed.get(source, 0) + 1
                self._count_whole(source, row)
            elif row["end"] > row["start"]:
                self._spans.setdefault(row["id"], []).append((row["start"], row["end"], row["removed_text"]))
            if row["stage"] in _DEDUP_STAGES and row["duplicate_of"] is None:
                self._wrong_copies.append(f"{row['id']} is a duplicate of nothing")
            if row["duplicate_of"] is not None:
                self._num_copies += 1
                wanted = (
                    row["id"],
                    -1 if row["duplicate_offset"] is None else row["duplicate_offset"],
                    row["removed_text"],
                )
                self._wanted.setdefault(row["duplicate_of"], []).append(wanted)

    def _count_whole(self, source: tuple[str, str], row: Mapping[str, Any]) -> None:
        if row["stage"] in _DEDUP_STAGES:
            self._add(source, row["id"], row["removed_text"])
        elif row["stage"] == "clean" and row["reason"] not in BEFORE_FILTERS:
            digest = multiset_digest([row["id"]], [row["removed_text"]])
            self._digests_before[source] = self._digests_before.get(source, 0) + digest

    def _read_documents(self, table: pa.Table) -> None:
        self._check_split(table)
        columns = (table[name].to_pylist() for name in ("id", "dataset", "source", "locator", "num_copies"))
        for view, identifier, dataset, name, locator, num_copies in zip(text_views(table), *columns, strict=True):
            source = (dataset, name)
            self._kept[source] = self._kept.get(source, 0) + 1
            text = bytes(view)
            self._add(source, identifier, text)
            if identifier != document_id(name, locator) or identifier in self._ids:
                self._wrong_ids.append(identifier)
            self._ids.add(identifier)
            self._check_copies(identifier, text, num_copies)

    def _add(self, source: tuple[str, str], identifier: str, text: bytes) -> None:
        """A text as it stood after clean, and, its spans put back, as it stood before the filters."""
        self._digests[source] = self._digests.get(source, 0) + multiset_digest([identifier], [text])
        before = restore(text, self._spans.get(identifier, ()))
        self._digests_before[source] = self._digests_before.get(source, 0) + multiset_digest([identifier], [before])

    def _check_copies(self, identifier: str, text: bytes, num_copies: int) -> None:
        copies = self._wanted.pop(identifier, [])
        if num_copies != 1 + len(copies):
            self._wrong_copies.append(f"{identifier} counts {num_copies} copies, the ledger {1 + len(copies)}")
        for copy, offset, removed in copies:
            if offset >= 0 and text[offset : offset + len(removed)] != removed:
                self._wrong_copies.append(f"{copy} does not stand in {identifier} at byte {offset}")

    def _check_split(self, table: pa.Table) -> None:
        expected = assign_split(table["timestamp"], self._heldout_after)
        wrong = pc.fill_null(pc.not_equal(table["split"], expected), True)
        self._num_heldout += pc.sum(pc.equal(expected, HELDOUT)).as_py() or 0
        self._wrong_split += [f"{name} is on the wrong side" for name in table["id"].filter(wrong).to_pylist()]

    def _nothing_is_lost(self) -> Law:
        wrong, total = [], 0
        for row in self._stages["ingest"]["counts"]["sources"]:
            source = (row["dataset"], row["source"])
            read = row["documents"] + sum(row["removed"].values())
            kept, removed = self._kept.get(source, 0), self._removed.get(source, 0)
            total += read
            if read != kept + removed:
                wrong.append(f"{'/'.join(source)}: {read} read, {kept} kept, {removed} removed")
        return _law("documents read = kept + removed, for every source", wrong, f"{total:,} documents read")

    def _text_is_restored(self, *stages: str, digest: str, found: Mapping[tuple[str, str], int]) -> Law:
        wrong = []
        rows = self._stages["clean"]["counts"]["sources"]
        for row in rows:
            source = (row["dataset"], row["source"])
            if to_hex(add(found.get(source, 0))) != row[digest]:
                wrong.append(f"{'/'.join(source)}: the text before {stages[0]} does not come back")
        names = " and ".join(stages)
        return _law(f"kept text + ledger = the text before {names}, byte for byte", wrong, f"{len(rows)} sources")

    def _duplicates_are_kept(self) -> Law:
        gone = [f"{copies[0][0]} is for {kept}, which is not kept" for kept, copies in sorted(self._wanted.items())]
        return _law(
            "every duplicate's kept copy is kept", [*gone, *self._wrong_copies], f"{self._num_copies:,} duplicates"
        )

    def _heldout_is_later(self) -> Law:
        counted = f"{self._num_heldout:,} documents after {self._heldout_after or 'no day'}"
        return _law("what is held out is later than all that is trained on", self._wrong_split, counted)


def _law(name: str, wrong: list[str], counted: str) -> Law:
    if not wrong:
        return Law(name, True, counted)
    more = f" (and {len(wrong) - _MAX_NAMED} more)" if len(wrong) > _MAX_NAMED else ""
    return Law(name, False, "; ".join(wrong[:_MAX_NAMED]) + more)
