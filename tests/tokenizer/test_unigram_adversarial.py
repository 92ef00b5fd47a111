"""Adversarial training texts: each results in a valid model or a clear error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import (
    MAX_PRETOKEN_BYTES,
    MIN_VOCAB_SIZE,
    EmptyCorpusError,
    TokenizerError,
    UnigramModel,
    UnigramTokenizer,
    UnigramTrainer,
    count_pretokens,
    merge,
    prune_to,
)

Text = Callable[[int], bytes]


def noise(num_bytes: int) -> bytes:
    return np.random.default_rng(7).bytes(num_bytes)


def letters_and_spaces(num_bytes: int) -> bytes:
    """Random letters and spaces without a pretoken boundary."""
    alphabet = np.frombuffer(b"eeeettaaooiinnsshhrrdlcumwfgypbvk      ETAOZQ", np.uint8)
    return alphabet[np.random.default_rng(7).integers(0, len(alphabet), num_bytes)].tobytes()


def words(num_bytes: int) -> bytes:
    """Words drawn with Zipf's frequencies, without a byte of another class."""
    draw = np.random.default_rng(7)
    known = [bytes(draw.integers(97, 123, draw.integers(1, 11)).astype(np.uint8)) for _ in range(20_000)]
    ranks = np.minimum(draw.zipf(1.3, num_bytes // 4), len(known)) - 1
    return b" ".join([known[rank] for rank in ranks])[:num_bytes]


TEXTS: dict[str, Text] = {
    "one letter": lambda num_bytes: b"a" * num_bytes,
    "one NUL": lambda num_bytes: b"\x00" * num_bytes,
    "one digit": lambda num_bytes: b"7" * num_bytes,
    "a period of two": lambda num_bytes: b"ab" * (num_bytes // 2),
    "a period of 1,023": lambda num_bytes: (bytes(range(97, 123)) * 40)[:1023] * (num_bytes // 1023),
    "NULs and 0xff": lambda num_bytes: (b"\x00" * 40 + b"\xff" * 3) * (num_bytes // 43),
    "random bytes": noise,
    "random letters and spaces": letters_and_spaces,
    "words without an end": words,
    "a growing run": lambda num_bytes: b".".join(b"a" * length for length in range(math.isqrt(2 * num_bytes))),
}


def train(text: bytes, vocab_size: int, max_piece_bytes: int = 16, num_threads: int = 2) -> UnigramModel:
    trainer = UnigramTrainer(vocab_size=vocab_size, max_piece_bytes=max_piece_bytes, num_threads=num_threads)
    return trainer.train(count_pretokens(pa.array([text], pa.large_binary())))


def assert_sound(model: UnigramModel, text: bytes, vocab_size: int) -> None:
    pieces = model.pieces.to_pylist()
    assert {bytes([value]) for value in np.unique(np.frombuffer(text, np.uint8))} <= set(pieces)
    assert len(pieces) == len(set(pieces)) <= vocab_size
    assert all(piece in text for piece in pieces[:: len(pieces) // 40 + 1])
    assert np.isfinite(model.log_probs).all()
    assert math.fsum(np.exp(model.log_probs)) == pytest.approx(1.0, abs=1e-9)
    assert all(math.isfinite(bits) and 0 <= bits < 9 for bits in model.objective[1:])
    assert model.num_bytes == len(text)
    tokenizer = UnigramTokenizer(prune_to(merge([model]), MIN_VOCAB_SIZE + vocab_size))
    start = text[:100_000]
    assert tokenizer.decode(tokenizer.encode(start)) == start


@pytest.mark.parametrize("max_piece_bytes", [1, 16, 254])
@pytest.mark.parametrize("name", TEXTS)
def test_an_adversarial_text_trains(name: str, max_piece_bytes: int) -> None:
    text = TEXTS[name](60_000)
    assert_sound(train(text, 500, max_piece_bytes), text, 500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one letter", "one NUL", "random bytes"])
def test_a_hundred_megabytes_of_an_adversarial_text_train(name: str) -> None:
    text = TEXTS[name](100_000_000)
    assert_sound(train(text, 65_536), text, 65_536)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["random letters and spaces", "words without an end", "one letter"])
def test_fifty_megabytes_of_one_class_train(name: str) -> None:
    text = TEXTS[name](50_000_000)
    assert_sound(train(text, 65_536), text, 65_536)


def test_a_run_of_one_letter_is_learned_as_its_longest_pieces() -> None:
    model = train(b"a" * (MAX_PRETOKEN_BYTES * 50), 500)
    pieces = model.pieces.to_pylist()
    assert pieces == [b"a" * length for length in range(1, len(pieces) + 1)]
    assert len(pieces) == 16
    # The shortest code of a pretoken of 1,024 letters is 64 pieces of 16 letters.
    assert np.argmax(model.log_probs) == 15


@pytest.mark.parametrize("size", [0, 1, 3])
def test_an_empty_corpus_is_refused(size: int) -> None:
    counts = count_pretokens(pa.array([b""] * size, pa.large_binary()))
    with pytest.raises(EmptyCorpusError, match="no text"):
        UnigramTrainer().train(counts)
    with pytest.raises(EmptyCorpusError, match="no text"):
        UnigramTrainer().train_sizes(counts, [400, 300])


@pytest.mark.parametrize("text", [b"a", b"ab", b"\x00", b"7", b"a b", bytes(range(256))])
def test_a_text_with_fewer_pieces_than_requested_gives_all_its_pieces(text: bytes) -> None:
    model = train(text, 65_536)
    # No string occurs twice, so the bytes are the only seeds.
    assert model.pieces.to_pylist() == sorted({bytes([value]) for value in text})


def test_noise_with_enough_pieces_gives_the_requested_number() -> None:
    # Most of these nearly useless pieces have no removal loss. Pruning must still keep the requested number.
    assert len(train(noise(200_000), 5_000).pieces) == 5_000


def test_as_many_pieces_as_bytes_leave_the_bytes() -> None:
    text = bytes(range(256)) * 20
    assert train(text, 256).pieces.to_pylist() == [bytes([value]) for value in range(256)]
    with pytest.raises(TokenizerError, match="vocab_size is 255, but 256 different bytes"):
        train(text, 255)


@pytest.mark.parametrize("vocab_size", [0, -1])
def test_an_empty_vocabulary_is_refused(vocab_size: int) -> None:
    with pytest.raises(TokenizerError, match="vocab_size"):
        train(b"abc", vocab_size)


@pytest.mark.parametrize("number", [0, 255, -3])
def test_pieces_of_no_length_or_too_long_are_refused(number: int) -> None:
    with pytest.raises(TokenizerError, match=f"max_piece_bytes is {number}"):
        UnigramTrainer(max_piece_bytes=number)


@pytest.mark.parametrize(("setting", "number"), [("seed_size", -1), ("num_threads", 0)])
def test_other_settings_without_a_meaning_are_refused(setting: str, number: int) -> None:
    with pytest.raises(TokenizerError, match=f"{setting} is {number}"):
        UnigramTrainer(**{setting: number})
