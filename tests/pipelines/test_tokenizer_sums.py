"""Hashes and sums of the tokenizer's pipelines do not depend on the runner's bundles."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
from finpile_pipelines.unigram.partitioned_text import AddAnswers
from finpile_pipelines.unigram.partitions import hash_strings
from finpile_pipelines.unigram.split_merge import MergeModels, read_model, write_model
from finpile_tokenizer import UnigramModel, merge
from hypothesis import given
from hypothesis import strategies as st

from finpile.output.work_folder import WorkFolder

STRINGS = st.lists(st.binary(min_size=1, max_size=40), max_size=30)


@given(STRINGS, st.integers(0, 30))
def test_hash_is_of_the_bytes_alone(strings: list[bytes], cut: int) -> None:
    whole = pa.array(strings, pa.large_binary())
    hashes = hash_strings(whole).tolist()
    assert hash_strings(pa.chunked_array([whole.slice(0, cut), whole.slice(cut)])).tolist() == hashes
    assert len(set(hashes)) == len(set(strings))
    assert [hash_strings(pa.array([string], pa.large_binary()))[0] for string in strings] == hashes


ANSWERS = st.lists(st.tuples(st.floats(-1e9, 0), st.lists(st.integers(0, 2**50), min_size=3, max_size=3)), min_size=1)


@given(ANSWERS, st.randoms(use_true_random=False))
def test_sum_of_answers_does_not_depend_on_bundles(answers: list[tuple[float, list[int]]], rng: random.Random) -> None:
    combine = AddAnswers()
    elements = [({number: value}, np.array(counts)) for number, (value, counts) in enumerate(answers)]
    expected = math.fsum(value for value, _ in answers), np.sum([counts for _, counts in elements], axis=0).tolist()
    rng.shuffle(elements)
    bundles = [combine.create_accumulator() for _ in range(3)]
    for element in elements:
        index = rng.randrange(3)
        bundles[index] = combine.add_input(bundles[index], element)
    total, counts = combine.extract_output(combine.merge_accumulators(bundles))
    assert counts is not None
    assert (total, counts.tolist()) == expected


def test_merge_does_not_depend_on_bundles(tmp_path: Path) -> None:
    models = [model_of({b"a": 0.1 + 0.2 * index, b"b": 0.9 - 0.2 * index}, 10 + index) for index in range(4)]
    folder = WorkFolder(str(tmp_path))
    whole = folder.file("whole.parquet")
    parts = [(whole, folder.file(f"{index}.parquet")) for index in range(4)]
    for (_, file), model in zip(parts, models, strict=True):
        write_model(file, model)
    combine = MergeModels()
    expected = merge(models).to_table()
    for seed in range(5):
        order = random.Random(seed).sample([*parts, parts[0]], 5)  # a runner may process an element twice
        cut = seed % 4
        halves = [combine.create_accumulator(), combine.create_accumulator()]
        for index, part in enumerate(order):
            halves[index > cut] = combine.add_input(halves[index > cut], part)
        assert combine.extract_output(combine.merge_accumulators(halves)) == whole
        assert read_model(whole).to_table().equals(expected, check_metadata=True)


def model_of(probs: dict[bytes, float], num_bytes: int) -> UnigramModel:
    return UnigramModel(
        pieces=pa.array(sorted(probs), pa.large_binary()),
        log_probs=np.log([probs[piece] for piece in sorted(probs)]),
        num_models=np.ones(len(probs), np.int64),
        num_bytes=num_bytes,
    )
