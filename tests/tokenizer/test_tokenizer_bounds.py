"""Every kernel of the tokenizer with Numba's bounds checks on, in a process and a cache of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
for text in (noise, b"ab cd " * 400, b""):
    nbest, samples = tokenizer.encode_nbest(text, 20), tokenizer.sample(text, seed=1, alpha=0.1, num_samples=9)
    drawn = [one.ids for one in tokenizer.sample_without_replacement(text, 20, seed=1)]
    assert all(tokenizer.decode(ids) == text for ids in [ids for ids, _ in nbest] + samples + drawn)
tokenizer.encode_array_with_offsets(array.slice(7, 50), unit="characters")
tokenizer.log_likelihood(array.slice(7, 50), num_threads=2)
print("within bounds")
"""


def test_tokenizer_kernels_stay_within_bounds(tmp_path: Path) -> None:
    rooms = os.pathsep.join(str(ROOT / room) for room in (".", "tokenizer"))
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": rooms}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.strip() == "within bounds", result.stderr
