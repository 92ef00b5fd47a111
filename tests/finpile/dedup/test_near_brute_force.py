"""Near duplicates of real news against brute force: every pair of stories judged by the definition itself.

Two stories are near duplicates when 1 - distance / longer length of their words is above .8 and, under
`numbers: keep`, their numbers are the same. MinHash can only miss some of them, as its S-curve says; verification can
only refuse candidates. `pytest -s` shows what was found by Jaccard similarity.

The sample is 2,000 stories that follow each other in the archive, since the wire sends corrections and copies within
days: it has 94 such pairs, where 2,000 stories drawn at random have 14. Its seed is its place, the head of the archive.
The slow test takes all ten samples of the archive.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from rapidfuzz.distance import Levenshtein

from finpile.config import NearConfig
from finpile.dedup import FAST, PAPER, band_keys, candidate_pairs, find_near_duplicates, resolve_group, s_curve
from finpile.dedup.near.numbers import part_by_numbers
from tests.support.real_data import reuters_stories

SAMPLE_SIZE = 2_000
#: Bounds of the table's rows, by Jaccard similarity; the last row is of equal sets.
RANGES = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, np.inf)
#: Standard deviations between a count and its expectation: one count in 16,000 strays farther.
DEVIATIONS = 4.0

Pair = tuple[int, int]


class Truth(NamedTuple):
    """What is true of a pair of stories that are near duplicates under `numbers: any`."""

    edit_similarity: float
    jaccard: float
    same_numbers: bool


class Finding(NamedTuple):
    """Pairs of all samples: those that are near duplicates, and those that were found."""

    truth: list[Truth]
    was_found: list[bool]
    num_wrong: int


@pytest.fixture(scope="module")
def stories() -> list[str]:
    return reuters_stories()


def words_of(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def shingles_of(words: list[str], ngram: int) -> set[tuple[str, ...]]:
    """Runs of `ngram` words; a shorter text is one."""
    return {tuple(words[i : i + ngram]) for i in range(max(1, len(words) - ngram + 1))} if words else set()


@cache
def near_duplicates(texts: tuple[str, ...], ngram: int) -> dict[Pair, Truth]:
    """By brute force: a pair is left out only where its lengths alone differ by a fifth of the longer or more."""
    words = [words_of(text) for text in texts]
    numbers = [re.findall("[0-9]+", text) for text in texts]
    by_length = sorted((doc for doc in range(len(texts)) if words[doc]), key=lambda doc: len(words[doc]))
    found = {}
    for place, short in enumerate(by_length):
        for long in by_length[place + 1 :]:
            if 5 * (len(words[long]) - len(words[short])) >= len(words[long]):
                break
            similarity = Levenshtein.normalized_similarity(words[short], words[long], score_cutoff=0.8)
            if similarity > 0.8:
                left, right = shingles_of(words[short], ngram), shingles_of(words[long], ngram)
                jaccard = len(left & right) / len(left | right)
                pair = (min(short, long), max(short, long))
                found[pair] = Truth(similarity, jaccard, numbers[short] == numbers[long])
    return found


def verified_candidates(texts: tuple[str, ...], config: NearConfig) -> set[Pair]:
    """The pairs that share a band key and pass verification, each compared by itself."""
    column = pa.array(texts, pa.large_string())
    keys = part_by_numbers(band_keys(column, config), column, config)
    docs = np.repeat(np.arange(len(texts)), config.bands)
    pairs = candidate_pairs(pa.table({"key": keys.ravel(), "doc": docs}))
    both = zip(pairs["a"].to_pylist(), pairs["b"].to_pylist(), strict=True)
    return {(a, b) for a, b in both if resolve_group([texts[a].encode(), texts[b].encode()], [(0, 1)], config).removed}


def samples_of(stories: list[str], num_stories: int) -> Iterator[tuple[str, ...]]:
    for start in range(0, num_stories, SAMPLE_SIZE):
        yield tuple(stories[start : start + SAMPLE_SIZE])


def find(stories: list[str], num_stories: int, config: NearConfig) -> Finding:
    truth: list[Truth] = []
    was_found: list[bool] = []
    num_wrong = 0
    for texts in samples_of(stories, num_stories):
        judged = near_duplicates(texts, config.ngram)
        true = {pair: judged[pair] for pair in judged if config.numbers == "any" or judged[pair].same_numbers}
        found = verified_candidates(texts, config)
        truth += true.values()
        was_found += [pair in found for pair in true]
        num_wrong += len(found - true.keys())
    return Finding(truth, was_found, num_wrong)


def table(title: str, finding: Finding, config: NearConfig) -> str:
    jaccard, found = np.array([pair.jaccard for pair in finding.truth]), np.array(finding.was_found)
    precision = found.sum() / max(1, found.sum() + finding.num_wrong)
    lines = [f"{title}: recall {found.mean():.3f}, precision {precision:.3f}"]
    lines.append(f"{'jaccard':>12} {'pairs':>6} {'found':>6} {'recall':>7} {'S-curve':>8}")
    for low, high in pairwise(RANGES):
        inside = (low <= jaccard) & (jaccard < high)
        name = f"{low:.1f} to {high:.1f}" if high <= 1 else "1"
        rates = f"{found[inside].mean():7.3f} {s_curve(config, jaccard[inside]).mean():8.3f}" if inside.any() else ""
        lines.append(f"{name:>12} {inside.sum():6} {found[inside].sum():6} {rates}")
    return "\n".join(["", *lines, ""])


@pytest.mark.parametrize("numbers", ["any", "keep"])
@pytest.mark.parametrize("preset", [PAPER, FAST], ids=["paper", "fast"])
@pytest.mark.parametrize("num_stories", [SAMPLE_SIZE, pytest.param(19_043, marks=pytest.mark.slow)])
def test_pairs_found_are_true_and_their_number_follows_the_s_curve(
    num_stories: int, preset: NearConfig, numbers: Literal["keep", "any"], stories: list[str]
) -> None:
    config = replace(preset, numbers=numbers)
    finding = find(stories, num_stories, config)
    title = f"{num_stories} stories, {preset.bands} x {preset.rows}, numbers {numbers}"
    sys.stdout.write(table(title, finding, config))
    assert finding.num_wrong == 0
    jaccard, found = np.array([pair.jaccard for pair in finding.truth]), np.array(finding.was_found)
    probability = s_curve(config, jaccard)
    for least in (0.0, 0.5, 0.8):
        similar = jaccard >= least
        assert similar.sum() >= 40
        variance = (probability * (1 - probability))[similar].sum()
        assert abs(found[similar].sum() - probability[similar].sum()) <= DEVIATIONS * np.sqrt(variance)


@pytest.mark.parametrize("numbers", ["any", "keep"])
@pytest.mark.parametrize("preset", [PAPER, FAST], ids=["paper", "fast"])
@pytest.mark.parametrize("num_stories", [SAMPLE_SIZE, pytest.param(19_043, marks=pytest.mark.slow)])
def test_removed_documents_are_close_to_the_kept_one_and_no_found_pair_remains(
    num_stories: int, preset: NearConfig, numbers: Literal["keep", "any"], stories: list[str]
) -> None:
    config = replace(preset, numbers=numbers)
    for texts in samples_of(stories, num_stories):
        truth = near_duplicates(texts, config.ngram)
        rows = find_near_duplicates(pa.array(texts, pa.large_string()), config)
        for row in rows:
            pair = truth[row.kept, row.removed]
            assert pair.edit_similarity > 0.8
            assert numbers == "any" or pair.same_numbers
            assert row.edit_similarity == pytest.approx(pair.edit_similarity)
            assert row.jaccard == pytest.approx(pair.jaccard)
        removed = {row.removed for row in rows}
        assert not [pair for pair in verified_candidates(texts, config) if not removed & {*pair}]
