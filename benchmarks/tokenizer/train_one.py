"""Trains one Unigram model with one library in this process alone, and measures that.

    python -m benchmarks.tokenizer.train_one ENGINE TEXTS.arrow MODEL.arrow VOCAB_SIZE NUM_THREADS

ENGINE is finpile, sentencepiece or tokenizers. TEXTS holds the column `text`; it is in memory before the clock starts,
which stops with the model. MODEL gets the columns `piece` and `log_weight`, and the `Cost` in its schema's metadata.
Linux only: the peak of memory is that of /proc, reset before training. (`ru_maxrss` would count the parent's, too.)
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
from finpile_tokenizer import PRETOKEN_PATTERN, UnigramTrainer, count_pretokens

MAX_PIECE_BYTES = 16
#: The settings below are the defaults of ours and of SentencePiece; tokenizers is given them by name.
SEED_SIZE = 1_000_000
NUM_SUB_ITERATIONS = 2
SHRINKING_FACTOR = 0.75

COST_KEY = b"cost"
_WARM_UP_DOCUMENTS = 50
_WARM_UP_PIECES = 512

Learned: TypeAlias = tuple[list[bytes], np.ndarray]
"""Pieces, and their log probabilities up to a constant."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a training took."""

    wall_seconds: float
    cpu_seconds: float
    before_mib: float
    """Resident memory before it began: the interpreter, the libraries and the text."""
    peak_mib: float
    """Highest resident memory while it ran."""


def train_finpile(texts: pa.Array, vocab_size: int, num_threads: int) -> Learned:
    """Ours."""
    trainer = UnigramTrainer(vocab_size=vocab_size, max_piece_bytes=MAX_PIECE_BYTES, num_threads=num_threads)
    model = trainer.train(count_pretokens(texts))
    return model.pieces.to_pylist(), model.log_probs


def train_sentencepiece(texts: pa.Array, vocab_size: int, num_threads: int) -> Learned:
    """SentencePiece, fed with our counted pretokens."""
    from benchmarks.tokenizer import sentencepiece_peer

    counts = count_pretokens(texts)
    return sentencepiece_peer.train(
        counts, vocab_size=vocab_size, max_piece_bytes=MAX_PIECE_BYTES, num_threads=num_threads
    )


def train_tokenizers(texts: pa.Array, vocab_size: int, num_threads: int) -> Learned:
    """HF tokenizers behind the same pretokens; its threads are set by RAYON_NUM_THREADS."""
    del num_threads
    from finpile_tokenizer.export import byte_alphabet
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.Unigram())
    cut = pre_tokenizers.Split(Regex(PRETOKEN_PATTERN), "isolated")
    to_characters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, to_characters])
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size,
        max_piece_length=MAX_PIECE_BYTES,
        n_sub_iterations=NUM_SUB_ITERATIONS,
        shrinking_factor=SHRINKING_FACTOR,
        seed_size=SEED_SIZE,
        show_progress=False,
    )
    tokenizer.train_from_iterator((text.as_py().decode(errors="replace") for text in texts), trainer)
    scored = json.loads(tokenizer.to_str())["model"]["vocab"]
    to_bytes = {ord(character): byte for byte, character in byte_alphabet().items()}
    return [name.translate(to_bytes).encode("latin-1") for name, _ in scored], np.array([score for _, score in scored])


ENGINES: dict[str, Callable[[pa.Array, int, int], Learned]] = {
    "finpile": train_finpile,
    "sentencepiece": train_sentencepiece,
    "tokenizers": train_tokenizers,
}


def main() -> None:
    """Trains, and writes the model with its cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("texts", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("vocab_size", type=int)
    parser.add_argument("num_threads", type=int)
    arguments = parser.parse_args()
    texts = ipc.open_file(arguments.texts.read_bytes()).read_all()["text"].combine_chunks()
    train = ENGINES[arguments.engine]
    if (
        train is train_finpile
    ):  # its kernels are compiled on first use, or read from Numba's cache: that is not training
        train(texts.slice(0, _WARM_UP_DOCUMENTS), _WARM_UP_PIECES, arguments.num_threads)
    (pieces, log_weights), cost = _measured(lambda: train(texts, arguments.vocab_size, arguments.num_threads))
    learned = pa.table({"piece": pa.array(pieces, pa.large_binary()), "log_weight": np.asarray(log_weights, float)})
    write_arrow(arguments.model, learned.replace_schema_metadata({COST_KEY: json.dumps(asdict(cost)).encode()}))


def write_arrow(path: Path, content: pa.Table) -> None:
    """Writes an Arrow IPC file."""
    with ipc.new_file(path, content.schema) as file:
        file.write_table(content)


def _measured(train: Callable[[], Learned]) -> tuple[Learned, Cost]:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew at what is resident now
    before, cpu, began = _memory_mib("VmRSS"), _cpu_seconds(), time.monotonic()
    learned = train()
    cost = Cost(
        wall_seconds=time.monotonic() - began,
        cpu_seconds=_cpu_seconds() - cpu,
        before_mib=before,
        peak_mib=_memory_mib("VmHWM"),
    )
    return learned, cost


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _memory_mib(field: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024


if __name__ == "__main__":
    main()
