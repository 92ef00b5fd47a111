"""Tokens a second that one core reads for training, from token shards in the page cache.

    python -m benchmarks.training.loader FOLDER [--gigatokens 0.1] [--seconds 3] [--results DIR]

Writes a store of random ids to FOLDER, reads all of it once, and then takes the batches of consecutive steps, as
`finpile model train` does: one thread, sequences in the order of the seed, int64 tensors. CPU seconds are those of this
process; each row is the median of three rounds.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from finpile_trainer.training.data import TrainingData
from finpile_trainer.training.presets import BatchConfig

from benchmarks.common.report import RESULTS, Report, say, table
from finpile.tokens.store import TokenStore, write_token_shard

_VOCAB_SIZE = 50_000
_NUM_SHARDS = 16
_ROUNDS = 3
#: Stored length, training length, sequences of a batch: the papers' batches, those of one device, the tiny presets'.
_CASES = ((2_048, 2_048, 1_024), (2_048, 2_048, 8), (2_048, 512, 64), (2_048, 256, 4), (256, 256, 4), (256, 64, 64))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gigatokens", type=float, default=0.1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    stores = {length: _store(options.folder / str(length), length, options.gigatokens) for length, _, _ in _CASES}
    rows = []
    for stored, length, size in _CASES:
        data = TrainingData(stores[stored], BatchConfig(size=size), length, seed=0)
        rates = [_rate(data, options.seconds / _ROUNDS) for _ in range(_ROUNDS)]
        say(f"{stored}, {length}, {size}: {rates}")
        rows.append((f"{stored:,}", f"{length:,}", f"{size:,}", f"{statistics.median(rates) / 1e6:,.0f}"))
    report = Report(options.results, "loader", "Reading token shards", ("finpile", "numpy", "pyarrow", "torch"))
    report.add(
        f"A store of {options.gigatokens:g} billion random ids of two bytes in {_NUM_SHARDS} shards, in the page "
        "cache; one thread, sequences in the order of the seed, int64 tensors. Median of three rounds, by CPU time.",
        table(("stored length", "training length", "sequences of a batch", "million tokens a CPU second"), rows),
    )


def _store(folder: Path, length: int, gigatokens: float) -> TokenStore:
    """A store of random ids, read once."""
    count = max(1, round(gigatokens * 1e9 / length / _NUM_SHARDS))
    rng = np.random.default_rng(0)
    for shard in range(_NUM_SHARDS):
        ids = rng.integers(0, _VOCAB_SIZE, (count, length), dtype=np.uint16)
        write_token_shard(f"{folder}/{shard:02}.arrow", ids, vocab_size=_VOCAB_SIZE, eot_id=0, tokenizer="")
    store = TokenStore.open(str(folder))
    sum(int(ids.max()) for ids in store.shards())
    return store


def _rate(data: TrainingData, seconds: float) -> float:
    """Tokens a CPU second of consecutive batches."""
    num_tokens, began = 0, time.process_time()
    for step in itertools.count():
        num_tokens += data.batch(step).numel()
        if (passed := time.process_time() - began) > seconds:
            return num_tokens / passed
    raise AssertionError("unreachable")


if __name__ == "__main__":
    main()
