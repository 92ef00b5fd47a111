"""The whole tokenizer: lossless, deterministic, and equal to HF tokenizers."""

from __future__ import annotations

import io
import json
import pickle
import random
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_tokenizer import (
    END_OF_TEXT,
    FormatError,
    InputTypeError,
    TokenizerError,
    UnigramModel,
    UnigramTokenizer,
    UnigramTrainer,
    compile_kernels,
    count_pretokens,
    merge,
    prune_to,
)
from finpile_tokenizer.arrays.jit import Compiled
from finpile_tokenizer.encoding import _automaton_kernels, _encoder_kernels
from finpile_tokenizer.export import byte_alphabet, tokenizer_json
from finpile_tokenizer.pretokens import _pretoken_kernels
from finpile_tokenizer.trie import _double_array_kernels
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.real_data import find
from tests.support.references import unigram as reference
from tests.tokenizer.conftest import CORPORA

SAMPLE_BYTES = 150_000
WORDS = "net interest income rose fell in the quarter, as Oil prices; and bond 2.5 %"
TEXT = "Net interest income rose 3.25% (2022: 14%)\n\tin the quarter — “naïve” 日本 \U0001f4c8\r\n" * 4
TEXT += " ".join(random.Random(7).choices(WORDS.split(), k=900))


def small_tokenizer(vocab_size: int = 600) -> UnigramTokenizer:
    model = UnigramTrainer(vocab_size=vocab_size).train(count_pretokens(pa.array([TEXT])))
    return UnigramTokenizer(prune_to(merge([model]), vocab_size))


TOKENIZER = small_tokenizer()


@cache
def peer() -> Any:
    """The same tokenizer in HF tokenizers; skips the test if these are not installed."""
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.Tokenizer.from_str(tokenizer_json(TOKENIZER.vocabulary).decode())


def read_corpus(name: str, max_bytes: int) -> list[str]:
    """Texts from the middle of the archive, up to `max_bytes`; texts that are not UTF-8 are read as Latin-1."""
    path = find(CORPORA[name])
    raw = path.read_bytes()
    if path.suffix == ".zst":
        raw = pytest.importorskip("zstandard").ZstdDecompressor().stream_reader(io.BytesIO(raw)).read()
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        members = [member for member in archive if member.isfile()]
        texts: list[str] = []
        size = 0
        for member in members[len(members) // 2 :] + members[: len(members) // 2]:
            content = archive.extractfile(member).read()[: max(0, max_bytes - size)]  # type: ignore[union-attr]
            size += len(content)
            texts.append(_as_text(content))
            if size >= max_bytes:
                break
    return texts


def _as_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("latin-1")


def corpus_tokenizer() -> UnigramTokenizer:
    models = [
        UnigramTrainer(vocab_size=2000).train(count_pretokens(pa.array(read_corpus(name, SAMPLE_BYTES // 2))))
        for name in CORPORA
    ]
    return UnigramTokenizer(prune_to(merge(models), 5000))


@pytest.fixture(scope="module")
def trained() -> UnigramTokenizer:
    return corpus_tokenizer()


def hugging_face(tokenizer: UnigramTokenizer, folder: Path) -> Any:
    tokenizer.save(folder)
    return pytest.importorskip("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))


def assert_same_ids(tokenizer: UnigramTokenizer, peer: Any, texts: list[str]) -> None:
    texts = [text.replace(END_OF_TEXT, "") for text in texts]
    for text, ids in zip(texts, tokenizer.encode_array(pa.array(texts)), strict=True):
        # Lists of ids are compared as arrays: pytest's report of two long unequal lists takes minutes.
        assert np.array_equal(ids.values.to_numpy(), np.array(peer.encode(text).ids)), text[:60]


@settings(deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)))
def test_decode_inverts_encode(text: bytes) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@settings(deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=40), st.text("aet 12.é", max_size=40).map(str.encode)), max_size=8))
def test_an_array_is_encoded_text_by_text(texts: list[bytes]) -> None:
    array = pa.array([b"before", *texts, b"after"], pa.large_binary()).slice(1, len(texts))
    encoded = TOKENIZER.encode_array(array)
    encoded.validate(full=True)
    assert encoded.to_pylist() == [TOKENIZER.encode(text) for text in texts]
    assert TOKENIZER.count_tokens(array).tolist() == [len(TOKENIZER.encode(text)) for text in texts]


def test_ids_are_those_of_the_reference() -> None:
    vocabulary = TOKENIZER.vocabulary
    scores = dict(zip(vocabulary.pieces.to_pylist(), vocabulary.log_probs.tolist(), strict=True))
    text = TEXT.encode() + bytes(range(256))
    assert [TOKENIZER.decode([token]) for token in TOKENIZER.encode(text)] == reference.encode(text, scores)


@pytest.mark.parametrize("name", CORPORA)
def test_ids_equal_those_of_hugging_face_on_real_text(name: str, trained: UnigramTokenizer, tmp_path: Path) -> None:
    assert_same_ids(trained, hugging_face(trained, tmp_path), read_corpus(name, SAMPLE_BYTES))


@pytest.mark.slow
@pytest.mark.parametrize("name", CORPORA)
def test_ids_equal_those_of_hugging_face_on_whole_corpora(name: str, trained: UnigramTokenizer, tmp_path: Path) -> None:
    assert_same_ids(trained, hugging_face(trained, tmp_path), read_corpus(name, 1 << 40))


@settings(deadline=None)
@given(st.text(max_size=60))
def test_ids_equal_those_of_hugging_face_on_any_unicode(text: str) -> None:
    assert TOKENIZER.encode(text) == peer().encode(text).ids
    assert peer().decode(peer().encode(text).ids) == text


def test_hugging_face_encodes_a_spelled_special_token_as_its_id() -> None:
    text = f"a{END_OF_TEXT}b"
    assert peer().encode(text).ids == [*TOKENIZER.encode("a"), TOKENIZER.eot_id, *TOKENIZER.encode("b")]
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text.encode()
    assert TOKENIZER.eot_id not in TOKENIZER.encode(text)
    assert peer().token_to_id(END_OF_TEXT) == TOKENIZER.eot_id == TOKENIZER.vocab_size - 1
    assert peer().get_vocab_size() == TOKENIZER.vocab_size


def test_ids_do_not_depend_on_threads_or_chunks() -> None:
    texts = [TEXT[i:] * 30 for i in range(64)]
    array = pa.array(texts)
    alone = TOKENIZER.encode_array(array)
    assert alone.equals(TOKENIZER.encode_array(array, num_threads=3))
    assert alone.equals(TOKENIZER.encode_array(pa.chunked_array([array[:11], array[11:11], array[11:]])))
    assert TOKENIZER.count_tokens(array, num_threads=3).tolist() == np.diff(alone.offsets.to_numpy()).tolist()


@pytest.mark.parametrize("texts", [pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.array([""])])
def test_empty_text_encodes_to_no_ids(texts: pa.Array) -> None:
    assert TOKENIZER.encode_array(texts).to_pylist() == [[] for _ in texts]
    assert TOKENIZER.encode("") == []
    assert TOKENIZER.decode([]) == b""


def test_saving_gives_the_same_bytes_and_loading_the_same_tokenizer(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "a")
    UnigramTokenizer.load(tmp_path / "a").save(tmp_path / "b")
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["tokenizer.json", "tokenizer_config.json", "vocabulary.parquet"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    alone = UnigramTokenizer.load(tmp_path / "a" / "tokenizer.json")
    assert alone.encode(TEXT) == TOKENIZER.encode(TEXT)
    assert alone.vocabulary.log_probs.tolist() == TOKENIZER.vocabulary.log_probs.tolist()


def test_the_vocabulary_table_has_the_origin_of_each_piece(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path)
    rows = pq.read_table(tmp_path / "vocabulary.parquet").to_pylist()
    assert [row["id"] for row in rows] == list(range(TOKENIZER.vocab_size))
    assert (rows[ord("e")]["origin"], rows[ord("e")]["num_models"]) == ("learned", 1)
    assert (rows[0]["piece"], rows[0]["origin"]) == (b"\x00", "added_byte")
    assert (rows[-1]["piece"], rows[-1]["origin"]) == (END_OF_TEXT.encode(), "special")


def test_the_byte_alphabet_is_that_of_hugging_face() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    assert sorted(byte_alphabet().values()) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    for text in (bytes(range(128)).decode(), "é日\U0001f4c8"):
        assert level.pre_tokenize_str(text)[0][0] == "".join(byte_alphabet()[byte] for byte in text.encode())


def test_a_tokenizer_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(TOKENIZER)).encode(TEXT) == TOKENIZER.encode(TEXT)


@pytest.mark.parametrize(
    "change",
    [
        lambda parsed: parsed["model"].update(type="BPE"),
        lambda parsed: parsed["added_tokens"].clear(),
        lambda parsed: parsed["model"]["vocab"].pop(3),
        lambda parsed: parsed["model"]["vocab"].__setitem__(260, ["日", -1.0]),
        lambda parsed: parsed["model"]["vocab"].__setitem__(260, "ab"),
        lambda parsed: parsed["model"]["vocab"].__setitem__(260, [[], -1.0]),
        lambda parsed: parsed["model"]["vocab"].__setitem__(260, ["a", "b"]),
        lambda parsed: parsed.update(normalizer={"type": "NFC"}),
        lambda parsed: parsed.pop("model"),
    ],
)
def test_a_foreign_tokenizer_file_is_refused(change: object, tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    parsed = json.loads(path.read_bytes())
    change(parsed)  # type: ignore[operator]
    path.write_text(json.dumps(parsed))
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        UnigramTokenizer.load(path)


def test_an_outdated_vocabulary_table_is_refused(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path)
    small_tokenizer(330).save(tmp_path / "other")
    (tmp_path / "other" / "vocabulary.parquet").replace(tmp_path / "vocabulary.parquet")
    with pytest.raises(FormatError, match="out of date"):
        UnigramTokenizer.load(tmp_path)


@pytest.mark.parametrize("size", [0, 12, -1])
def test_a_vocabulary_table_cut_short_is_refused(tmp_path: Path, size: int) -> None:
    TOKENIZER.save(tmp_path)
    table = tmp_path / "vocabulary.parquet"
    table.write_bytes(table.read_bytes()[:size])
    with pytest.raises(FormatError, match=r"vocabulary\.parquet is damaged"):
        UnigramTokenizer.load(tmp_path)


def test_a_missing_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no tokenizer at"):
        UnigramTokenizer.load(tmp_path)


@pytest.mark.parametrize("ids", [[-1], [0, 10**9]])
def test_unknown_ids_are_refused(ids: list[int]) -> None:
    with pytest.raises(TokenizerError, match="there is no id"):
        TOKENIZER.decode(ids)


def test_texts_that_cannot_be_encoded_are_refused() -> None:
    with pytest.raises(TokenizerError, match="not Unicode text"):
        TOKENIZER.encode("\ud800")
    with pytest.raises(InputTypeError):
        TOKENIZER.encode_array(pa.array([None, "a"]))
    with pytest.raises(TokenizerError, match="num_threads"):
        TOKENIZER.encode_array(pa.array(["a"]), num_threads=0)


def test_a_vocabulary_without_all_bytes_is_refused() -> None:
    vocabulary = prune_to(
        UnigramModel(
            pieces=pa.array([b"a"], pa.large_binary()),
            log_probs=np.zeros(1),
            num_models=np.ones(1, np.int64),
            num_bytes=1,
        ),
        257,
    )
    object.__setattr__(vocabulary, "pieces", vocabulary.pieces[1:])
    object.__setattr__(vocabulary, "log_probs", vocabulary.log_probs[1:])
    with pytest.raises(TokenizerError, match="must hold all 256"):
        UnigramTokenizer(vocabulary)


def test_no_kernel_is_compiled_after_the_warm_up() -> None:
    compile_kernels()
    for kind in (pa.string(), pa.large_string(), pa.binary()):
        texts = pa.array([TEXT, "", "12"], kind)
        count_pretokens(pa.chunked_array([texts, texts])).merge([count_pretokens(texts[1:])])
        TOKENIZER.encode_array(texts)
        pickle.loads(pickle.dumps(TOKENIZER)).count_tokens(texts[:0])
    everything = {
        **vars(_pretoken_kernels),
        **vars(_double_array_kernels),
        **vars(_automaton_kernels),
        **vars(_encoder_kernels),
    }
    num_signatures = {
        name: len(value.dispatcher.signatures)
        for name, value in everything.items()
        if isinstance(value, Compiled) and not value.is_inner
    }
    assert {"count_pretokens", "encode_documents", "fill_nodes", "pack_units"} <= set(num_signatures)
    assert num_signatures == dict.fromkeys(num_signatures, 1)
