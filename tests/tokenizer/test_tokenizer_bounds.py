"""All kernels of the tokenizer under Numba's bounds checks, in a separate process with a separate cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import random
import pyarrow as pa
from numba import config
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, compile_kernels, count_pretokens, merge, prune_to

assert config.BOUNDSCHECK == 1
compile_kernels()
draw = random.Random(0)
letters = "ab cd  1 9.,\\n é漢😀"
texts = ["".join(draw.choices(letters, k=draw.randrange(60))) for _ in range(400)] + ["", "a" * 3000, "7" * 50, "\\x00"]
array = pa.array(texts, pa.large_string())
trainer = UnigramTrainer(vocab_size=90, seed_size=500, num_threads=2)
models = [trainer.train(count_pretokens(part)) for part in (array.slice(0, 200), array.slice(200))]
tokenizer = UnigramTokenizer(prune_to(merge(models), 400))
for part in (array, array.slice(7, 50), array.slice(0, 0)):
    ids = tokenizer.encode_array(part, num_threads=2)
    assert [tokenizer.decode(row) for row in ids.to_pylist()] == [text.encode() for text in part.to_pylist()]
noise = draw.randbytes(5000)
assert tokenizer.decode(tokenizer.encode(noise)) == noise
# Longer than a block of the encoder: of many pretokens, and of one.
for text in (b"ab cd 1.a" * 9_000, b"ab" * 40_000, noise * 20):
    assert tokenizer.decode(tokenizer.encode(text)) == text
for text in (noise, b"ab cd " * 400, b""):
    nbest, samples = tokenizer.encode_nbest(text, 20), tokenizer.sample(text, seed=1, alpha=0.1, num_samples=9)
    drawn = [one.ids for one in tokenizer.sample_without_replacement(text, 20, seed=1)]
    assert all(tokenizer.decode(ids) == text for ids in [ids for ids, _ in nbest] + samples + drawn)
tokenizer.encode_array_with_offsets(array.slice(7, 50), unit="characters")
tokenizer.log_likelihood(array.slice(7, 50), num_threads=2)
print("within bounds")
"""

TRAINING = """
import random
import numpy as np
import pyarrow as pa
from numba import config
from finpile_tokenizer import PretokenCounts, UnigramTrainer
from finpile_tokenizer.training import em, lattice, prune, seed

assert config.BOUNDSCHECK == 1
# Small ranges, so that the tests cover all edges of a range.
seed._RANGE_POSITIONS, lattice._BLOCK_BYTES, prune._RANGE_PIECES = 40, 40, 7
draw = random.Random(0)


def counts_of(pretokens):
    pretokens = sorted(set(pretokens))
    frequencies = np.array([draw.randrange(1, 9) for _ in pretokens], np.int64)
    return PretokenCounts(pretokens=pa.array(pretokens, pa.large_binary()), frequencies=frequencies)


runs = [bytes([value]) * length for value in (0, 97, 255) for length in (1, 2, 8, 9, 10, 17, 255, 256, 1023, 1024)]
patterns = [(pattern * 1024)[:length] for pattern in (b"ab", b"\\x00\\x01", b"abcdefgh") for length in (1, 3, 1024)]
few_letters = [bytes(draw.choices(b"a\\x00\\xff", k=draw.randrange(1, 30))) for _ in range(150)]
noise = [draw.randbytes(draw.randrange(1, 40)) for _ in range(60)]
texts = {
    "runs": counts_of(runs),
    "patterns": counts_of(patterns),
    "few letters": counts_of(few_letters),
    "bytes": counts_of(bytes([value]) for value in range(256)),
    "one byte": counts_of([b"\\x00"]),
    "two bytes": counts_of([b"\\xff\\xff"]),
    "all": counts_of(runs + patterns + few_letters + noise),
}
texts["slice"] = PretokenCounts(
    pretokens=texts["all"].pretokens[20:90], frequencies=texts["all"].frequencies[20:90]
)
last = []
for counts in texts.values():
    for max_piece_bytes in (1, 2, 9, 254):
        for seed_size in (0, 5, 3000):
            trainer = UnigramTrainer(max_piece_bytes=max_piece_bytes, seed_size=seed_size, num_threads=2)
            pieces = list(trainer.train_sizes(counts, [400, 300, 256]))[-1].pieces
            lattices = lattice.find_lattices(counts, pieces, num_threads=2)
            last.append((lattices, np.full(len(pieces), -1.0)))
# Weights of 0 underflow, so that the sums are made in logarithms.
for lattices, log_probs in last:
    em.expectation(lattices, log_probs, scale=1.0, tilt=-1e6, num_threads=2)
print("within bounds")
"""


def run_with_bounds_checks(program: str, cache: Path) -> None:
    paths = os.pathsep.join(str(ROOT / path) for path in (".", "tokenizer"))
    # Numba does not cache kernels without optimisation: unused addresses stay in them.
    checks = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(cache)}
    environment = {**os.environ, **checks, "PYTHONPATH": paths}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "within bounds", result.stderr


@pytest.fixture(scope="module")
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of compiled kernels, shared by both tests. The project's own suite keeps it between runs."""
    try:
        return Path(request.getfixturevalue("checked_kernels"))
    except pytest.FixtureLookupError:
        return tmp_path_factory.mktemp("kernels")


def test_tokenizer_kernels_stay_within_bounds(kernels: Path) -> None:
    run_with_bounds_checks(PROGRAM, kernels)


def test_training_kernels_stay_within_bounds(kernels: Path) -> None:
    run_with_bounds_checks(TRAINING, kernels)
