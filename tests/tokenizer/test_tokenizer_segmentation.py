"""Likelihood, n-best, sampling and offsets, against all segmentations of short texts and against peers."""

from __future__ import annotations

import io
import itertools
import math
import random
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import TokenizerError, UnigramTokenizer, Vocabulary, compile_kernels
from finpile_tokenizer.arrays import document_ranges
from finpile_tokenizer.arrays.jit import Compiled
from finpile_tokenizer.encoding import _offset_kernels
from finpile_tokenizer.export import tokenizer_json
from finpile_tokenizer.segmentations import _distinct_kernels, _nbest_kernels, _segmentation_kernels, nbest
from finpile_tokenizer.trie import _hashed_kernels
from finpile_tokenizer.trie.hashed import build_piece_index
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.references import segmentations as brute_force
from tests.support.references import unigram as reference

LAST_RESORT = -9.0
LETTERS = st.text("ab", max_size=9).map(str.encode)
TEXTS = st.text("ab 1.", max_size=9).map(str.encode)
#: Integer costs produce many ties. Sums of sixteenths are exact; sums of thirds are rounded.
COSTS = st.one_of(st.integers(1, 12), st.integers(1, 200).map(lambda third: third / 3))
PIECES = st.dictionaries(st.text("ab .", min_size=1, max_size=5).map(str.encode), COSTS, max_size=12)
SMALL = {b"a": -1.0, b"b": -1.5, b"ab": -2.0, b"ba": -2.25, b"aba": -3.0, b"aab": -2.5}

WORDS = [b"a", b"in", b"come", b"income", b" income", b"come ", b"net ", b" rose", b"ro", b"se ", b"nt", b"ne", b"t in"]
MORE_PIECES = [
    *WORDS,
    "é".encode(),
    "日本".encode(),
    "日".encode(),
    b"\x97\xa5",
    b"\xc3\xa9\xe6",
    b"\n\n",
    b"..",
    b", ",
]
MORE_PIECES += [b"a" * length for length in range(2, 17)]


def tokenizer_of(scores: Mapping[bytes, float]) -> UnigramTokenizer:
    """The tokenizer of these pieces; all other bytes have a very low score."""
    pieces = [bytes([value]) for value in range(256)] + [piece for piece in scores if len(piece) > 1]
    return UnigramTokenizer(
        Vocabulary(
            pieces=pa.array(pieces, pa.large_binary()),
            log_probs=np.array([scores.get(piece, LAST_RESORT) for piece in pieces]),
            num_models=None,
            num_requested=len(pieces) + 1,
        )
    )


def scores_of(tokenizer: UnigramTokenizer) -> dict[bytes, float]:
    vocabulary = tokenizer.vocabulary
    return dict(zip(vocabulary.pieces.to_pylist(), vocabulary.log_probs.tolist(), strict=True))


def costing(pieces: Mapping[bytes, float]) -> UnigramTokenizer:
    return tokenizer_of({piece: -float(cost) for piece, cost in pieces.items()})


def cut(tokenizer: UnigramTokenizer, ids: list[int]) -> tuple[bytes, ...]:
    return tuple(tokenizer.decode([token]) for token in ids)


def binary(*texts: bytes) -> pa.Array:
    return pa.array(texts, pa.large_binary())


def log_likelihood_of(tokenizer: UnigramTokenizer, text: bytes) -> float:
    return float(tokenizer.log_likelihood(binary(text))[0])


_draw = random.Random(11)
TOKENIZER = tokenizer_of({piece: -_draw.uniform(2.0, 9.0) for piece in MORE_PIECES})
TEXT = "net income rose 3.25%, in come a income — é日本日a\n\n" * 3
A_MILLION = b"a" * 1_000_000


# Likelihood


@settings(deadline=None)
@given(PIECES, TEXTS)
def test_likelihood_is_the_sum_over_all_segmentations(pieces: dict[bytes, float], text: bytes) -> None:
    tokenizer = costing(pieces)
    assert log_likelihood_of(tokenizer, text) == pytest.approx(
        brute_force.log_likelihood(text, scores_of(tokenizer)), rel=1e-13, abs=1e-13
    )


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 30.0, 400.0, 742.0, 900.0, 5000.0]), min_size=6, max_size=6), LETTERS)
@example(costs=[400.0, 0.0, 400.0, 0.0, 0.0, 742.0], text=b"aab")
@example(costs=[742.0, 0.0, 5000.0, 5000.0, 5000.0, 5000.0], text=b"bba")  # exp(-742) has lost bits
def test_likelihood_is_correct_if_probabilities_leave_the_range_of_float64(costs: list[float], text: bytes) -> None:
    tokenizer = tokenizer_of({piece: -cost for piece, cost in zip(SMALL, costs, strict=True)})
    assert log_likelihood_of(tokenizer, text) == pytest.approx(
        brute_force.log_likelihood(text, scores_of(tokenizer)), rel=1e-13, abs=1e-13
    )


@pytest.mark.parametrize(("p", "q"), [(0.3, 0.2), (0.9, 0.9), (1e-40, 1e-100), (1e-300, 1e-301), (1.0, 1e-320)])
def test_likelihood_of_a_long_text_follows_the_recurrence(p: float, q: float) -> None:
    # With pieces a and aa, Z(n) = p Z(n - 1) + q Z(n - 2) = (x^(n + 1) - y^(n + 1)) / (x - y), x and y the roots.
    log_p, log_q = math.log(p), math.log(q)
    tokenizer = tokenizer_of({b"a": log_p, b"aa": log_q})
    root = math.sqrt(1.0 + 4.0 * math.exp(log_q - 2 * log_p))  # times p
    x, y = (1.0 + root) / 2, (1.0 - root) / 2
    n = 100_000
    expected = n * log_p + (n + 1) * math.log(x) + math.log1p(-((y / x) ** (n + 1))) - math.log(x - y)
    assert log_likelihood_of(tokenizer, b"a" * n) == pytest.approx(expected, rel=1e-12)


def test_likelihood_adds_over_pretokens_and_depends_on_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_ranges, "_RANGE_BYTES", 5_000)
    texts = [(TEXT * 8)[i:].encode() for i in range(0, 900, 9)]
    array = binary(*texts, b"")
    whole = TOKENIZER.log_likelihood(array)
    assert whole.tolist() == TOKENIZER.log_likelihood(array, num_threads=3).tolist()
    assert whole.tolist() == TOKENIZER.log_likelihood(pa.chunked_array([array[:7], array[7:7], array[7:]])).tolist()
    parts = [TOKENIZER.log_likelihood(binary(*reference.pretokenize(text))) for text in texts[:3]]
    assert whole[:3].tolist() == pytest.approx([math.fsum(part) for part in parts], rel=1e-15)
    assert whole[-1] == 0.0
    assert TOKENIZER.log_likelihood(pa.array([], pa.string())).tolist() == []


def test_likelihood_lies_above_the_best_segmentation() -> None:
    ((_, best),) = TOKENIZER.encode_nbest(TEXT, 1)
    assert best < log_likelihood_of(TOKENIZER, TEXT.encode()) < 0.0


# N-best


@settings(deadline=None)
@given(PIECES, TEXTS)
def test_nbest_is_the_beginning_of_all_segmentations_in_order(pieces: dict[bytes, float], text: bytes) -> None:
    tokenizer = costing(pieces)
    expected = brute_force.segmentations_in_order(text, scores_of(tokenizer))
    assert cut(tokenizer, tokenizer.encode(text)) == expected[0][0]
    for n in {1, 2, 3, 7, len(expected), len(expected) + 1}:
        found = [(cut(tokenizer, ids), score) for ids, score in tokenizer.encode_nbest(text, n)]
        assert found == expected[:n]


@pytest.mark.parametrize("seed", range(12))
def test_nbest_keeps_the_order_of_ties_however_many_it_keeps(seed: int) -> None:
    draw = random.Random(seed)
    pieces = {bytes(draw.choices(b"ab", k=draw.randrange(1, 5))): float(draw.randrange(1, 4)) for _ in range(14)}
    tokenizer = costing(pieces | {b"a": 1.0, b"b": 1.0})
    text = bytes(draw.choices(b"ab", k=9))
    expected = brute_force.segmentations_in_order(text, scores_of(tokenizer))
    for n in range(1, len(expected) + 1, 3):
        assert [(cut(tokenizer, ids), score) for ids, score in tokenizer.encode_nbest(text, n)] == expected[:n]


def test_nbest_of_many_pretokens_of_equal_loss() -> None:
    # Five pretokens with two segmentations each: many sums tie, and more pretokens can change than are requested.
    tokenizer = tokenizer_of({b"a": -1.0, b"aa": -2.0, b"..": -2.5, b".": -1.0})
    text = b"aa1..1aa1..1aa1"
    expected = brute_force.segmentations_in_order(text, scores_of(tokenizer))
    assert len(expected) == 2**5
    for n in range(1, 33):
        assert [(cut(tokenizer, ids), score) for ids, score in tokenizer.encode_nbest(text, n)] == expected[:n]


def test_nbest_of_a_text_is_distinct_lossless_and_in_falling_order() -> None:
    found = TOKENIZER.encode_nbest(TEXT, 500)
    assert len({tuple(ids) for ids, _ in found}) == len(found) == 500
    assert all(TOKENIZER.decode(ids) == TEXT.encode() for ids, _ in found)
    assert found[0][0] == TOKENIZER.encode(TEXT)
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)
    log_probs = TOKENIZER.vocabulary.log_probs
    assert scores == pytest.approx([math.fsum(log_probs[ids]) for ids, _ in found], rel=1e-14)
    assert found[:60] == TOKENIZER.encode_nbest(TEXT, 60)


@pytest.mark.parametrize("length", [255, 256, 257, 1000, 5003])
def test_nbest_does_not_depend_on_the_blocks_of_a_long_pretoken(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(length)
    text = bytes(draw.choices(b"aentrsio mc", k=length))
    in_blocks = TOKENIZER.encode_nbest(text, 9)
    monkeypatch.setattr(nbest, "MIN_BLOCK_BYTES", 1 << 20)
    assert in_blocks == TOKENIZER.encode_nbest(text, 9)
    monkeypatch.setattr(nbest, "MIN_BLOCK_BYTES", 1)
    assert in_blocks == TOKENIZER.encode_nbest(text, 9)


def test_nbest_of_an_empty_text_is_empty() -> None:
    assert TOKENIZER.encode_nbest("", 3) == [([], 0.0)]
    assert TOKENIZER.encode_nbest("7", 3) == [([ord("7")], LAST_RESORT)]


# A peer: SentencePiece over the same pieces


def sentencepiece_model() -> Any:
    sentencepiece = pytest.importorskip("sentencepiece")
    draw = random.Random(5)
    lines = ["".join(draw.choices(["income", "in", "come", "rose", "net", "o", "s"], k=30)) for _ in range(200)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=40,
        model_type="unigram",
        normalization_rule_name="identity",
        add_dummy_prefix=False,
        bos_id=-1,
        eos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("text", ["incomerosenetincome", "netinrosecomeoosnets", "netnetcomeinrose"])
def test_nbest_is_that_of_sentencepiece(text: str) -> None:
    peer = sentencepiece_model()
    known = [token for token in range(peer.get_piece_size()) if not peer.is_unknown(token)]
    tokenizer = tokenizer_of({peer.id_to_piece(token).encode(): peer.get_score(token) for token in known})
    scores = scores_of(tokenizer)
    theirs = [tuple(map(str.encode, pieces)) for pieces in peer.nbest_encode_as_pieces(text, 40)]
    ours = [(cut(tokenizer, ids), score) for ids, score in tokenizer.encode_nbest(text, len(theirs))]
    # SentencePiece adds in float32: segmentations with a smaller score difference can be in another order.
    assert [score for _, score in ours] == pytest.approx(
        [math.fsum(map(scores.__getitem__, pieces)) for pieces in theirs], abs=1e-4
    )
    assert len(theirs) > 20
    sure = {pieces for pieces, score in ours if score > ours[-1][1] + 1e-4}
    assert sure == {pieces for pieces in theirs if math.fsum(map(scores.__getitem__, pieces)) > ours[-1][1] + 1e-4}


# Sampling


def assert_frequencies(counts: Mapping[Hashable, int], expected: Mapping[Hashable, float]) -> None:
    """Asserts by a chi-square test that the counts fit the probabilities; false alarms have probability 1e-6.

    Outcomes with an expected count below 8 are pooled. The bound on the tail is that of Laurent and Massart
    (Annals of Statistics 28 (2000), 1302-1338, lemma 1): P(chi2 >= d + 2 sqrt(d t) + 2 t) <= exp(-t).
    """
    total = sum(counts.values())
    assert set(counts) <= set(expected)
    cells = [(counts.get(outcome, 0), share * total) for outcome, share in expected.items()]
    large = [cell for cell in cells if cell[1] >= 8]
    rest = [cell for cell in cells if cell[1] < 8]
    if rest:
        large.append((sum(seen for seen, _ in rest), max(sum(share for _, share in rest), 1.0)))
    statistic = sum((seen - share) ** 2 / share for seen, share in large)
    freedom, t = len(large) - 1, math.log(1e6)
    assert statistic <= freedom + 2 * math.sqrt(freedom * t) + 2 * t


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, 2.5])
def test_samples_have_the_frequencies_of_their_probabilities(alpha: float) -> None:
    tokenizer = tokenizer_of(SMALL | {b"..": -1.0, b".": -2.0})
    text = b"abaab1..ba"
    expected = brute_force.distribution(text, scores_of(tokenizer), alpha)
    samples = tokenizer.sample(text, alpha=alpha, seed=3, num_samples=20_000)
    assert_frequencies(Counter(cut(tokenizer, ids) for ids in samples), expected)
    # The same with one sample of each of many documents, which uses the generator differently.
    ids = tokenizer.sample_array(binary(*[text] * 20_000), alpha=alpha, seed=3)
    assert_frequencies(Counter(cut(tokenizer, row) for row in ids.to_pylist()), expected)
    seeds = (tokenizer.sample(text, alpha=alpha, seed=seed)[0] for seed in range(5_000))
    assert_frequencies(Counter(cut(tokenizer, row) for row in seeds), expected)


def test_neighbouring_samples_are_independent() -> None:
    tokenizer = tokenizer_of({b"a": -1.0, b"aa": -1.5})
    one = brute_force.distribution(b"aaa", scores_of(tokenizer), 1.0)
    pairs = {(first, second): one[first] * one[second] for first, second in itertools.product(one, repeat=2)}
    samples = [cut(tokenizer, ids) for ids in tokenizer.sample(b"aaa", seed=8, num_samples=20_001)]
    assert_frequencies(Counter(itertools.pairwise(samples)), pairs)
    rows = [cut(tokenizer, ids) for ids in tokenizer.sample_array(binary(*[b"aaa"] * 20_001), seed=8).to_pylist()]
    assert_frequencies(Counter(itertools.pairwise(rows)), pairs)


@settings(deadline=None)
@given(st.binary(max_size=80), st.sampled_from([0.0, 0.2, 1.0, 1e6]), st.integers(0, 2**64 - 1))
def test_every_sample_is_a_segmentation_of_the_text(text: bytes, alpha: float, seed: int) -> None:
    for ids in TOKENIZER.sample(text, alpha=alpha, seed=seed, num_samples=3):
        assert TOKENIZER.decode(ids) == text
    for drawn in TOKENIZER.sample_without_replacement(text, 3, alpha=alpha, seed=seed):
        assert TOKENIZER.decode(drawn.ids) == text


def test_a_large_alpha_gives_the_best_segmentation() -> None:
    best = TOKENIZER.encode(TEXT)
    assert TOKENIZER.sample(TEXT, alpha=1e5, seed=0, num_samples=5) == [best] * 5
    assert TOKENIZER.sample_without_replacement(TEXT, 1, alpha=1e5, seed=0)[0].ids == best


def test_samples_do_not_depend_on_threads_or_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_ranges, "_RANGE_BYTES", 5_000)
    array = pa.array([(TEXT * 8)[i:] for i in range(120)] + [""])
    alone = TOKENIZER.sample_array(array, seed=5)
    alone.validate(full=True)
    assert alone.equals(TOKENIZER.sample_array(array, seed=5, num_threads=3))
    assert alone.equals(TOKENIZER.sample_array(pa.chunked_array([array[:11], array[11:11], array[11:]]), seed=5))
    rest = TOKENIZER.sample_array(array[11:], seed=5, first_document=11)
    assert alone[11:].to_pylist() == rest.to_pylist()
    assert alone[0].as_py() == TOKENIZER.sample(array[0].as_py(), seed=5)[0]
    assert TOKENIZER.sample(TEXT, seed=5, num_samples=9)[:4] == TOKENIZER.sample(TEXT, seed=5, num_samples=4)
    assert not alone.equals(TOKENIZER.sample_array(array, seed=6))
    assert TOKENIZER.sample_array(pa.array([], pa.string()), seed=5).to_pylist() == []


def test_sampling_draws_one_seed_from_a_generator() -> None:
    generator, reference = np.random.default_rng(4), np.random.default_rng(4)
    first = TOKENIZER.sample(TEXT, seed=generator, alpha=0.0)
    assert first == TOKENIZER.sample(TEXT, seed=int(reference.integers(1 << 64, dtype=np.uint64)), alpha=0.0)
    assert first != TOKENIZER.sample(TEXT, seed=generator, alpha=0.0)


def test_samples_without_replacement_are_drawn_in_turn() -> None:
    tokenizer = tokenizer_of(SMALL | {b"..": -1.0, b".": -2.0})
    text = b"aba1.."
    probabilities = brute_force.distribution(text, scores_of(tokenizer), 0.8)
    expected = brute_force.drawn_in_turn(probabilities, 3)
    assert len(probabilities) == 8
    seen: Counter[tuple[tuple[bytes, ...], ...]] = Counter()
    for seed in range(12_000):
        drawn = tokenizer.sample_without_replacement(text, 3, alpha=0.8, seed=seed)
        seen[tuple(cut(tokenizer, each.ids) for each in drawn)] += 1
    assert_frequencies(seen, expected)


def test_samples_without_replacement_have_their_probabilities() -> None:
    tokenizer = tokenizer_of(SMALL)
    text = b"abaabab1ba"
    probabilities = brute_force.distribution(text, scores_of(tokenizer), 0.5)
    everything = tokenizer.sample_without_replacement(text, 10**9, alpha=0.5, seed=1)
    assert len(everything) == len(probabilities)
    assert {cut(tokenizer, each.ids) for each in everything} == set(probabilities)
    for each in everything:
        assert math.exp(each.log_prob) == pytest.approx(probabilities[cut(tokenizer, each.ids)], rel=1e-12)
    perturbed = [each.perturbed for each in everything]
    assert perturbed == sorted(perturbed, reverse=True)
    for k in (1, 2, 5, 17):
        assert tokenizer.sample_without_replacement(text, k, alpha=0.5, seed=1) == everything[:k]


def test_weights_from_the_threshold_estimate_without_bias() -> None:
    # Kool et al., section 5: a sum over all segmentations, here their mean number of pieces, by inclusion probability.
    tokenizer = tokenizer_of(SMALL)
    text = b"abaabab"
    probabilities = brute_force.distribution(text, scores_of(tokenizer), 1.0)
    expected = math.fsum(len(way) * probability for way, probability in probabilities.items())
    estimates = []
    for seed in range(4_000):
        *above, last = tokenizer.sample_without_replacement(text, 5, seed=seed)
        estimates.append(
            math.fsum(
                len(each.ids) * math.exp(each.log_prob) / -math.expm1(-math.exp(each.log_prob - last.perturbed))
                for each in above
            )
        )
    # Six standard errors: a false alarm has probability 2e-9 if the mean is normal.
    assert abs(np.mean(estimates) - expected) < 6 * np.std(estimates) / math.sqrt(len(estimates))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TOKENIZER.encode_nbest("a", 0), "n is 0"),
        (lambda: TOKENIZER.sample("a", seed=-1), "seed is -1"),
        (lambda: TOKENIZER.sample("a", seed=2**64), "seed is"),
        (lambda: TOKENIZER.sample("a", seed=0, alpha=-0.1), r"alpha is -0\.1"),
        (lambda: TOKENIZER.sample("a", seed=0, alpha=math.nan), "alpha is nan"),
        (lambda: TOKENIZER.sample("a", seed=0, alpha=math.inf), "use encode"),
        (lambda: TOKENIZER.sample("a", seed=0, num_samples=-1), "num_samples is -1"),
        (lambda: TOKENIZER.sample("\ud800", seed=0), "not Unicode text"),
        (lambda: TOKENIZER.sample_array(pa.array(["a"]), seed=0, first_document=-1), "first_document is -1"),
        (lambda: TOKENIZER.sample_array(pa.array(["a"]), seed=0, num_threads=0), "num_threads is 0"),
        (lambda: TOKENIZER.sample_without_replacement("a", 0, seed=0), "k is 0"),
        (lambda: TOKENIZER.log_likelihood(["a"]), "Arrow array"),
        (lambda: TOKENIZER.log_likelihood(pa.array(["a", None])), "null"),
        (lambda: TOKENIZER.encode_with_offsets("a", "words"), "unit is 'words'"),
        (lambda: TOKENIZER.encode_with_offsets(b"a\xff", "characters"), "not UTF-8"),
        (lambda: TOKENIZER.piece_lengths([3, 10**6]), "no id 1000000"),
        (lambda: build_piece_index(tokenizer_of({b"ab": -math.inf}).vocabulary), "id 256 is -inf"),
    ],
)
def test_invalid_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        call()  # type: ignore[operator]


# Offsets


@settings(deadline=None)
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.text("ain com é日本\n12", max_size=40).map(str.encode)), max_size=5)
)
def test_byte_offsets_cut_the_text_into_its_pieces(texts: list[bytes]) -> None:
    array = binary(b"before", *texts, b"after").slice(1, len(texts))
    ids, offsets = TOKENIZER.encode_array_with_offsets(array)
    offsets.validate(full=True)
    assert ids.equals(TOKENIZER.encode_array(array))
    for text, row, pairs in zip(texts, ids.to_pylist(), offsets.to_pylist(), strict=True):
        assert [text[start:stop] for start, stop in pairs] == list(cut(TOKENIZER, row))
        assert TOKENIZER.encode_with_offsets(text) == (row, [tuple(pair) for pair in pairs])
        assert np.cumsum(TOKENIZER.piece_lengths(row)).tolist() == [stop for _, stop in pairs]


def hugging_face(tokenizer: UnigramTokenizer) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    peer = tokenizers.Tokenizer.from_str(tokenizer_json(tokenizer.vocabulary).decode())
    peer.encode_special_tokens = True
    return peer


PEER = hugging_face(TOKENIZER)


@settings(deadline=None)
@given(st.one_of(st.text(max_size=50), st.text("ain com é日本\n12\U0001f4c8", max_size=50)))
def test_character_offsets_are_those_of_hugging_face(text: str) -> None:
    encoded = PEER.encode(text)
    assert TOKENIZER.encode_with_offsets(text, "characters") == (encoded.ids, encoded.offsets)


def test_character_offsets_of_an_array_are_those_of_its_texts() -> None:
    texts = ["", TEXT, "é日本", "in come", "日"]
    for array in (pa.array(texts), pa.array(["x", *texts, "y"]).slice(1, 5), pa.chunked_array([texts[:2], texts[2:]])):
        _, offsets = TOKENIZER.encode_array_with_offsets(array, num_threads=2, unit="characters")
        alone = [TOKENIZER.encode_with_offsets(text, "characters")[1] for text in texts]
        assert [[tuple(pair) for pair in pairs] for pairs in offsets.to_pylist()] == alone


def test_a_character_in_pieces_belongs_to_each_of_them() -> None:
    tokenizer = tokenizer_of({b"\xc3": -1.0, b"\xa9\xe6": -1.0})
    assert tokenizer.encode_with_offsets("é日", "characters")[1] == [(0, 1), (0, 2), (1, 2), (1, 2)]
    assert tokenizer.encode_with_offsets("é日")[1] == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert tokenizer.piece_lengths([tokenizer.eot_id]).tolist() == [len("<|endoftext|>")]


# Long and odd texts


@pytest.mark.parametrize(
    "text", [A_MILLION, random.Random(1).randbytes(200_000), b"\x00" * 200_000], ids=["a", "?", "0"]
)
def test_long_texts_end_in_good_time(text: bytes) -> None:
    best = TOKENIZER.encode(text)
    ((first, score), *_) = TOKENIZER.encode_nbest(text, 3)
    assert first == best
    assert score * (1 + 1e-12) <= log_likelihood_of(TOKENIZER, text)
    assert all(TOKENIZER.decode(ids) == text for ids in TOKENIZER.sample(text, seed=1, num_samples=2))
    distinct = TOKENIZER.sample_without_replacement(text, 2, seed=1)
    assert all(TOKENIZER.decode(each.ids) == text for each in distinct)
    assert TOKENIZER.encode_with_offsets(text)[1][-1][1] == len(text)


def test_no_segmentation_kernel_is_compiled_after_the_warm_up() -> None:
    compile_kernels()
    modules = [_hashed_kernels, _segmentation_kernels, _nbest_kernels, _distinct_kernels, _offset_kernels]
    num_signatures = {
        name: len(value.dispatcher.signatures)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, Compiled) and not value.is_inner
    }
    assert len(num_signatures) >= 10
    assert num_signatures == dict.fromkeys(num_signatures, 1)
