"""Tokenizers of other papers: each property that its paper states."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.errors import ConfigError, InputError
from finpile.tokens.paper_tokenizers import (
    GPT_NEOX_VOCAB_SIZE,
    LONGEST_RUN,
    PALM_VOCAB_SIZE,
    Like,
    train_gpt_neox,
    train_like,
    train_palm,
)

#: Words with many parts in common, so that the vocabularies can be filled.
WORDS = [
    hashlib.sha256(b"%d" % n).hexdigest()[:9].translate(str.maketrans("0123456789", "ghijklmnop")) for n in range(400)
]
TEXTS = [
    f"Net interest income rose {n % 37}.{n % 10}% in the quarter.\n    def rate(x):\n        return x\n\n"
    f"Die Bank Zürich, {n % 13} Filialen; 中文 and caf\u00e9, cafe\u0301 {'x' * (n % 7)} {word} {word[3:]}"
    for n, word in enumerate(WORDS)
]
anything = st.text(st.one_of(st.sampled_from([*" \t\n\rabZürich019.,中é\u0301\u00a0"]), st.characters(codec="utf-8")))


@pytest.fixture(scope="module")
def neox() -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(train_gpt_neox(TEXTS, 600).decode())
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture(scope="module")
def palm() -> Any:
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_proto=train_palm(TEXTS, 500))


# --- GPT-NeoX-20B, §3.2 --------------------------------------------------------------------------------------------


def test_neox_has_as_many_entries_as_gpt2_and_no_more_than_asked_for(neox: Any) -> None:
    assert GPT_NEOX_VOCAB_SIZE == 50257
    assert neox.get_vocab_size() == 600
    assert neox.token_to_id("<|endoftext|>") == 599


def test_neox_has_a_token_for_each_byte(neox: Any) -> None:
    from finpile_tokenizer.export import byte_alphabet

    assert set(byte_alphabet().values()) <= set(neox.get_vocab())


@pytest.mark.parametrize("size", range(1, LONGEST_RUN + 1))
def test_neox_has_a_token_for_each_run_of_spaces(neox: Any, size: int) -> None:
    assert [token for token in neox.encode(f"x{' ' * size}\ty").tokens[1:] if "Ġ" in token] == ["Ġ" * size]


@given(st.sampled_from(["Net", "interest", "Zürich", "中文", "def", "unknown", "12"]))
def test_neox_encodes_a_word_at_the_start_as_after_a_space(neox: Any, word: str) -> None:
    first, second = neox.encode(word).tokens, neox.encode(f"x {word}").tokens
    assert second[-len(first) :] == first
    assert first[0].startswith("Ġ")


@given(anything)
def test_neox_decodes_every_text(neox: Any, text: str) -> None:
    assert neox.decode(neox.encode(text).ids) == text


# --- PaLM ----------------------------------------------------------------------------------------------------------


def test_palm_has_256_000_entries_by_default() -> None:
    assert PALM_VOCAB_SIZE == 256_000


def test_palm_has_a_token_for_each_byte(palm: Any) -> None:
    assert sum(palm.is_byte(token) for token in range(palm.get_piece_size())) == 256
    assert palm.get_piece_size() == 500


@given(anything.filter(lambda text: "▁" not in text and "\x00" not in text))
def test_palm_decodes_every_text(palm: Any, text: str) -> None:
    assert palm.decode(palm.encode(text)) == text


@given(st.text(st.sampled_from("0123456789.,% a")))
def test_palm_splits_numbers_into_digits(palm: Any, text: str) -> None:
    pieces = palm.encode(text, out_type=str)
    digits = [piece for piece in pieces if any(sign.isdigit() for sign in piece)]
    assert digits == [sign for sign in text if sign.isdigit()]


def test_palm_keeps_white_space_in_its_vocabulary(palm: Any) -> None:
    assert palm.encode("return x", out_type=str) != palm.encode("return  x", out_type=str)
    assert palm.unk_id() not in palm.encode(" \t\n\r 𝄞 中文")


@given(st.characters(codec="utf-8", exclude_categories=["Cs"], min_codepoint=0x10000))
def test_palm_splits_unknown_characters_into_bytes(palm: Any, sign: str) -> None:
    assert palm.encode(sign, out_type=str) == [f"<0x{byte:02X}>" for byte in sign.encode()]


# --- both ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("train", [train_gpt_neox, train_palm])
def test_same_texts_give_the_same_bytes(train: Any) -> None:
    assert train(TEXTS, 500) == train(iter(TEXTS), 500)


@pytest.mark.parametrize("train", [train_gpt_neox, train_palm])
def test_no_text_is_an_error(train: Any) -> None:
    with pytest.raises(InputError, match="no text"):
        train(["", ""], 500)


@pytest.mark.parametrize("like", ["gpt-neox", "palm"])
def test_a_folder_is_trained_once_and_not_overwritten_by_other_texts(tmp_path: Path, like: Like) -> None:
    from finpile.tokens.tokenizers.opening import open_tokenizer

    out = str(tmp_path / "made")
    record, file, ran = train_like(like, lambda: TEXTS, out, 500)
    content = Path(file).read_bytes()
    assert (ran, record.vocab_size, record.num_docs) == (True, 500, len(TEXTS))
    assert open_tokenizer(out).vocab_size == 500
    assert train_like(like, lambda: TEXTS, out, 500) == (record, file, False)
    assert train_like(like, lambda: TEXTS, out, 500, fresh=True) == (record, file, True)
    assert Path(file).read_bytes() == content
    with pytest.raises(ConfigError, match="--replace"):
        train_like(like, lambda: TEXTS[1:], out, 500)
    other, _, _ = train_like(like, lambda: TEXTS[1:], out, 500, replace=True)
    assert other.num_docs == len(TEXTS) - 1
    (tmp_path / "made" / "notes.txt").write_text("x")
    with pytest.raises(ConfigError, match="name another folder"):
        train_like(like, lambda: TEXTS, out, 500)


@pytest.mark.parametrize("content", ["", "{", "[]", "5", "{}", '{"like": "palm"}', "[" * 9000])
def test_a_damaged_record_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "paper.json").write_text(content)
    with pytest.raises(InputError, match=r"paper\.json is damaged .* delete it"):
        train_like("palm", lambda: TEXTS, str(tmp_path), 500)


def test_a_killed_training_is_continued_by_the_same_call(tmp_path: Path) -> None:
    out = str(tmp_path / "made")
    record, file, _ = train_like("gpt-neox", lambda: TEXTS, out, 500)
    (tmp_path / "made" / "paper.json").unlink()
    assert train_like("gpt-neox", lambda: TEXTS, out, 500) == (record, file, True)
