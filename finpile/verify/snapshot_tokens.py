"""Checks of the token shards of snapshots: each has the texts that the snapshot published first, encoded.

The shards of the build are compared with its documents, and those of a snapshot with the documents that it added
without those that had the same text before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.document import text_digest, text_views
from finpile.documents.split import HELDOUT, TRAIN
from finpile.errors import count_of
from finpile.output.layout import heldout_tokens, row_of
from finpile.output.manifest import SNAPSHOT
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.snapshots import BUILD, numbers, read_snapshot
from finpile.storage.sizes import READ_BYTES
from finpile.tokens.store import TokenMeta
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.verify import tokens
from finpile.verify.check import Check
from finpile.verify.output import Output

_DOCUMENTS = "documents/"


def checks(output: Output) -> list[Check]:
    """The checks of the build's tokens, and one for each snapshot that has some; none without snapshots."""
    found: list[Check] = []
    layout = output.layout
    snapshots = {number: replace(output, manifest=read_snapshot(layout, number)) for number in numbers(layout)}
    files = PublishedFiles(layout, *(one.manifest for one in snapshots.values()))
    for number, one in snapshots.items():
        if number == BUILD:
            found += _of_build(one, files)
        elif one.manifest[SNAPSHOT]["tokens"]:
            found.append(_of_snapshot(one, files))
    return found


def _of_build(build: Output, files: PublishedFiles) -> list[Check]:
    if "tokens" not in build.counts:
        return []
    if why := _why_not(files, build.paths("documents")):
        return [Check("token shards of the build = its documents, encoded", True, why)]
    return tokens.checks(build)


def _of_snapshot(snapshot: Output, files: PublishedFiles) -> Check:
    facts = snapshot.manifest[SNAPSHOT]
    name = f"token shards of snapshot {facts['number']} = the texts that it published first, encoded"
    added, replaced = ([path for path in facts[kind] if path.startswith(_DOCUMENTS)] for kind in ("added", "rewritten"))
    if why := _why_not(files, [*added, *replaced]):
        return Check(name, True, why)
    tokenizer = open_build_tokenizer(snapshot.layout)
    meta = tokens.token_meta(snapshot, tokenizer)
    expected = tokens.Expected(tokenizer, meta.sequence_length, None, [files[path] for path in added])
    known = _texts([files[path] for path in replaced], [files[path] for path in added])

    def choose(documents: pa.Table) -> pa.Array:
        texts = zip(documents["id"].to_pylist(), map(text_digest, text_views(documents)), strict=True)
        return pa.array([known.get(identifier) != digest for identifier, digest in texts], pa.bool_())

    for number, path in enumerate(added):
        parts = files[path].parts(tokens.COLUMNS, size_bytes=READ_BYTES)
        expected.add(number, tokens.watched(parts, snapshot.advance), choose)
    return Check.of(name, _differences(snapshot, facts, meta, expected), count_of(expected.num_tokens, "token"))


def _differences(snapshot: Output, facts: Mapping[str, Any], meta: TokenMeta, expected: tokens.Expected) -> list[str]:
    """What is wrong with the shards of a snapshot. The last sequence of each stream is padded."""
    shards, wrong = snapshot.layout.snapshot_tokens(facts["number"]), []
    counts = {
        "stream_tokens": expected.train.num_tokens,
        "sequences": -(-expected.train.num_tokens // meta.sequence_length),
    }
    for name, value in counts.items():
        if facts["tokens"][name] != value:
            wrong.append(f"{name} is {facts['tokens'][name]}, the documents give {value}")
    files = storage.list_files(shards.tokens)
    wrong += [f"{shards.tokens}/{path} is not a token shard" for path in files if not tokens.is_known(path)]
    heldout = {row_of(path) for path in files if path.startswith(f"split={HELDOUT}/")}
    wrong += [f"{source} has no new held-out document" for source in sorted(heldout - set(expected.heldout))]
    sides = {TRAIN: (storage.join(shards.tokens, f"split={TRAIN}"), expected.train)} if counts["sequences"] else {}
    for source, stream in sorted(expected.heldout.items()):
        sides[" / ".join(source)] = (heldout_tokens(shards, *source), stream)
    for name, (folder, stream) in sides.items():
        found = tokens.compare_padded(folder, meta, expected, stream, snapshot.advance)
        wrong += [f"{name}: {what}" for what in found]
    return wrong


def _texts(replaced: Iterable[PublishedFile], added: Sequence[PublishedFile]) -> dict[str, bytes]:
    """The digests of the texts that documents of added files have in replaced ones, by their ids."""
    found: dict[str, bytes] = {}
    ids = pa.concat_arrays([chunk for file in added for chunk in file.pages(["id"])["id"].chunks]) if added else None
    for file in replaced if added else ():
        table = file.matching(("id",), lambda rows: pc.is_in(rows["id"], ids), ("id", "text"))
        found |= dict(zip(table["id"].to_pylist(), map(text_digest, text_views(table)), strict=True))
    return found


def _why_not(files: PublishedFiles, paths: list[str]) -> str | None:
    """Why tokens cannot be compared with the documents in these files: `finpile vacuum` blanks and deletes texts."""
    blank = 0
    for path in paths:
        if path not in files:
            return f"not compared: {path} was vacuumed"
        for part in files[path].parts(["text"], size_bytes=READ_BYTES):
            blank += pc.sum(pc.equal(pc.binary_length(part["text"]), 0)).as_py() or 0
    return f"not compared: {blank:,} of the documents are blank since they were taken down" if blank else None
