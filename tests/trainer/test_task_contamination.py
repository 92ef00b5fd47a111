"""Items of tasks that are planted in training documents are found, and scores are those of either part alone."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from finpile_cli import language_models
from finpile_cli.tasks import tasks_command
from finpile_trainer.evaluation.classification import Classification, classification_outcomes
from finpile_trainer.evaluation.contamination import MIN_COVERAGE, STATUSES, Finding, find_items, scores_by_status
from finpile_trainer.evaluation.few_shot import Example
from finpile_trainer.evaluation.generative import Generation, generation_outcomes, grade
from finpile_trainer.evaluation.intervals import bootstrap, wilson
from finpile_trainer.evaluation.minimal_pairs import Judgement, Pair, PairSet, PairSuite, pair_outcomes
from finpile_trainer.evaluation.outcomes import TaskItem
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.errors import InputError
from tests.support.byte_model import byte_model
from tests.support.document_builds import write_build


def made_build(root: Path, documents: list[tuple[str, str, str]], num_shards: int = 1) -> str:
    """A build of (id, text, split)."""
    return write_build(root, (dict(zip(("id", "text", "split"), one, strict=True)) for one in documents), num_shards)


def slow_coverage(texts: tuple[str, ...], document: str) -> float | None:
    """The share of the words of an item in runs of 13 words that the document has; None if all texts are too short."""
    there = document.split()
    covered = searched = 0
    for text in texts:
        words = text.split()
        if len(words) < 8:
            continue
        searched += len(words)
        size = min(13, len(words))
        runs = {tuple(there[at : at + size]) for at in range(len(there) - size + 1)}
        inside = [False] * len(words)
        for at in range(len(words) - size + 1):
            if tuple(words[at : at + size]) in runs:
                inside[at : at + size] = [True] * size
        covered += sum(inside)
    return covered / searched if searched else None


WORDS = st.lists(st.sampled_from("ab"), min_size=1, max_size=30).map(" ".join)


@given(
    texts=st.lists(st.lists(WORDS, min_size=1, max_size=2).map(tuple), min_size=1, max_size=4),
    documents=st.lists(st.tuples(WORDS, st.sampled_from(["train", "heldout"])), max_size=5),
    num_shards=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_coverage_is_that_of_a_slow_search_of_training_documents(
    tmp_path_factory: pytest.TempPathFactory, texts: Any, documents: Any, num_shards: int
) -> None:
    named = [(f"d{number}", text, split) for number, (text, split) in enumerate([*documents, ("x", "train")])]
    root = made_build(tmp_path_factory.mktemp("build"), named, num_shards)
    items = [TaskItem("quiz", f"{number}", parts) for number, parts in enumerate(texts)]
    for item, found in find_items(items, root).items():
        by_document = [(slow_coverage(item.texts, text), key) for key, text, split in named if split == "train"]
        if by_document[0][0] is None:
            assert found == Finding("too short", None, None)
            continue
        coverage, key = min(by_document, key=lambda entry: (-(entry[0] or 0), entry[1]))
        assert found.coverage == pytest.approx(coverage)
        assert found.document == (key if coverage else None)
        assert found.status == ("contaminated" if coverage and coverage >= MIN_COVERAGE - 1e-12 else "clean")


def sentence(number: int, length: int = 14) -> str:
    """Words that no other number has."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return " ".join(f"{letters[number // 26]}{letters[number % 26]}{letters[at]}" for at in range(length))


def test_an_item_in_many_documents_is_contaminated_and_one_in_held_out_documents_is_not(tmp_path: Path) -> None:
    documents = [(f"d{number:02}", f"Copy {number}: {sentence(0).upper()}.", "train") for number in range(30)]
    root = made_build(tmp_path, [*documents, ("h", sentence(1), "heldout")])
    many, heldout = (TaskItem("quiz", str(number), (sentence(number),)) for number in (0, 1))
    assert find_items([many, heldout, many], root) == {
        many: Finding("contaminated", 1.0, "d00"),
        heldout: Finding("clean", 0.0, None),
    }
    assert find_items([], root) == {}
    with pytest.raises(InputError, match="has no training document"):
        find_items([many], made_build(tmp_path / "none", [("h", sentence(0), "heldout")]))


ANSWERS = st.sampled_from(["Yes", "No", "Perhaps"])


@given(st.lists(st.tuples(ANSWERS, ANSWERS, st.sampled_from("xy")), min_size=1, max_size=40))
def test_the_f1_of_a_part_is_that_of_scikit_learn(rows: list[tuple[str, str, str]]) -> None:
    f1_score = pytest.importorskip("sklearn.metrics").f1_score
    examples = tuple(
        Example(key=str(number), prompt="", answer=right, category=category)
        for number, (right, _, category) in enumerate(rows)
    )
    task = Classification(name="t", train=(), test=examples, choices=("Yes", "No", "Perhaps"))
    found = [prediction for _, prediction, _ in rows]
    outcomes = classification_outcomes(task, found)
    for chosen in (np.arange(len(rows)), np.arange(len(rows))[::3]):
        parts = [[rows[at] for at in chosen if rows[at][2] == category] for category in "xy"]
        scores = [
            f1_score([row[0] for row in part], [row[1] for row in part], average="weighted", zero_division=0)
            for part in parts
            if part
        ]
        assert outcomes.score_of(chosen) == pytest.approx(np.mean(scores))


@pytest.mark.parametrize("metric", ["entity_f1", "exact_match"])
def test_the_score_of_a_part_of_generated_answers_is_that_of_the_part_alone(metric: Any) -> None:
    expected = ["A (person)", "B (person), C (location)", "D (organization)", "E (person)"]
    answers = ["A (person)", "B (person)", "x", "E (location), E (person)"]
    examples = tuple(Example(key=str(at), prompt="", answer=answer) for at, answer in enumerate(expected))
    task = Generation(name="t", train=(), test=examples, metric=metric, max_tokens=9)
    outcomes = generation_outcomes(task, answers)
    for part in ([0, 1, 2, 3], [1, 3], [2]):
        alone = Generation(name="t", train=(), test=tuple(examples[at] for at in part), metric=metric, max_tokens=9)
        assert outcomes.score_of(np.array(part)) == grade(alone, [answers[at] for at in part])["score"]


def test_parts_have_their_items_scores_and_intervals() -> None:
    pairs = tuple(Pair(f"good {number}", f"bad {number}") for number in range(6))
    right = [Judgement(flag, False) for flag in (True, True, False, True, False, False)]
    suite = PairSuite(name="blimp", sets=(PairSet("g", "n", pairs[:4]), PairSet("g", "m", pairs[4:])))
    outcomes = pair_outcomes(suite, [right[:4], right[4:]])
    statuses = ["clean", "clean", "clean", "contaminated", "contaminated", "clean"]
    findings = {item: Finding(status, 0.0, None) for item, status in zip(outcomes.items, statuses, strict=True)}  # type: ignore[arg-type]
    rows = {row["status"]: row for row in scores_by_status(outcomes, findings)}
    assert list(rows) == list(STATUSES)
    assert (rows["clean"]["num_items"], rows["clean"]["score"]) == (4, 0.5)
    assert rows["clean"]["interval"] == list(wilson(2, 4))
    assert (rows["contaminated"]["num_items"], rows["contaminated"]["score"]) == (2, 0.5)
    assert (rows["too short"]["num_items"], rows["too short"]["score"], rows["too short"]["interval"]) == (
        0,
        None,
        None,
    )


def test_the_interval_of_a_bootstrap_is_near_that_of_the_normal_distribution() -> None:
    flags = np.arange(400) % 4 == 0
    low, high = bootstrap(lambda drawn: float(flags[drawn].mean()), 400)
    half = 1.96 * (0.25 * 0.75 / 400) ** 0.5
    assert (low, high) == (pytest.approx(0.25 - half, abs=0.006), pytest.approx(0.25 + half, abs=0.006))
    assert bootstrap(lambda drawn: float(flags[drawn].mean()), 400) == (low, high)


def test_planted_sentences_are_counted_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 sentences of different words, two of them too short; every third one is planted in a training document."""
    lines = [f"{sentence(number)}@neutral" for number in range(40)]
    lines[:2] = ["Oil fell.@negative", "Gold rose.@positive"]
    texts = [line.partition("@")[0] for line in lines]
    (tmp_path / "Sentences_50Agree.txt").write_text("\n".join(lines))
    documents = [(f"d{number}", f"On Monday: {texts[number]}, it was said.", "train") for number in range(0, 40, 3)]
    build = made_build(tmp_path / "out", documents, 2)
    monkeypatch.setattr(language_models, "load_language_model", lambda *_: byte_model())
    arguments = ["run", "fpb", "--data", tmp_path, "--contamination", build, "-o", tmp_path / "report"]
    result = CliRunner().invoke(tasks_command, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    with (tmp_path / "report/contamination.csv").open() as stream:
        items = list(csv.DictReader(stream))
    assert len(items) == 8, "a fifth of the sentences is the test part"
    for item in items:
        number = int(item["item"])
        expected = "too short" if number < 2 else "contaminated" if number % 3 == 0 else "clean"
        assert (item["task"], item["status"], item["text"]) == ("fpb", expected, texts[number])
        assert item["document"] == (f"d{number}" if expected == "contaminated" else "")
    report = json.loads((tmp_path / "report/tasks.json").read_text())["contamination"]
    assert (report["on"], report["min_coverage"]) == (build, 0.2)
    counts = {row["status"]: row["num_items"] for row in report["scores"]}
    assert counts == {status: sum(item["status"] == status for item in items) for status in STATUSES}
    assert counts["contaminated"] > 0 < counts["clean"]
    page = (tmp_path / "report/tasks.html").read_text()
    assert "Scores on clean and contaminated items" in page
    assert "Scores on clean and contaminated items" in result.output
