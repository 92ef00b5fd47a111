"""Tokenizers as those of other papers, trained on any texts with the libraries that these papers used.

    train_gpt_neox(texts, vocab_size) -> tokenizer.json     byte-level BPE, by `tokenizers`
    train_palm(texts, vocab_size)     -> spiece.model       Unigram, by `sentencepiece`

    train_like(like, texts, out)                            the same, in a folder

Both are lossless (but `train_palm` reads `▁` as a space, as SentencePiece does), and the same texts in the same order
give the same bytes. Training is in one process and holds the words of all texts, for PaLM's the texts, in memory.

Sources: GPT-NeoX-20B (Black et al. 2022) §3.2; PaLM (Chowdhery et al. 2022) §2.1.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Literal

from finpile.errors import ConfigError, InputError
from finpile.storage import exists, is_file, join, list_files, read_json, write_bytes, write_json

Like = Literal["gpt-neox", "palm"]
RECORD_FILE = "paper.json"

#: GPT-NeoX-20B §3.2: as many as GPT-2.
GPT_NEOX_VOCAB_SIZE = 50_257
#: PaLM §2.1.
PALM_VOCAB_SIZE = 256_000
#: GPT-NeoX-20B §3.2: a token for each number of spaces up to this one.
LONGEST_RUN = 24
END_OF_TEXT = "<|endoftext|>"
#: The space in GPT-2's byte alphabet.
_SPACE = "Ġ"
_LONGEST_LINE_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class LikePaper:
    """The content of `paper.json`: what a tokenizer was trained on, and with."""

    like: Like
    vocab_size: int
    vocab_size_asked_for: int
    num_docs: int
    num_bytes: int
    texts: str
    """SHA-256 of the texts in their order."""
    library: str


def train_like(
    like: Like,
    texts: Callable[[], Iterable[str]],
    out: str,
    vocab_size: int | None = None,
    *,
    replace: bool = False,
    fresh: bool = False,
) -> tuple[LikePaper, str, bool]:
    """Trains the tokenizer of a paper into the folder `out`: its record, its file, and whether a training ran.

    `texts` is called twice. A folder that has the tokenizer of these texts and this size is left as it is, unless
    `fresh`; one of other texts is overwritten only with `replace`.

    Raises: ConfigError for a folder with anything else; InputError if there is no text, or too little of it.
    """
    trainer = _TRAINERS[like]
    asked = vocab_size or trainer.vocab_size
    num_docs, num_bytes, digest = _digest(texts())
    library = f"{trainer.library} {version(trainer.library)}"
    file, record_file = join(out, trainer.file), join(out, RECORD_FILE)
    before = _record_before(out, trainer, like)
    if before is not None and is_file(file):
        same = (before.texts, before.vocab_size_asked_for, before.library) == (digest, asked, library)
        if same and not fresh:
            return before, file, False
        if before.texts != digest and not replace:
            raise ConfigError(
                f"-o {out} holds a tokenizer that was trained on other texts: name another folder, or say --replace to "
                "overwrite it"
            )
    content = trainer.train(texts(), asked)
    record = LikePaper(
        like=like,
        vocab_size=trainer.size_of(content),
        vocab_size_asked_for=asked,
        num_docs=num_docs,
        num_bytes=num_bytes,
        texts=digest,
        library=library,
    )
    write_bytes(file, content)
    write_json(record_file, asdict(record))
    return record, file, True


def train_gpt_neox(texts: Iterable[str], vocab_size: int = GPT_NEOX_VOCAB_SIZE) -> bytes:
    """The content of `tokenizer.json`: 256 bytes, runs of 2 to 24 spaces, learned merges, and `<|endoftext|>`.

    A space is put before every text and removed by decoding, so that its first word has the token of the same word
    after a space. Runs of spaces are merged before all else. With little text, the vocabulary is smaller.

    Raises: InputError if there is no text.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    learner = Tokenizer(models.BPE())
    learner.normalizer = normalizers.Prepend(" ")
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=vocab_size - 1, initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator(_not_empty(texts), trainer)
    learned = [tuple(pair) for pair in json.loads(learner.to_str())["model"]["merges"]]

    vocabulary = {sign: at for at, sign in enumerate(alphabet)}
    merges: list[tuple[str, str]] = []
    for left, right in [*_run_merges(), *learned]:
        if left + right not in vocabulary:
            if len(vocabulary) == vocab_size - 1:
                break
            vocabulary[left + right] = len(vocabulary)
            merges.append((left, right))
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.normalizer = learner.normalizer
    tokenizer.pre_tokenizer = learner.pre_tokenizer
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, normalized=False)])
    return str(tokenizer.to_str(pretty=True)).encode() + b"\n"


def train_palm(texts: Iterable[str], vocab_size: int = PALM_VOCAB_SIZE) -> bytes:
    """The content of `spiece.model`: digits are pieces of one, white space is kept, other characters become bytes.

    With little text, the vocabulary is smaller.

    Raises: InputError if there is no text, or the vocabulary is too small for the characters of the texts.
    """
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=_lines(_not_empty(texts)),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            byte_fallback=True,
            split_digits=True,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            required_chars="0123456789",
            allow_whitespace_only_pieces=True,
            max_sentence_length=_LONGEST_LINE_BYTES,
            num_threads=1,  # sums of floats depend on the number of threads
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InputError(
            f"SentencePiece does not train a vocabulary of {vocab_size:,} on this text: {error}"
        ) from error
    return model.getvalue()


def _run_merges() -> Iterator[tuple[str, str]]:
    """Merges that make one token of each run of 2 to 24 spaces.

    First pairs of equal runs: a run is then the powers of two of its length, in falling order. Then the second part is
    merged with the sum of those before it, the largest parts first.
    """
    powers = [1, 2, 4, 8, 16]
    for power in powers[:-1]:
        yield _SPACE * power, _SPACE * power
    for power in reversed(powers):
        for size in range(2, LONGEST_RUN + 1):
            if size & -size == power != size:
                yield _SPACE * (size - power), _SPACE * power


def _not_empty(texts: Iterable[str]) -> Iterator[str]:
    found = False
    for text in texts:
        if text:
            found = True
            yield text
    if not found:
        raise InputError("there is no text to train a tokenizer on")


def _lines(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from text.splitlines(keepends=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trainer:
    """One of the papers: its size, its library, and the file that this library writes."""

    vocab_size: int
    library: str
    file: str
    train: Callable[[Iterable[str], int], bytes]
    size_of: Callable[[bytes], int]


def _size_of_json(content: bytes) -> int:
    from tokenizers import Tokenizer

    return int(Tokenizer.from_str(content.decode()).get_vocab_size())


def _size_of_model(content: bytes) -> int:
    from sentencepiece import SentencePieceProcessor

    return int(SentencePieceProcessor(model_proto=content).get_piece_size())


_TRAINERS = {
    "gpt-neox": _Trainer(
        vocab_size=GPT_NEOX_VOCAB_SIZE,
        library="tokenizers",
        file="tokenizer.json",
        train=train_gpt_neox,
        size_of=_size_of_json,
    ),
    "palm": _Trainer(
        vocab_size=PALM_VOCAB_SIZE,
        library="sentencepiece",
        file="spiece.model",
        train=train_palm,
        size_of=_size_of_model,
    ),
}


def _record_before(out: str, trainer: _Trainer, like: Like) -> LikePaper | None:
    """The record of an earlier training in the folder.

    Raises: ConfigError if the folder has files of something else; InputError if the record is damaged.
    """
    if not exists(out):
        return None
    names = {url.rstrip("/").rsplit("/", 1)[-1] for url in list_files(out)}
    before = _read_record(join(out, RECORD_FILE)) if RECORD_FILE in names else None
    if names - {trainer.file, RECORD_FILE} or (before is not None and before.like != like):
        raise ConfigError(f"-o {out} holds files that are not from such a training: name another folder")
    return before


def _read_record(url: str) -> LikePaper:
    try:
        return LikePaper(**read_json(url))
    except (ValueError, TypeError) as error:
        raise InputError(f"{url} is damaged ({error}): delete it, and run the command again") from error


def _digest(texts: Iterable[str]) -> tuple[int, int, str]:
    """Texts, bytes, and the SHA-256 of the texts with their lengths."""
    digest, num_docs, num_bytes = hashlib.sha256(), 0, 0
    for text in texts:
        data = text.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
        num_docs, num_bytes = num_docs + 1, num_bytes + len(data)
    return num_docs, num_bytes, digest.hexdigest()
