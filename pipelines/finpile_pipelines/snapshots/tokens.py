"""The tokens of the documents that a snapshot publishes: further shards, beside those of the build.

    OUT/snapshots/000001/tokens/    laid out like OUT/tokens, with an index of its own

The tokenizer is that of the build. Documents that the snapshot before has with the same text need no tokens; those with
another text have tokens of both texts, and those that come back after a removal have tokens twice. The last sequence of
training tokens is padded, as those of held-out ones are: no document waits for the next snapshot.

Decision: docs/decisions/0063-tokens-of-a-snapshot.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.dedup.exact import document_digests
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.snapshots import BUILD, load_snapshot, numbers
from finpile.output.stage_record import StageRecord
from finpile.tokens.tokenizer_files import loaded
from finpile_pipelines import tokens
from finpile_pipelines.snapshots.base import Base
from finpile_pipelines.stage import Context, Outcome, Stage

_COLUMNS = ("id", "text")


def are_made(base: Base) -> bool:
    """Whether a snapshot gets tokens: if the build has some, and no mixture, whose weights are of all documents."""
    is_there = base.number == BUILD or BUILD in numbers(base.layout)  # otherwise it had no tokens, and was deleted
    names = [stage["stage"] for stage in load_snapshot(base.layout, BUILD)["stages"]] if is_there else []
    return tokens.STAGE.name in names and base.manifest["config"]["mixture"] is None


def check_tokenizer(base: Base) -> None:
    """Raises: IntegrityError if the tokenizer of the build is missing or altered."""
    for file in _tokenizer_files(base):
        file.check()


def _tokenizer_files(base: Base) -> list[PublishedFile]:
    """Those from which the tokenizer of the build is loaded."""
    files = PublishedFiles(base.layout, load_snapshot(base.layout, BUILD))
    return [files[path] for path in loaded([file.path for file in files.below("tokenizer")])]


def stage_of(base: Base) -> Stage:
    """The stage `tokens` as a snapshot after `base` runs it."""

    def run(context: Context) -> Outcome:
        return _run(base, context)

    return replace(tokens.STAGE, run=run)


def _run(base: Base, context: Context) -> Outcome:
    before = {entry["path"] for entry in base.counts("split")["documents"]}
    replacing = {path for paths in context.counts("split")["changes"]["rewritten"].values() for path in paths}
    new = [entry for entry in context.documents if entry["path"] not in before | replacing]
    same = _with_the_same_text(base, context, new)
    if sum(entry["documents"] for entry in new) == len(same):
        return Outcome(counts={"sequences": 0})
    for file in _tokenizer_files(base):
        storage.write_bytes(storage.join(context.layout.root, file.path), file.buffer().to_pybytes())
    outcome = tokens.write_tokens(context, new, without=same, pads=True)
    storage.remove_tree(context.layout.tokenizer)
    return outcome


def _with_the_same_text(base: Base, context: Context, new: Collection[Mapping[str, Any]]) -> frozenset[str]:
    """The ids of documents in `new` files that were published before with an equal text."""
    changes = context.counts("split")["changes"]
    names = pa.array(changes["changed"], pa.string())
    old = [base.published[path] for path in changes["rewritten"] if path.startswith("documents/")]
    if not old or not len(names):
        return frozenset()
    before = _digests(old, names)
    now = _digests((PublishedFile.of_counts(context.layout.root, row) for row in new), names)
    return frozenset(name for name, digest in now.items() if before.get(name) == digest)


def _digests(files: Iterable[PublishedFile], names: pa.Array) -> dict[str, bytes]:
    """The digests of the texts of documents in published files, by id."""
    found: dict[str, bytes] = {}
    for file in files:
        table = file.matching(("id",), lambda rows: pc.is_in(rows["id"], names), _COLUMNS).combine_chunks()
        if table.num_rows:
            found |= dict(zip(table["id"].to_pylist(), document_digests(table).to_pylist(), strict=True))
    return found


def facts_of(record: StageRecord | None, number: int) -> tuple[dict[str, str], dict[str, Any]]:
    """The moves of the files of a snapshot's tokens, and what its manifest says of them."""
    if record is None:
        return {}, {"tokens": None}
    moves = {file.path: f"snapshots/{number:06d}/{file.path}" for file in record.files}
    files = [{**asdict(file), "path": moves[file.path]} for file in record.files]
    named = ("stream_tokens", "sequences")
    counts: Mapping[str, Any] = record.counts
    return moves, {"tokens": {"files": files, **{name: counts.get(name, 0) for name in named}}}
