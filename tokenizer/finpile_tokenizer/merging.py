"""Merges chunk models into one, and cuts the merged model down to a vocabulary.

Source: Wu et al., BloombergGPT (arXiv:2303.17564), section 2.3: an average of the probabilities of corresponding
pieces, weighted by the bytes trained on, an absent piece counting as probability 0; then the most probable pieces.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, byte_buffers, concat, lengths_of, order_by_bytes
from finpile_tokenizer.arrays.groups import compensated_sum_by_group, group_items, sum_by_group
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.model import NUM_BYTE_PIECES, UnigramModel, Vocabulary

#: Decimals kept of a log probability: see `Vocabulary.log_probs`.
LOG_PROB_DECIMALS = 12
#: The bytes and `<|endoftext|>`.
MIN_VOCAB_SIZE = NUM_BYTE_PIECES + 1


def merge(models: Iterable[UnigramModel]) -> UnigramModel:
    """The average of the models' probabilities weighted by `num_bytes`; its own weight is the sum of theirs.

    Hence merging merged models equals, up to rounding (1e-12), merging all at once. The result's bytes do not
    depend on the order of the models: the terms of each sum are sorted before they are added.

    Raises:
        TokenizerError: there is no model, or none with a weight.
    """
    parts = list(models)
    num_bytes = sum(part.num_bytes for part in parts)
    if num_bytes <= 0:
        raise TokenizerError(f"cannot merge {len(parts)} models that were trained on {num_bytes} bytes in all")
    pieces = concat([part.pieces for part in parts])
    groups, firsts = group_items(*byte_buffers(pieces))
    mass = _sum_in_order(groups, np.concatenate([_mass(part) for part in parts]), len(firsts))
    num_models = sum_by_group(groups, np.concatenate([part.num_models for part in parts]), len(firsts))
    distinct = pieces.take(pa.array(firsts))
    order = order_by_bytes(distinct)
    return UnigramModel(
        pieces=distinct.take(pa.array(order)),
        log_probs=np.log(mass[order] / num_bytes),
        num_models=num_models[order],
        num_bytes=num_bytes,
    )


def prune_to(merged: UnigramModel, vocab_size: int) -> Vocabulary:
    """The vocabulary of the `vocab_size - 1` most probable pieces, renormalised, and `<|endoftext|>`.

    All 256 bytes are among them, whatever their probability; one that never occurred gets the smallest probability
    kept. A model of fewer pieces gives a smaller vocabulary: see `Vocabulary.num_missing`.

    Raises:
        TokenizerError: `vocab_size` has no room for the bytes and `<|endoftext|>`.
    """
    if vocab_size < MIN_VOCAB_SIZE:
        raise TokenizerError(f"vocab_size is {vocab_size}: the 256 bytes and <|endoftext|> alone need {MIN_VOCAB_SIZE}")
    log_probs = merged.log_probs.round(LOG_PROB_DECIMALS)
    lengths = lengths_of(merged.pieces)
    longer = np.flatnonzero(lengths > 1)
    # A stable sort of pieces already in order of their bytes: ties stay in that order.
    chosen = longer[np.argsort(-log_probs[longer], kind="stable")][: vocab_size - MIN_VOCAB_SIZE]
    bytes_seen = np.flatnonzero(lengths == 1)
    floor = log_probs[np.concatenate([bytes_seen, chosen])].min()
    byte_log_probs, byte_models = np.full(NUM_BYTE_PIECES, floor), np.zeros(NUM_BYTE_PIECES, np.int64)
    values = _byte_values(merged, bytes_seen)
    byte_log_probs[values] = log_probs[bytes_seen]
    byte_models[values] = merged.num_models[bytes_seen]
    alphabet = pa.array([bytes([value]) for value in range(NUM_BYTE_PIECES)], pa.large_binary())
    return Vocabulary(
        pieces=concat([alphabet, merged.pieces.take(pa.array(chosen))]),
        log_probs=_renormalized(np.concatenate([byte_log_probs, log_probs[chosen]])),
        num_models=np.concatenate([byte_models, merged.num_models[chosen]]),
        num_requested=vocab_size,
    )


def _mass(model: UnigramModel) -> Float64s:
    mass: Float64s = np.exp(model.log_probs) * model.num_bytes
    return mass


def _sum_in_order(groups: Int64s, terms: Float64s, num_groups: int) -> Float64s:
    """The sum of each group's terms, smallest first, whatever order they come in."""
    order = np.lexsort((terms, groups))
    sums: Float64s = compensated_sum_by_group(groups[order], terms[order], num_groups)
    return sums


def _byte_values(model: UnigramModel, indices: Int64s) -> Int64s:
    """The value of each of these one-byte pieces."""
    offsets, data = byte_buffers(model.pieces)
    return data[offsets[indices]].astype(np.int64)


def _renormalized(log_probs: Float64s) -> Float64s:
    """Shifted to sum to one, and a multiple of 10^-12 again."""
    total = np.log(np.exp(np.sort(log_probs)).sum()).round(LOG_PROB_DECIMALS)
    shifted: Float64s = (log_probs - total).round(LOG_PROB_DECIMALS)
    return shifted
