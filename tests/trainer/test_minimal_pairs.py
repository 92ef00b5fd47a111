"""BLiMP and CLAMS: what is read, what is right, and how sure the accuracy is."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from finpile_trainer.evaluation.intervals import of_mean, wilson
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.minimal_pairs import (
    Pair,
    PairScore,
    PairSet,
    PairSuite,
    judge_pairs,
    pair_score,
    sample_pairs,
    summary,
)
from finpile_trainer.evaluation.task import TASKS
from scipy.stats import binomtest

from finpile.errors import InputError
from tests.support.byte_model import byte_model


def read_pairs(suite: str, folder: Path) -> list[PairSet]:
    found = TASKS.get(suite).read(folder, None)
    assert isinstance(found, PairSuite)
    return [*found.sets]


def score_pairs(model: LanguageModel, entry: PairSet) -> PairScore:
    return pair_score(entry, judge_pairs(model, entry))


def test_the_more_likely_sentence_is_right_and_equal_ones_are_wrong() -> None:
    pairs = (Pair("aab", "abb"), Pair("abb", "aab"), Pair("ab", "ba"), Pair("aaaa", "aaaaa"))
    score = score_pairs(byte_model({"a": 256}, max_length=64), PairSet("g", "n", pairs))
    assert (score.num_right, score.num_pairs, score.num_truncated, score.accuracy) == (2, 4, 0, 0.5)


def test_a_sentence_longer_than_the_model_reads_loses_its_beginning_and_is_counted() -> None:
    """The model reads 64 bytes, so the last 64 of a sentence are scored."""
    good, bad = "b" * 40 + "a" * 64, "a" * 40 + "b" * 64
    pairs = (Pair(good, bad), Pair("a" * 64, "b" * 64), Pair("aab", "abb" * 30))
    score = score_pairs(byte_model({"a": 256}, max_length=64), PairSet("g", "n", pairs))
    assert (score.num_right, score.num_pairs, score.num_truncated) == (3, 3, 2)
    assert summary([score])["sets"][0]["num_truncated"] == 2


def test_files_and_archives_of_both_suites_are_read(tmp_path: Path) -> None:
    row = {"sentence_good": "A.", "sentence_bad": "B.", "UID": "u", "linguistics_term": "t"}
    with zipfile.ZipFile(tmp_path / "BLiMP.zip", "w") as archive:
        archive.writestr("data/u.jsonl", json.dumps(row) + "\n" + json.dumps(row))
        archive.writestr("__MACOSX/data/._u.jsonl", "x")
    assert read_pairs("blimp", tmp_path) == [PairSet("t", "u", (Pair("A.", "B."),) * 2)]
    folder = tmp_path / "fr_evalset"
    folder.mkdir()
    (folder / "simple.txt").write_text("True\tles auteurs rient\nFalse\tles auteurs rit")
    assert read_pairs("clams", tmp_path) == [PairSet("fr", "simple", (Pair("les auteurs rient", "les auteurs rit"),))]
    for text in ("True\ta\nTrue\tb\n", "True\ta\n", "True a\nFalse b\n", "", "\n"):
        (folder / "simple.txt").write_text(text)
        with pytest.raises(InputError, match="is not a file of CLAMS"):
            read_pairs("clams", tmp_path)
    for text in ('{"sentence_good": "x"}', "[1]", "1", ""):
        (tmp_path / "broken.jsonl").write_text(text)
        with pytest.raises(InputError, match="is not a file of BLiMP"):
            read_pairs("blimp", tmp_path)
    for name in ("broken.jsonl", "a.zip", "a.tar.zst"):
        (tmp_path / name).write_bytes(b"\xff")
        with pytest.raises(InputError, match=rf"{name}: cannot be read"):
            read_pairs("blimp", tmp_path)
        (tmp_path / name).unlink()
    with pytest.raises(InputError, match="has no"):
        read_pairs("blimp", tmp_path / "absent")


def test_a_sample_is_a_part_of_fixed_content() -> None:
    pairs = tuple(Pair(f"a{number}", f"b{number}") for number in range(50))
    (ten,) = sample_pairs([PairSet("g", "n", pairs)], 10)
    (again,) = sample_pairs([PairSet("g", "n", pairs[::-1])], 10)
    assert ten == again
    assert len(set(ten.pairs)) == 10
    assert set(ten.pairs) <= set(pairs)


def test_intervals_hold_what_they_say() -> None:
    """Of many samples, about 95% have the true share within the interval: that of a set, and of a mean of sets."""
    rng = np.random.default_rng(0)
    for right, size in ((0, 5), (8, 10), (10, 10)):
        expected = binomtest(right, size).proportion_ci(method="wilson")
        assert wilson(right, size) == pytest.approx((expected.low, expected.high), abs=1e-12)
    for share, size in ((0.5, 30), (0.9, 30), (0.98, 200)):
        drawn = rng.binomial(size, share, 2_000)
        intervals = {right: wilson(right, size) for right in set(drawn.tolist())}
        covered = [low <= share <= high for low, high in map(intervals.__getitem__, drawn.tolist())]
        assert 0.93 < np.mean(covered) < 0.985
    shares = np.array([0.5, 0.7, 0.95, 0.6])
    drawn = rng.binomial(60, shares, (2_000, 4))
    means = [of_mean([(int(right), 60) for right in row]) for row in drawn]
    assert 0.93 < np.mean([low <= shares.mean() <= high for low, high in means]) < 0.985


def test_means_are_of_sets_not_of_pairs() -> None:
    scores = [PairScore("en", "a", 9, 10), PairScore("en", "b", 10, 100), PairScore("de", "a", 1, 2)]
    found = summary(scores)
    assert [entry["accuracy"] for entry in found["groups"]] == [0.5, 0.5]
    assert found["all"]["accuracy"] == pytest.approx((0.9 + 0.1 + 0.5) / 3)
    assert found["sets"][0]["interval"] == wilson(9, 10)


def test_the_suites_are_whole(real_data: Callable[[str], Path]) -> None:
    """BLiMP: 67 sets of 1,000 pairs in 12 terms."""
    blimp = read_pairs("blimp", real_data("blimp"))
    assert [len(entry.pairs) for entry in blimp] == [1_000] * 67
    assert len({entry.group for entry in blimp}) == 12
    assert len({entry.name for entry in blimp}) == 67


@pytest.mark.slow
def test_clams_is_whole(real_data: Callable[[str], Path]) -> None:
    clams = read_pairs("clams", real_data("clams"))
    assert {entry.group for entry in clams} == {"en", "de", "fr"}
    names = {entry.name for entry in clams if entry.group == "de"}
    assert names == {entry.name for entry in clams if entry.group == "fr"}
    assert len(names) == 7
