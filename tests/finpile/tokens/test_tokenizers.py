"""The tokenizers of other libraries: their ids, the places of their tokens, their losses, and ends of documents."""

from __future__ import annotations

import base64
import json
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from finpile.config.tokenizer import TokenizerConfig
from finpile.errors import ConfigError, InputError
from finpile.plugins.tokenizer import TOKENIZERS, TokenizerKind
from finpile.tokens.tokenizers.given import GivenTokenizer
from finpile.tokens.tokenizers.library import LibraryTokenizer, exact_spans
from finpile.tokens.tokenizers.opening import choose_end, open_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer
from tests.support.other_tokenizers import END, LOSSLESS, TEXTS, WRITERS, write_bpe
from tests.support.real_data import DATA

_WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index fund"
#: Those of `tests/support`, and plain text, of which the tokenizers are trained.
ALL = [*TEXTS, *(_WORDS[at:] + f".\nNext {at}  line" for at in range(60))]
REAL = {
    "real_gpt2": "gpt2",
    "real_neox": "gpt_neox/20B_tokenizer.json",
    "real_t5": "t5/spiece.model",
    "real_t5_json": "t5/tokenizer.json",
    "real_albert": "albert",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of each tokenizer, trained when it is first asked for."""
    made: dict[str, Path] = {}

    def find(name: str) -> Path:
        if name in REAL:
            if not (DATA / "tokenizers" / REAL[name]).exists():
                pytest.skip(f"{REAL[name]} is absent")
            return DATA / "tokenizers" / REAL[name]
        if name not in made:
            made[name] = WRITERS[name](tmp_path_factory.mktemp(name), ALL)
        return made[name]

    return find


@pytest.fixture(params=[*WRITERS, *REAL])
def opened(request: pytest.FixtureRequest, place: Callable[[str], Path]) -> tuple[str, Path, Tokenizer]:
    path = place(request.param)
    tokenizer = open_tokenizer(path)
    choose_end(tokenizer, None)
    return request.param, path, tokenizer


def library_ids(name: str, path: Path, texts: Sequence[str]) -> list[list[int]]:
    """The ids by the library alone, with the names of special tokens as ordinary text."""
    if "tiktoken" in name:
        import tiktoken
        from tiktoken_ext.openai_public import ENDOFTEXT

        rows = (line.split() for line in path.read_bytes().splitlines())
        ranks = {base64.b64decode(piece): int(rank) for piece, rank in rows}
        pattern = (
            r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|"""
            r"""\s*[\r\n]|\s+(?!\S)|\s"""
        )
        made = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={ENDOFTEXT: 100_257})
        return [made.encode_ordinary(text) for text in texts]
    if path.suffix == ".model" or (path.is_dir() and list(path.glob("*.model"))):
        from sentencepiece import SentencePieceProcessor

        file = path if path.is_file() else next(path.glob("*.model"))
        found: list[list[int]] = SentencePieceProcessor(model_file=str(file)).encode(list(texts))
        return found
    from tokenizers import ByteLevelBPETokenizer, Tokenizer

    if path.is_dir():
        names = ("vocab.json", "merges.txt") if (path / "vocab.json").exists() else ("encoder.json", "vocab.bpe")
        gpt2: Any = ByteLevelBPETokenizer.from_file(*(str(path / name) for name in names))
        return [gpt2.encode(text).ids for text in texts]
    library = Tokenizer.from_file(str(path))
    library.encode_special_tokens = True
    return [library.encode(text, add_special_tokens=False).ids for text in texts]


def test_ids_are_those_of_the_library(opened: tuple[str, Path, Tokenizer]) -> None:
    name, path, tokenizer = opened
    texts = [text for text in ALL if "</s>" not in text]
    expected = library_ids(name, path, texts)
    encoded = tokenizer.encode_array(pa.chunked_array([texts[:3], texts[3:]], pa.large_string()))
    assert encoded.to_pylist() == expected == tokenizer.encode(texts)
    assert encoded.type == pa.large_list(pa.int32())
    assert tokenizer.encode_array(pa.array(texts, pa.large_string()), num_threads=2).equals(encoded)
    assert tokenizer.vocab_size > max(max(ids, default=0) for ids in expected)
    assert tokenizer.encode_array(pa.array([], pa.large_string())).to_pylist() == []


def test_no_text_has_the_token_that_ends_documents(opened: tuple[str, Path, Tokenizer]) -> None:
    _, _, tokenizer = opened
    end = tokenizer.pieces[tokenizer.eot_id].decode()
    wide = "".join(chr(ord(sign) + 0xFEE0) for sign in end)  # a normaliser makes the name of it
    for text in (end, f"a{end}b", f" {end} {end}{end}", f"a {wide} b{wide}", *ALL):
        assert tokenizer.eot_id not in tokenizer.encode([text])[0]
        assert len(tokenizer.spans(text)) == len(tokenizer.encode([text])[0])


def folded(text: str) -> str:
    """Without what normalisers change: case, accents, compatibility, white space."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(character for character in decomposed if not unicodedata.combining(character)).strip("▁ \t\r\n")


def test_every_token_is_at_its_bytes(opened: tuple[str, Path, Tokenizer]) -> None:
    """Of a lossless tokenizer exactly. Of others, a token that is not has text that a normaliser makes it of."""
    name, _, tokenizer = opened
    assert isinstance(tokenizer, LibraryTokenizer)
    num_exact = num_tokens = 0
    for text in ALL:
        data, spans = text.encode(), tokenizer.spans(text)
        [ids] = tokenizer.encode([text])
        assert len(spans) == len(ids)
        assert (spans[:, 0] <= spans[:, 1]).all() and (spans >= 0).all() and (spans <= len(data)).all()
        assert (np.diff(spans, axis=0) >= 0).all(), "tokens are in the order of their bytes"
        for token_id, (begin, end) in zip(ids, spans.tolist(), strict=True):
            piece, num_tokens = tokenizer.pieces[token_id], num_tokens + 1
            if data[begin:end] == piece or (tokenizer.token_sizes is None and data[begin:end] == piece.strip()):
                num_exact += 1  # some normalisers leave spaces out
            elif token_id != tokenizer.unknown_id:
                shown = piece.decode(errors="replace").removeprefix("##")
                made_of = folded(data[begin:end].decode(errors="replace"))
                assert folded(shown) in made_of or "\ufffd" in shown, (name, text, piece, data[begin:end])
        if tokenizer.token_sizes is not None:
            assert np.array_equal(np.cumsum(tokenizer.token_sizes[ids]), spans[:, 1])
    assert num_exact == num_tokens if name in (*LOSSLESS, "real_gpt2") else num_exact > num_tokens / 3
    assert (tokenizer.token_sizes is not None) == (name in (*LOSSLESS, "real_gpt2"))


def test_tokens_within_a_character_are_at_their_own_bytes(place: Callable[[str], Path]) -> None:
    """Beside a character that is normalised, too: there, the library gives each of them the whole character."""
    for name in ("normalising_bpe", "sentencepiece_bytes"):
        tokenizer = open_tokenizer(place(name))
        text = "cafe\u0301 x 😀😀 日"
        data, spans = text.encode(), tokenizer.spans(text).tolist()
        pieces = [tokenizer.pieces[token_id] for token_id in tokenizer.encode([text])[0]]
        emoji = data.index("😀".encode())
        inside = [(span, piece) for span, piece in zip(spans, pieces, strict=True) if span[0] > emoji]
        assert len(inside) > 3
        assert all(data[begin:end] == piece for (begin, end), piece in inside)


def test_spaces_that_a_library_adds_have_no_bytes(place: Callable[[str], Path]) -> None:
    """Before a text and, with GPT-NeoX's rules, after an added token such as one of two spaces."""
    tokenizer = open_tokenizer(place("normalising_bpe"))
    text = "日 \u3000  日"
    pieces = [tokenizer.pieces[token_id] for token_id in tokenizer.encode([text])[0]]
    spans = tokenizer.spans(text).tolist()
    assert [span for span, piece in zip(spans, pieces, strict=True) if piece == b" "] == [[0, 0], [3, 4], [9, 9]]
    assert b"".join(text.encode()[begin:end] for begin, end in spans) == text.encode()


def test_exact_spans_keep_what_they_cannot_place() -> None:
    data = "½é".encode()
    given = np.array([[0, 2], [0, 2], [2, 4], [2, 4]])
    assert exact_spans(data, [b"1", b"2", b"\xc3", b"\xa9"], given).tolist() == [[0, 2], [0, 2], [2, 3], [3, 4]]
    given = np.array([[0, 0], [0, 2], [2, 4]])
    assert exact_spans(data, [b"\xc2", b"\xbd", b"e"], given).tolist() == [[0, 1], [1, 2], [2, 4]]


def test_losses_are_those_of_decoding_every_text(opened: tuple[str, Path, Tokenizer]) -> None:
    name, _, tokenizer = opened
    assert isinstance(tokenizer, LibraryTokenizer)
    texts = pa.array(ALL, pa.large_string())
    encoded = tokenizer.encode_array(texts)
    lost = tokenizer.losses(texts, encoded)
    altered = sum(tokenizer.decode(ids) != text.encode() for ids, text in zip(encoded.to_pylist(), ALL, strict=True))
    unknown = sum(ids.count(tokenizer.unknown_id) for ids in encoded.to_pylist())
    assert (lost.num_altered, lost.num_unknown) == (altered, unknown)
    assert (altered == 0) == (name in (*LOSSLESS, "real_gpt2", "sentencepiece_bytes"))


def given(path: Path, **settings: Any) -> GivenTokenizer:
    return GivenTokenizer.of_config(TokenizerConfig(use=str(path), **settings), "/")


def test_the_record_changes_with_the_files_and_not_with_their_place(
    place: Callable[[str], Path], tmp_path: Path
) -> None:
    first = given(place("bpe"))
    copy = tmp_path / "other.json"
    shutil.copyfile(place("bpe"), copy)
    assert given(copy) == first
    copy.write_text(copy.read_text() + "\n")
    assert given(copy).record != first.record
    first.write(str(tmp_path / "tokenizer"))
    assert GivenTokenizer.of_folder(str(tmp_path / "tokenizer")) == first
    again = open_tokenizer(tmp_path / "tokenizer")
    assert again.encode(ALL) == open_tokenizer(place("bpe")).encode(ALL)
    assert again.eot_id == first.record.eot_id


def test_the_end_of_documents_is_a_special_token(place: Callable[[str], Path], tmp_path: Path) -> None:
    assert given(place("wordpiece")).record.end_of_document == "[SEP]"
    assert given(place("unigram"), end_of_document="<pad>").record.eot_id == 0
    with pytest.raises(ConfigError, match=r"no token 'END': expected one of the special tokens \(<\|endoftext\|>\)"):
        given(place("bpe"), end_of_document="END")
    with pytest.raises(ConfigError, match="'e' is also a token of ordinary text"):
        given(place("bpe"), end_of_document="e")
    settings = json.loads(write_bpe(tmp_path, ALL).read_text())
    settings["added_tokens"][0]["content"] = "<stop>"
    settings["model"]["vocab"]["<stop>"] = settings["model"]["vocab"].pop(END)
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    with pytest.raises(ConfigError, match=r"no token ends documents: name one of the special tokens \(<stop>\)"):
        given(tmp_path)
    assert given(tmp_path, end_of_document="<stop>").record.end_of_document == "<stop>"


def test_no_text_ends_a_document_whatever_its_normaliser_removes(place: Callable[[str], Path]) -> None:
    """A Unigram model has `</s>` as a piece, and the library's place of it is too early by each removed character."""
    tokenizer = open_tokenizer(place("real_t5_json"))
    assert choose_end(tokenizer, None) == "</s>"
    for text in ("\x7f</s>", "Oil \x7f\x7f\x1f</s> rose\x7f</s></s>", "<\x7f/s>", "\x1f\x7f\x1f\x7f\x1f</s>"):
        [ids] = tokenizer.encode([text])
        assert tokenizer.eot_id not in ids
        assert len(tokenizer.spans(text)) == len(ids)


def test_dropout_of_merges_is_off(tmp_path: Path) -> None:
    settings = json.loads(write_bpe(tmp_path, ALL).read_text())
    expected = open_tokenizer(tmp_path).encode(ALL)
    settings["model"]["dropout"] = 0.5
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    assert open_tokenizer(tmp_path).encode(ALL) == expected


def test_a_tokenizer_without_a_decoder_is_not_lossless(tmp_path: Path) -> None:
    settings = json.loads(write_bpe(tmp_path, ALL).read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**settings, "decoder": None}))
    tokenizer, text = open_tokenizer(tmp_path), "Oil in Zürich."
    assert tokenizer.lossless is None
    assert tokenizer.token_sizes is None
    [ids] = tokenizer.encode([text])
    assert [text.encode()[begin:end] for begin, end in tokenizer.spans(text)] == [
        open_tokenizer(write_bpe(tmp_path, ALL)).pieces[token_id] for token_id in ids
    ]


def test_spaces_between_decoded_pieces_are_a_loss(place: Callable[[str], Path], tmp_path: Path) -> None:
    """Also where the pieces spell the text: without a decoder, and with that of WordPiece."""
    settings = json.loads(write_bpe(tmp_path, ALL).read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps({**settings, "decoder": None}))
    texts = pa.array(["shares", "12.5%"], pa.large_string())
    for tokenizer in (open_tokenizer(tmp_path), open_tokenizer(place("wordpiece"))):
        encoded = tokenizer.encode_array(texts)
        assert tokenizer.decode(encoded[1].as_py()) != b"12.5%"
        assert tokenizer.losses(texts, encoded).num_altered == 1


def test_files_that_cannot_be_used_are_named(place: Callable[[str], Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="none is not there"):
        given(tmp_path / "none")
    ranks = tmp_path / "mine.tiktoken"
    shutil.copyfile(place("tiktoken"), ranks)
    with pytest.raises(InputError, match=r"give `tokenizer\.pattern`"):
        given(ranks)
    assert given(ranks, pattern="r50k_base").record.eot_id == 50_256
    assert given(ranks, pattern=r"\w+|\W").record.pattern == r"\w+|\W"
    with pytest.raises(InputError, match="does not read it with pattern"):
        given(ranks, pattern="(")
    with pytest.raises(ConfigError, match=r"tokenizer\.pattern: tokenizer\.json has a pattern of its own"):
        given(place("bpe"), pattern="r50k_base")
    ranks.write_bytes(b"YQ== 0\n")
    with pytest.raises(InputError, match="has no piece for the byte 0"):
        given(ranks, pattern="r50k_base")


def test_keys_of_a_training_and_of_a_use_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab_size is of a training"):
        TokenizerConfig(use="x", vocab_size=300)
    with pytest.raises(ConfigError, match=r"tokenizer\.pattern is of a tokenizer that is used"):
        TokenizerConfig(pattern="x")


def test_another_kind_is_one_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.txt").write_text("a b c")
    kind = TokenizerKind(
        name="words",
        looked_for="words.txt",
        find=lambda path: [path / "words.txt"] if (path / "words.txt").is_file() else (),
        open=lambda files, name, pattern: (name, files[0].read_text()),
    )
    monkeypatch.setattr(TOKENIZERS, "_loaded", {})
    TOKENIZERS.register(kind)
    assert open_tokenizer(tmp_path, "mine") == ("mine", "a b c")  # type: ignore[comparison-overlap]
