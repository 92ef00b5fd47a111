"""Memorization: whether a model continues a prompt from the training text exactly, by the copies that the text had.

A prompt is the first 50 tokens of a training document, after the token that begins a document. The document is
memorized if the greedy continuation of 50 tokens is its own. Carlini et al. 2023, "Quantifying Memorization Across
Neural Language Models", §3, measure so.

Documents are grouped by `num_copies`: 1, 2 to 3, 4 to 7, and so on. Of each group those with the smallest ids are
taken; ids are hashes, so the sample is unbiased, and it depends on neither shards nor models.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.errors import InputError
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, read_copies, with_copies
from finpile_trainer.evaluation.breakdown import document_files
from finpile_trainer.evaluation.intervals import wilson
from finpile_trainer.evaluation.language_model import LanguageModel

PROMPT_TOKENS = CONTINUED_TOKENS = 50
#: Documents of each group, if no limit is given.
DEFAULT_LIMIT = 100
#: Shorter documents are not drawn: 100 tokens of ten bytes.
_MIN_BYTES = 1_000
#: Enough text for 100 tokens of the longest pieces.
_PREFIX_CHARACTERS = 8_192
_DOCUMENTS_AT_ONCE = 64
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class CopyGroup:
    """The beginnings of documents with about the same number of copies."""

    lowest: int
    """A power of two; the group ends before the next one."""
    texts: list[str]


def sample_by_copies(root: str, limit: int = DEFAULT_LIMIT) -> list[CopyGroup]:
    """Up to `limit` training documents of each group of the build at `root`, in the order of their ids.

    Raises: InputError if there is no training document of that size.
    """
    chosen: dict[int, list[tuple[str, str]]] = {}
    for num_copies, entry in _documents(root):
        lowest = _group_of(num_copies)
        entries = chosen.setdefault(lowest, [])
        entries.append(entry)
        if len(entries) >= 2 * limit:
            chosen[lowest] = heapq.nsmallest(limit, entries)
    if not chosen:
        raise InputError(
            f"{root}: has no training document of {_MIN_BYTES:,} bytes or more, from which to take prompts"
        )
    return [
        CopyGroup(lowest, [text for _, text in heapq.nsmallest(limit, entries)])
        for lowest, entries in sorted(chosen.items())
    ]


def _documents(root: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """The copies, id and beginning of each training document that is long enough."""
    columns, layout = ("id", "num_copies", "split", "text"), Layout(root)
    manifest = load_snapshot(layout) if storage.is_file(layout.manifest) else {}
    copies = read_copies(layout, manifest)
    for file in chain.from_iterable(document_files(root).values()):
        for batch in file.batches(columns, num_rows=_DOCUMENTS_AT_ONCE):
            table = with_copies(pa.Table.from_batches([batch]), copies)
            is_long = pc.greater_equal(pc.binary_length(table["text"]), _MIN_BYTES)
            kept = table.filter(pc.and_(is_long, pc.equal(table["split"], "train")))
            texts = pc.utf8_slice_codeunits(kept["text"], 0, _PREFIX_CHARACTERS)
            entries = zip(kept["id"].to_pylist(), texts.to_pylist(), strict=True)
            yield from zip(kept["num_copies"].to_pylist(), entries, strict=True)


def _group_of(num_copies: int) -> int:
    """The largest power of two that is not above it.

    >>> [_group_of(copies) for copies in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 4, 4, 8]
    """
    return 1 << (max(1, num_copies).bit_length() - 1)


def memorized(
    model: LanguageModel, groups: list[CopyGroup], on_document: Callable[[], None] = lambda: None
) -> list[dict[str, Any]]:
    """The memorized documents of each group, with an interval of 95% of their share.

    Documents of fewer than 100 of the model's tokens are counted and left out.

    Raises: InputError if the model reads fewer tokens.
    """
    found = []
    for group in groups:
        results: list[bool | None] = []
        for start in range(0, len(group.texts), _AT_ONCE):
            texts = group.texts[start : start + _AT_ONCE]
            results += model.continues(texts, PROMPT_TOKENS, CONTINUED_TOKENS)
            for _ in texts:
                on_document()
        measured = [result for result in results if result is not None]
        found.append(
            {
                "lowest_copies": group.lowest,
                "highest_copies": 2 * group.lowest - 1,
                "num_documents": len(measured),
                "num_short": len(results) - len(measured),
                "num_memorized": sum(measured),
                "share": sum(measured) / len(measured) if measured else None,
                "interval": list(wilson(sum(measured), len(measured))),
            }
        )
    return found
