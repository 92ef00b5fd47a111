"""The tokenizer against named peers, side by side in one run on the pinned corpus.

    python -m benchmarks.tokenizer DATA [train] [encode] [options]

DATA is the folder that holds the archives (see common/pinned_corpus.py). Without a part named, both run. Writes
results/<date>_tokenizer.md, or <date>_tokenizer_PART.md if but one part runs.

    train     from text to a model of the first of --vocab-sizes: time, memory, and the held-out text's code length,
              beside SentencePiece and HF tokenizers; 95 % of the documents are trained on, 5 % held out
    encode    speed on one thread and two, and agreement of the ids, beside SentencePiece and HF tokenizers, with
              vocabularies of all --vocab-sizes, which FinPile trains, or those of --tokenizer

On two cores the whole corpus takes some minutes, and HF tokenizers' training alone more than all else together.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from finpile_tokenizer import UnigramTokenizer, Vocabulary

from benchmarks.common.pinned_corpus import HELD_OUT_EVERY, Corpus, limited, read_corpus, split, valid_utf8
from benchmarks.common.report import RESULTS, Report, say
from benchmarks.tokenizer.encoding import compare_encoding
from benchmarks.tokenizer.tiktoken_peer import tiktoken_gpt2
from benchmarks.tokenizer.training import NUM_THREADS, Trainings, compare_training

PARTS = ("train", "encode")
PACKAGES = ("numpy", "numba", "pyarrow", "sentencepiece", "tokenizers", "tiktoken")


def main() -> None:
    """Measures, prints and writes the tables."""
    arguments = _arguments()
    parts = [part for part in PARTS if part in (arguments.parts or PARTS)]
    name = "_".join(["tokenizer", *(parts if len(parts) < len(PARTS) else [])])
    report = Report(arguments.results, name, "The tokenizer against peers", PACKAGES)
    say("reading the corpus")
    corpus = read_corpus(arguments.data)
    training, held_out = split(corpus)
    if arguments.megabytes:
        training = limited(training, arguments.megabytes)
        held_out = limited(held_out, arguments.megabytes / (HELD_OUT_EVERY - 1))
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(Path(folder), training)
        if "train" in parts:
            report.add(_train(arguments, trainings, held_out))
        if "encode" in parts:
            reference = tiktoken_gpt2(arguments.data)
            texts = valid_utf8(limited(corpus, arguments.encode_megabytes))
            for vocabulary in _vocabularies(arguments, trainings):
                report.add(compare_encoding(vocabulary, texts, reference, arguments.rounds, NUM_THREADS))
    say(f"written to {report.path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives")
    parser.add_argument("parts", nargs="*", metavar="PART", help="train, encode; both by default")
    parser.add_argument("--vocab-sizes", type=int, nargs="+", default=[65_536, 131_072])
    parser.add_argument("--megabytes", type=float, help="train on about so much text, not on all")
    parser.add_argument("--skip-hf", action="store_true", help="leave HF tokenizers out of training")
    parser.add_argument("--encode-megabytes", type=float, default=16, help="of text to encode")
    parser.add_argument("--tokenizer", type=Path, nargs="+", default=[], help="encode with these saved tokenizers")
    parser.add_argument("--rounds", type=int, default=3, help="of encoding")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no part is called {', '.join(sorted(unknown))}: expected {' or '.join(PARTS)}")
    return arguments


def _train(arguments: argparse.Namespace, trainings: Trainings, held_out: Corpus) -> str:
    engines = ["finpile", "sentencepiece", *([] if arguments.skip_hf else ["tokenizers"])]
    return compare_training(trainings, held_out, arguments.vocab_sizes[0], engines, arguments.data)


def _vocabularies(arguments: argparse.Namespace, trainings: Trainings) -> Iterator[Vocabulary]:
    for folder in arguments.tokenizer:
        yield UnigramTokenizer.load(folder).vocabulary
    for size in [] if arguments.tokenizer else arguments.vocab_sizes:
        yield trainings.train("finpile", size).vocabulary(size)


if __name__ == "__main__":
    main()
