"""The tokenizer in transformers and HF tokenizers: loading, padding, and the treatment of `<|endoftext|>`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from finpile_tokenizer import TokenizerError, UnigramTokenizer
from finpile_tokenizer.export import CONFIG_FILE, TOKENIZER_FILE, read_tokenizer, write_for_transformers

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

#: Texts that spell the special token: alone, within, doubled, cut, and beside white space.
TEXTS = [
    "<|endoftext|>",
    "Oil<|endoftext|> rose.",
    "<|endoftext|><|endoftext|>a",
    "<|endoftext|",
    " <|endoftext|> \n",
    "",
]
PAD = "<|pad|>"


@pytest.fixture(scope="module")
def ours(sample_build: Path) -> UnigramTokenizer:
    return UnigramTokenizer.load(sample_build / "tokenizer")


def load(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(str(folder))


def exported(folder: Path, ours: UnigramTokenizer, **options: Any) -> Any:
    write_for_transformers(folder, ours.vocabulary, **options)
    return load(folder)


def test_folder_of_a_build_loads_as_it_is(sample_build: Path, ours: UnigramTokenizer) -> None:
    theirs = load(sample_build / "tokenizer")
    assert (len(theirs), theirs.eos_token_id, theirs.pad_token) == (ours.vocab_size, ours.eot_id, None)
    assert theirs("Net income rose 12%.")["input_ids"] == ours.encode("Net income rose 12%.")
    assert theirs.decode(ours.encode("Net income rose 12%.")) == "Net income rose 12%."


@pytest.mark.parametrize("text", TEXTS)
def test_special_token_in_a_text_is_encoded_as_configured(tmp_path: Path, ours: UnigramTokenizer, text: str) -> None:
    for special in ("text", "control"):
        theirs = exported(tmp_path / special, ours, special=special)
        assert theirs(text)["input_ids"] == ours.encode(text, special=special)  # type: ignore[arg-type]
    peer = tokenizers.Tokenizer.from_file(str(tmp_path / "control" / TOKENIZER_FILE))
    assert peer.encode(text).ids == ours.encode(text, special="control")
    peer.encode_special_tokens = True
    assert peer.encode(text).ids == ours.encode(text, special="text") == ours.encode(text)


@pytest.mark.parametrize("text", TEXTS)
def test_special_token_in_a_text_is_text_by_default(ours: UnigramTokenizer, text: str) -> None:
    assert ours.eot_id not in ours.encode(text)
    assert ours.encode(text, special="control").count(ours.eot_id) == text.count("<|endoftext|>")
    assert ours.decode(ours.encode(text, special="control")) == text.encode()


def test_other_choice_is_refused(ours: UnigramTokenizer) -> None:
    with pytest.raises(TokenizerError, match="expected one of text, control"):
        ours.encode("a", special="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(("pad_token", "num_more"), [(PAD, 1), ("<|endoftext|>", 0)])
def test_pad_token_pads(tmp_path: Path, ours: UnigramTokenizer, pad_token: str, num_more: int) -> None:
    theirs = exported(tmp_path, ours, pad_token=pad_token, model_max_length=64)
    assert (theirs.pad_token, theirs.model_max_length) == (pad_token, 64)
    assert len(theirs) == ours.vocab_size + num_more
    assert theirs.pad_token_id == ours.eot_id + num_more
    short, long = theirs(["Oil", "Oil rose by a tenth."], padding=True)["input_ids"]
    assert short == ours.encode("Oil") + [theirs.pad_token_id] * (len(long) - len(ours.encode("Oil")))
    assert len(theirs("Oil " * 200, truncation=True)["input_ids"]) == 64
    assert theirs.decode(short, skip_special_tokens=True) == "Oil"


def test_default_files_equal_those_of_the_build(tmp_path: Path, ours: UnigramTokenizer, sample_build: Path) -> None:
    write_for_transformers(tmp_path, ours.vocabulary)
    for name in (TOKENIZER_FILE, CONFIG_FILE):
        assert (tmp_path / name).read_bytes() == (sample_build / "tokenizer" / name).read_bytes()
    assert read_tokenizer(tmp_path).vocab_size == ours.vocab_size


@pytest.mark.parametrize("pad_token", ["", "a", " the"])
def test_pad_token_that_is_text_is_refused(tmp_path: Path, ours: UnigramTokenizer, pad_token: str) -> None:
    with pytest.raises(TokenizerError, match="choose another"):
        write_for_transformers(tmp_path, ours.vocabulary, pad_token=pad_token)
    assert not (tmp_path / TOKENIZER_FILE).exists()


def test_config_records_the_options(tmp_path: Path, ours: UnigramTokenizer) -> None:
    write_for_transformers(tmp_path, ours.vocabulary, special="text", model_max_length=8)
    said = json.loads((tmp_path / CONFIG_FILE).read_text())
    assert (said["split_special_tokens"], said["model_max_length"]) == (True, 8)
    assert "pad_token" not in said
