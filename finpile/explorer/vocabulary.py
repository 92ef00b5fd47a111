"""The tokenizer of a build for the pages: its pieces with their probabilities, and how often each is in the shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.export import TOKENIZER_FILE

from finpile import storage
from finpile.documents.document import Label
from finpile.errors import IntegrityError
from finpile.explorer.beside import byte_pairs_of
from finpile.output.layout import Layout, row_of, token_index
from finpile.output.published_files import Advance
from finpile.output.snapshots import BUILD, numbers
from finpile.tokens.store import SHARD_SUFFIX, Ids, TokenStore
from finpile.tokens.tokenizer_files import USED_FILE
from finpile.tokens.tokenizers.kinds.finpile import OwnTokenizer
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer

#: Tokens that are counted at a time.
_AT_ONCE = 1 << 22
#: Typical pieces of a source.
_MOST_TYPICAL = 24


def vocabulary(layout: Layout, advance: Advance = lambda amount: None) -> dict[str, Any] | None:
    """Pieces by id, with a character for each byte, so that any bytes are JSON; their natural log probabilities, which
    a parser reads back as the same numbers; their occurrences in the shards of training tokens, those that snapshots
    added included; and by source, how many of them are used, how many nowhere else, and those that are typical.

    Of a tokenizer that was not trained, instead of probabilities what the pages need to encode with it (`encoder`),
    null if they cannot; its special tokens have no piece. None if the build has no tokenizer.

    Raises: IntegrityError if the index of a shard is missing.
    """
    if not any(storage.is_file(storage.join(layout.tokenizer, name)) for name in (TOKENIZER_FILE, USED_FILE)):
        return None
    tokenizer = open_build_tokenizer(layout, is_checked=True)
    found = _own(tokenizer) if isinstance(tokenizer, OwnTokenizer) else _other(tokenizer)
    rows, counts = _counts(layout, tokenizer.vocab_size, advance)
    totals = counts.sum(axis=0).tolist() if len(counts) else None
    return {**found, "counts": totals, "by_source": _by_source(rows, counts)}


def _own(tokenizer: OwnTokenizer) -> dict[str, Any]:
    own = tokenizer.vocabulary
    return {
        "pieces": [piece.decode("latin-1") for piece in own.pieces.to_pylist()],
        "log_probs": own.log_probs.tolist(),
        "eot_id": own.eot_id,
        "num_models": None if own.num_models is None else own.num_models.tolist(),
    }


def _other(tokenizer: Tokenizer) -> dict[str, Any]:
    names = tokenizer.control_ids
    return {
        "pieces": ["" if at in names else piece.decode("latin-1") for at, piece in enumerate(tokenizer.pieces)],
        "log_probs": None,
        "eot_id": tokenizer.eot_id,
        "num_models": None,
        "encoder": byte_pairs_of(tokenizer),
    }


def _counts(layout: Layout, size: int, advance: Advance) -> tuple[list[Label], npt.NDArray[np.int64]]:
    """How often each id is in the training tokens of each source, [sources, size]; without sources if there are none.

    The source of a token is that of its document's file, which the index of the shard has.
    """
    counts: dict[Label, npt.NDArray[np.int64]] = {}
    for url, ids in _shards(layout):
        try:
            pieces = storage.read_parquet(token_index(url), columns=["file", "num_tokens"])
        except FileNotFoundError:
            raise IntegrityError(f"{token_index(url)}: is missing: build the token shards again") from None
        files = pieces["file"].combine_chunks()
        rows = [row_of(file) for file in files.dictionary.to_pylist()]
        sources, ends = files.indices.to_numpy(), np.cumsum(pieces["num_tokens"].to_numpy(), dtype=np.int64)
        for start in range(0, len(ids), _AT_ONCE):
            part = np.asarray(ids[start : start + _AT_ONCE])
            own = sources[np.searchsorted(ends, np.arange(start, start + len(part)), side="right")]
            for number in np.unique(own).tolist():
                total = counts.setdefault(rows[number], np.zeros(size, np.int64))
                total += np.bincount(part[own == number], minlength=size)
            advance(part.nbytes)
    found = sorted(counts)
    return found, np.array([counts[row] for row in found], np.int64).reshape(len(found), size)


def _shards(layout: Layout) -> Iterator[tuple[str, Ids]]:
    """The URL and the tokens of each shard of training tokens, of the build and of each snapshot."""
    for number in numbers(layout) or [BUILD]:
        folder = storage.join(layout.snapshot_tokens(number).tokens, "split=train")
        if any(name.endswith(SHARD_SUFFIX) for name in storage.list_files(folder)):
            store = TokenStore.open(folder)
            yield from zip(store.urls, store.tokens(), strict=True)


def _by_source(rows: list[Label], counts: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """Of each source the number of its tokens, of the ids among them, of those in no other source, and typical ones."""
    totals, num_sources = counts.sum(axis=0), (counts > 0).sum(axis=0)
    found = []
    for (dataset, source), own in zip(rows, counts, strict=True):
        typical = _typical(own, totals)
        found.append(
            {
                "dataset": dataset,
                "source": source,
                "tokens": int(own.sum()),
                "used": int((own > 0).sum()),
                "only": int(((own > 0) & (num_sources == 1)).sum()),
                "typical": [[int(number), int(own[number])] for number in typical],
            }
        )
    return found


def _typical(own: npt.NDArray[np.int64], totals: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """The ids that a source has more often than the others, by their log-likelihood ratio, the largest first.

    Source: Dunning 1993, "Accurate Methods for the Statistics of Surprise and Coincidence", section 5,
    https://aclanthology.org/J93-1003.
    """
    others, num_own, num_all = totals - own, int(own.sum()), int(totals.sum())
    if num_own == num_all:
        return np.zeros(0, np.intp)
    expected = totals * (num_own / num_all)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = own * np.log(own / expected), others * np.log(others / (totals - expected))
    ratio = sum(np.where(number > 0, term, 0.0) for number, term in zip((own, others), terms, strict=True))
    is_typical = own > expected
    order = np.lexsort((np.arange(len(own)), -np.where(is_typical, ratio, -1.0)))[:_MOST_TYPICAL]
    return order[is_typical[order]]
