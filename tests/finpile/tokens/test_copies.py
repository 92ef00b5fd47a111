"""Copies of documents: tokens match weights, whatever the partitions in which lengths are counted."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config.mixture import CopiesWeight, MixtureConfig, WeightConfig, weight_of_row, weights
from finpile.config.strict_yaml import from_values
from finpile.config.values import to_dict
from finpile.documents.document import text_digest
from finpile.errors import ConfigError, RunError
from finpile.tokens.copies import (
    LENGTH_SCHEMA,
    DocumentClass,
    class_indices,
    classes_of,
    copies_of,
    need_counts,
    positions,
    selection_keys,
    settle,
)
from finpile.tokens.pack import Runs, cut_runs, runs_of_sequences

ROWS = (("A", "a"), ("B", "b"))
WEIGHTS = st.one_of(
    st.sampled_from([0.0, 1.0, 3.0, 0.5, 0.1, 2.25]).map(lambda epochs: WeightConfig(epochs=epochs)),
    st.sampled_from([0.2, 0.45]).map(lambda share: WeightConfig(share=share)),
    st.just(WeightConfig(epochs=0.7, copies=(CopiesWeight(least=2, weight=3), CopiesWeight(least=4, weight=0)))),
)
#: (row, length, num_copies) of documents; several have equal texts.
DOCUMENTS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=40)


def settle_documents(
    documents: list[tuple[int, int, int]], given_weights: dict[tuple[str, str], WeightConfig], num_partitions: int
) -> tuple[list[DocumentClass], list[int], np.ndarray]:
    """The settled classes, and each document's class and copies."""
    classes = classes_of(given_weights)
    digests = pa.array([text_digest(b"%d" % (number // 2)) for number in range(len(documents))], pa.binary(16))
    ids = pa.array([f"{number:032x}" for number in range(len(documents))])
    indices = np.zeros(len(documents), np.int64)
    for index, (row, _, num_copies) in enumerate(documents):
        indices[index] = class_indices(classes, ROWS[row], pa.array([num_copies]))[0]
    keys = selection_keys(digests)
    columns = [pa.array(indices, pa.int32()), keys, ids, pa.array([length for _, length, _ in documents], pa.int64())]
    table = pa.table(columns, schema=LENGTH_SCHEMA)
    bounds = [256 * part // num_partitions for part in range(num_partitions + 1)]
    first = np.array([key[0] for key in keys.to_pylist()])
    order = [("class", "ascending"), ("key", "ascending"), ("id", "ascending")]
    parts = [table.filter(pa.array((first >= low) & (first < high))).sort_by(order) for low, high in pairwise(bounds)]
    lengths = [
        {
            row["class"]: row["num_tokens_sum"]
            for row in part.group_by("class").aggregate([("num_tokens", "sum")]).to_pylist()
        }
        for part in parts
    ]
    settled = settle(classes, given_weights, lengths, parts.__getitem__)
    return settled, indices.tolist(), copies_of(settled, indices, digests, ids)


@given(documents=DOCUMENTS, of_a=WEIGHTS, num_partitions=st.integers(1, 9))
@settings(deadline=None, max_examples=30)
def test_tokens_of_each_class_match_its_weight_to_half_a_document(
    documents: list[tuple[int, int, int]], of_a: WeightConfig, num_partitions: int
) -> None:
    documents = [(0, 3, 1), *documents]  # a share needs tokens
    given_weights = dict(zip(ROWS, (of_a, WeightConfig()), strict=True))
    settled, indices, copies = settle_documents(documents, given_weights, num_partitions)
    for number, entry in enumerate(settled):
        here = [index for index, of_document in enumerate(indices) if of_document == number]
        lengths = [documents[index][1] for index in here]
        effective = sum(int(copies[index]) * documents[index][1] for index in here)
        assert entry.weight is not None
        assert abs(effective - entry.weight * sum(lengths)) * 2 <= max(lengths, default=0)
        assert {int(copies[index]) for index in here} <= {entry.whole, entry.whole + 1}
        assert DocumentClass.from_json(entry.to_json()) == entry
    again, _, same = settle_documents(documents, given_weights, 1)
    assert np.array_equal(copies, same), "partitions have no effect"
    assert [entry.weight for entry in again] == [entry.weight for entry in settled]


@given(documents=DOCUMENTS, low=st.floats(0, 2), high=st.floats(0, 2))
@settings(deadline=None, max_examples=30)
def test_a_larger_weight_has_all_copies_of_a_smaller_one(
    documents: list[tuple[int, int, int]], low: float, high: float
) -> None:
    some = [
        settle_documents(documents, {ROWS[0]: WeightConfig(epochs=w), ROWS[1]: WeightConfig()}, 2)[2]
        for w in sorted((low, high))
    ]
    assert (some[0] <= some[1]).all()


def test_shares_are_parts_of_all_effective_tokens() -> None:
    documents = [(0, 10, 1)] * 200 + [(1, 10, 1)] * 100
    settled, indices, copies = settle_documents(
        documents, {ROWS[0]: WeightConfig(share=0.75), ROWS[1]: WeightConfig()}, 3
    )
    assert [entry.weight for entry in settled] == [Fraction(3, 2), Fraction(1)]
    assert int(copies[:200].sum()) == 300
    assert int(copies[200:].sum()) == 100
    assert need_counts(classes_of({ROWS[0]: WeightConfig(share=0.75)}))
    assert not need_counts(classes_of({ROWS[0]: WeightConfig(epochs=7)}))
    del indices


def test_share_without_tokens_is_an_error() -> None:
    with pytest.raises(RunError, match="A/a has no training tokens"):
        settle_documents([(1, 5, 1)], {ROWS[0]: WeightConfig(share=0.5), ROWS[1]: WeightConfig()}, 1)
    for epochs in (0.0, 1.0):
        with pytest.raises(RunError, match="no source with epochs above 0 has training tokens"):
            weights = {ROWS[0]: WeightConfig(share=0.5), ROWS[1]: WeightConfig(epochs=epochs)}
            settle_documents([(0, 5, 1), (1, 5, 1)][: 1 + (epochs == 0)], weights, 1)


def test_positions_are_digests_of_the_text_and_the_copy() -> None:
    """A change of them changes the order of every corpus with a mixture."""
    digest = text_digest(b"Oil rose.")
    keys = pa.array([digest], pa.binary(16))
    assert positions(keys, 0)[0].as_py() == digest
    expected = hashlib.blake2b(digest, digest_size=16, person=b"copy 12").digest()
    assert positions(keys, 12)[0].as_py() == expected
    assert selection_keys(keys)[0].as_py().hex() == "1256d2688c2685c50fb714de5c92c302"


# --- runs ----------------------------------------------------------------------------------------------------------


@given(
    runs=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=12),
    length=st.integers(1, 7),
    cut=st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted),
)
def test_runs_are_those_of_each_token(runs: list[tuple[int, int]], length: int, cut: list[int]) -> None:
    tokens = [source for source, num in runs for _ in range(num)]
    stream = Runs(np.array([source for source, _ in runs]), np.array([num for _, num in runs]))
    part = cut_runs(stream, cut[0], cut[1])
    assert np.repeat(part.sources, part.lengths).tolist() == tokens[cut[0] : cut[1]]
    whole = len(tokens) // length * length
    if not whole:
        return
    offsets, found = runs_of_sequences(cut_runs(stream, 0, whole), length)
    assert len(offsets) == whole // length + 1
    for index, (begin, end) in enumerate(pairwise(offsets.tolist())):
        sources = found.sources[begin:end]
        assert np.repeat(sources, found.lengths[begin:end]).tolist() == tokens[index * length : (index + 1) * length]
        assert (np.diff(sources) != 0).all(), "neighbours of one source are one run"


# --- the corpus file -----------------------------------------------------------------------------------------------


def test_the_most_specific_key_counts() -> None:
    rows = [("P", "Wikipedia"), ("P", "GitHub"), ("Wikipedia", "Wikipedia")]
    found = weights({"P": 2.0, "GitHub": 3.0, "P/Wikipedia": 0.5}, rows)
    assert {row: weight.epochs for row, weight in found.items()} == {
        ("P", "GitHub"): 3.0,
        ("P", "Wikipedia"): 0.5,
        ("Wikipedia", "Wikipedia"): None,
    }


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ({"Newz": 1.0}, "'Newz' is not a source or dataset .+ did you mean `News`"),
        (
            {"Wikipedia": 1.0},
            "is a dataset and The Pile/Wikipedia: name The Pile/Wikipedia, and the sources of Wikipedia",
        ),
        ({"News": -1.0}, "expected 0 to 400"),
        ({"News": float("nan")}, "expected 0 to 400"),
        ({"News": WeightConfig(share=0.6), "The Pile": WeightConfig(share=0.4)}, "100% in total"),
        (
            {
                "News": WeightConfig(share=0.1),
                "The Pile": WeightConfig(share=0.1),
                "Wikipedia/Wikipedia": WeightConfig(share=0.1),
            },
            "no source with epochs",
        ),
    ],
)
def test_bad_mixtures_are_errors(mixture: dict[str, float | WeightConfig], message: str) -> None:
    rows = [("FinPile", "News"), ("The Pile", "Wikipedia"), ("Wikipedia", "Wikipedia")]
    with pytest.raises(ConfigError, match=message):
        weights(mixture, rows)


@pytest.mark.parametrize(
    ("rows", "key", "message"),
    [
        ([("A", "B"), ("C", "A/B")], "A/B", "a source of several datasets: name B or C/A/B"),
        ([("A/B", "C"), ("A", "B/C")], "A/B/C", "a source of several datasets: name B/C or C"),
        ([("A", "B"), ("A/B", "x")], "A/B", "a dataset and A/B: name B, and the sources of A/B"),
        ([("A", "x"), ("B", "A")], "A", "a dataset and B/A: name B/A, and the sources of A"),
    ],
)
def test_a_key_of_several_meanings_is_an_error_that_names_others(
    rows: list[tuple[str, str]], key: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        weights({key: 2.0}, rows)
    assert str(caught.value) == f"mixture: {key!r} is {message}"
    for name in message.split(": name ")[1].split(", and")[0].split(" or "):
        weights({name: 2.0}, rows)


@pytest.mark.parametrize(
    "text", ["three epochs", "40", "%", "1/0%", "nan epochs", "0%", "100%", "2 times", "-1 epochs", ""]
)
def test_bad_weights_are_errors(text: str) -> None:
    with pytest.raises(ConfigError):
        WeightConfig.named(text)


def test_settings_give_the_mixture_back() -> None:
    mixture = {
        "a": WeightConfig.named("3 epochs"),
        "b": WeightConfig.named("12.5%"),
        "c": WeightConfig(copies=(CopiesWeight(least=3, weight=0.25),)),
        "d": 2.0,
    }
    again = from_values(to_dict(mixture), MixtureConfig, "the mixture")
    for key in mixture:
        first, second = (weight_of_row(one, ("", key)) for one in (mixture, again))
        assert (first.share, first.epochs or 1.0, first.classes) == (second.share, second.epochs or 1.0, second.classes)
