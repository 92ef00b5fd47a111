"""The train part: the same text and pretokens to a model of as many pieces, each library in a process of its own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc
from finpile_tokenizer import MIN_VOCAB_SIZE, UnigramModel, UnigramTokenizer, Vocabulary, prune_to
from finpile_tokenizer.arrays.buffers import lengths_of, order_by_bytes
from finpile_tokenizer.model import log_normalized

from benchmarks.common.pinned_corpus import Corpus, size_bytes, together
from benchmarks.common.report import say, table
from benchmarks.tokenizer.tiktoken_peer import tiktoken_gpt2
from benchmarks.tokenizer.train_one import COST_KEY, MAX_PIECE_BYTES, SEED_SIZE, Cost, write_arrow

NUM_THREADS = 2
NAMES = {"finpile": "FinPile", "sentencepiece": "SentencePiece", "tokenizers": "HF tokenizers"}
_TRAIN_ONE = Path(__file__).with_name("train_one.py")


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Trained:
    """A library's model and what it took."""

    model: UnigramModel
    """As learned, normalised."""
    cost: Cost

    def vocabulary(self, vocab_size: int | None = None) -> Vocabulary:
        """The `vocab_size` most probable ids; by default all pieces. Bytes it lacks get its smallest probability."""
        everything = int((lengths_of(self.model.pieces) > 1).sum()) + MIN_VOCAB_SIZE
        return prune_to(self.model, vocab_size or everything)


class Trainings:
    """Trains in child processes on one text, which lies in a file in `folder`; trains nothing twice."""

    def __init__(self, folder: Path, training: Corpus) -> None:
        self._folder = folder
        self._texts = folder / "texts.arrow"
        self._trained: dict[tuple[str, int], Trained] = {}
        self.num_bytes = size_bytes(together(training))
        write_arrow(self._texts, pa.table({"text": together(training)}))

    def train(self, engine: str, vocab_size: int) -> Trained:
        """The engine's model of this many pieces.

        Raises:
            SystemExit: the library failed; its messages are on stderr.
        """
        if (engine, vocab_size) not in self._trained:
            say(f"training {vocab_size:,} pieces with {NAMES[engine]} on {self.num_bytes / 1e6:.1f} MB")
            self._trained[engine, vocab_size] = self._train_in_child(engine, vocab_size)
        return self._trained[engine, vocab_size]

    def _train_in_child(self, engine: str, vocab_size: int) -> Trained:
        file = self._folder / f"{engine}_{vocab_size}.arrow"
        threads = {"TOKENIZERS_PARALLELISM": "true", "RAYON_NUM_THREADS": str(NUM_THREADS)}
        command = [sys.executable, _TRAIN_ONE, engine, self._texts, file, str(vocab_size), str(NUM_THREADS)]
        child = subprocess.run(command, env=os.environ | threads, check=False)
        if child.returncode:
            raise SystemExit(f"{NAMES[engine]} trained no model of {vocab_size} pieces: exit status {child.returncode}")
        learned = ipc.open_file(file.read_bytes()).read_all()
        return Trained(
            model=_model(learned, self.num_bytes), cost=Cost(**json.loads(learned.schema.metadata[COST_KEY]))
        )


def compare_training(
    trainings: Trainings, held_out: Corpus, vocab_size: int, engines: Sequence[str], data: Path
) -> str:
    """The section on training: cost of each engine, and the fit of its model to held-out text."""
    trained = {engine: trainings.train(engine, vocab_size) for engine in engines}
    say("measuring the models on the held-out text")
    return "\n\n".join(
        [
            f"## Training {vocab_size:,} pieces",
            f"From text to model on {trainings.num_bytes / 1e6:.1f} MB: {_SETTINGS}",
            _cost_table(trained),
            f"On the held-out text ({_sizes(held_out)}), each vocabulary in FinPile's encoder: {_QUALITY}",
            *_quality_tables(trained, held_out, data),
        ]
    )


_SETTINGS = (
    f"counting included, {NUM_THREADS} threads, pieces of up to {MAX_PIECE_BYTES} bytes, {SEED_SIZE:,} seeds, each "
    "engine in a process of its own. SentencePiece is fed with FinPile's counted pretokens, one weighted line each "
    "(counting is in its time). HF tokenizers cuts the same pretokens from the text, bytes that are not UTF-8 replaced "
    "by U+FFFD, for it takes nothing else. MiB are of resident memory, the text, loaded before the start, included."
)
_QUALITY = (
    "the exact likelihood, all segmentations summed, probabilities normalised over each model's own pieces. Bytes that "
    "a model lacks are added with its smallest probability."
)


def _cost_table(trained: dict[str, Trained]) -> str:
    ours = trained["finpile"].cost
    head = ["engine", "pieces", "wall s", "FinPile faster by", "CPU s", "peak MiB", "of FinPile's peak", "MiB at start"]
    return table(
        head,
        [
            [
                NAMES[engine],
                f"{len(each.model.pieces):,}",
                f"{each.cost.wall_seconds:.1f}",
                f"{each.cost.wall_seconds / ours.wall_seconds:.2f}x",
                f"{each.cost.cpu_seconds:.1f}",
                f"{each.cost.peak_mib:,.0f}",
                f"{each.cost.peak_mib / ours.peak_mib:.2f}x",
                f"{each.cost.before_mib:,.0f}",
            ]
            for engine, each in trained.items()
        ],
    )


def _quality_tables(trained: dict[str, Trained], held_out: Corpus, data: Path) -> list[str]:
    tokenizers = {NAMES[engine]: UnigramTokenizer(each.vocabulary()) for engine, each in trained.items()}
    parts = {**held_out, "all": together(held_out)}
    sizes = {domain: size_bytes(texts) for domain, texts in parts.items()}
    bits: list[list[str]] = []
    tokens: list[list[str]] = []
    for name, tokenizer in tokenizers.items():
        nats = [tokenizer.log_likelihood(texts, num_threads=NUM_THREADS).sum() for texts in parts.values()]
        bits.append([name, *(f"{-value / math.log(2) / sizes[at]:.5f}" for value, at in zip(nats, parts, strict=True))])
        counts = [int(tokenizer.count_tokens(texts, num_threads=NUM_THREADS).sum()) for texts in parts.values()]
        tokens.append(_token_row(name, counts, list(sizes.values())))
    reference = tiktoken_gpt2(data)
    if reference is not None:
        counts = [sum(map(len, reference(_strings(texts)))) for texts in parts.values()]
        tokens.append(_token_row("tiktoken, GPT-2 (for reference)", counts, list(sizes.values())))
    return [
        table(["bits per byte", *parts], bits),
        table(["bytes per token", *parts, "tokens"], tokens),
    ]


def _token_row(name: str, counts: Sequence[int], sizes: Sequence[int]) -> list[str]:
    return [name, *(f"{size / count:.3f}" for size, count in zip(sizes, counts, strict=True)), f"{counts[-1]:,}"]


def _strings(texts: pa.Array) -> list[str]:
    return [text.decode(errors="replace") for text in texts.to_pylist()]


def _sizes(corpus: Corpus) -> str:
    each = ", ".join(f"{domain} {size_bytes(texts) / 1e6:.2f} MB" for domain, texts in corpus.items())
    return f"{each}; {sum(map(len, corpus.values())):,} documents"


def _model(learned: pa.Table, num_bytes: int) -> UnigramModel:
    pieces = learned["piece"].combine_chunks()
    order = order_by_bytes(pieces)
    return UnigramModel(
        pieces=pieces.take(pa.array(order)),
        log_probs=log_normalized(learned["log_weight"].to_numpy()[order]),
        num_models=order * 0 + 1,
        num_bytes=num_bytes,
    )
