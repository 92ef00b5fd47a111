"""The encoders of other tokenizers in the pages have the ids of their libraries, for any text."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path

import pytest
from finpile_tokenizer import UnigramTokenizer
from tokenizers import AddedToken, Tokenizer, models, normalizers

from benchmarks.common.browser import Browser
from finpile import open_documents
from finpile.errors import InputError
from finpile.explorer import write_explorer
from finpile.explorer.beside import beside
from finpile.tokens.tokenizers.opening import open_tokenizer
from tests.finpile.explorer.test_tokenizer_page import texts_of
from tests.support.other_tokenizers import byte_level_bpe
from tests.support.real_data import DATA, needs


def ids_of(browser: Browser, page: str, texts: list[str]) -> list[list[list[int]]]:
    """For each text, the ids of each encoder of the page."""
    browser.open(f"{page}#/tokenizer")
    browser.wait("document.querySelector('#text') !== null && document.querySelectorAll('.ids').length === 3")
    found: list[list[str]] = []
    for start in range(0, len(texts), 100):  # an answer is waited for some seconds only
        found += browser.run(
            "(() => { const area = document.querySelector('#text');"
            f"return {json.dumps(texts[start : start + 100])}.map((text) => {{"
            "area.value = text; area.dispatchEvent(new Event('input'));"
            "return [...document.querySelectorAll('.ids')].map((ids) => ids.textContent); }); })()"
        )
    return [[[int(name) for name in ids.split()] for ids in shown] for shown in found]


def same_normal_form(browser: Browser, texts: list[str]) -> list[str]:
    """The texts without those that have combining signs of a Unicode that the browser or the library does not have."""
    forms = browser.run(f"{json.dumps(texts)}.map((text) => text.normalize('NFC'))")
    same = [text for text, form in zip(texts, forms, strict=True) if form == normalizers.NFC().normalize_str(text)]
    assert len(same) >= 0.99 * len(texts)
    return same


def check_ids(browser: Browser, folder: Path, explored: Path, others: list[Path]) -> None:
    """The three encoders of the pages of the build give the ids of the libraries."""
    out = folder / "out"
    shutil.copytree(explored, out, ignore=shutil.ignore_patterns("explorer"))
    write_explorer(str(out), tokenizers=[str(path) for path in others])
    page = (out / "explorer" / "index.html").as_uri()
    texts = same_normal_form(browser, [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts_of(explored)])
    found = ids_of(browser, page, texts)
    own = UnigramTokenizer.load(out / "tokenizer")
    assert [shown[0] for shown in found] == [own.encode(text) for text in texts]
    for number, path in enumerate(others, 1):
        assert [shown[number] for shown in found] == open_tokenizer(path).encode(texts)


def test_ids_are_those_of_tokenizers_for_texts_of_all_scripts(browser: Browser, explored: Path, tmp_path: Path) -> None:
    texts = open_documents(str(explored)).to_table()["text"].to_pylist()
    for name, nfc in (("plain", False), ("normalised", True)):
        tokenizer = byte_level_bpe(texts[:100], 2000)
        if nfc:  # as GPT-NeoX has it: normalised, with runs of spaces as tokens
            tokenizer.normalizer = normalizers.NFC()
            tokenizer.add_tokens([AddedToken(" " * size, normalized=True) for size in range(24, 1, -1)])
        tokenizer.save(str(tmp_path / f"{name}.json"))
    composed = [text for text in texts_of(explored) if unicodedata.normalize("NFC", text) != text]
    assert composed
    check_ids(browser, tmp_path, explored, [tmp_path / "plain.json", tmp_path / "normalised.json"])


@needs("tokenizers/gpt2/encoder.json")
@needs("tokenizers/gpt_neox/20B_tokenizer.json")
def test_ids_are_those_of_gpt2_and_neox(browser: Browser, explored: Path, tmp_path: Path) -> None:
    folder = DATA / "tokenizers"
    check_ids(browser, tmp_path, explored, [folder / "gpt2", folder / "gpt_neox" / "20B_tokenizer.json"])


def test_a_tokenizer_of_finpile_encodes_beside_another(explored: Path) -> None:
    (found,) = beside([str(explored / "tokenizer")])
    own = UnigramTokenizer.load(explored / "tokenizer")
    assert found["kind"] == "unigram"
    assert found["log_probs"] == own.vocabulary.log_probs.tolist()


def test_a_kind_that_the_pages_lack_is_named(tmp_path: Path) -> None:
    tokenizer = byte_level_bpe(["some text"], 300)
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save(str(tmp_path / "lower.json"))
    with pytest.raises(InputError, match="the normaliser Lowercase; name one of"):
        beside([str(tmp_path / "lower.json")])
    words = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    words.save(str(tmp_path / "words.json"))
    with pytest.raises(InputError, match="the model WordPiece"):
        beside([str(tmp_path / "words.json")])
