"""Templates are those of Table 7, sizes those of appendix B, metrics those of scikit-learn."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from finpile_trainer.evaluation.classification import Classification, classification_outcomes, predict
from finpile_trainer.evaluation.few_shot import Example, limited, prompt_of
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.task import TASKS
from finpile_trainer.tasks.fpb import sentiment_prompt
from finpile_trainer.tasks.headline import binary_prompt

from finpile.errors import InputError
from tests.support.byte_model import byte_model


def read(name: str, folder: Path) -> Classification:
    found = TASKS.get(name).read(folder, None)
    assert isinstance(found, Classification)
    return found


def test_prompts_are_the_templates_of_table_7() -> None:
    assert sentiment_prompt("Profit rose.") == "Profit rose.\nQuestion: what is the sentiment?\nAnswer:"
    aspect = "Oil fell.\nQuestion: what is the sentiment on Shell?\nAnswer:"
    assert sentiment_prompt("Oil fell.", "Shell") == aspect
    question = "Does the news headline talk about price?"
    assert binary_prompt("gold", question) == f"gold\nQuestion: {question}\nAnswer:"


def task_of(choices: tuple[str, ...], count: int = 3) -> Classification:
    examples = [Example(key=f"{number}", prompt=f"{number}?\nAnswer:", answer=choices[0]) for number in range(40)]
    return Classification(name="t", choices=choices, train=tuple(examples[count:]), test=tuple(examples[:count]))


def test_the_three_methods_are_those_of_the_paper() -> None:
    """Of `x` and `xyyy`, the longer is less likely, but its tokens are likelier in the mean."""
    model, task = byte_model({"y": 20}), task_of(("x", "xyyy"))
    found = predict(model, task, print)
    assert found["regular"] == ["x"] * 3
    assert found["normalization"] == ["xyyy"] * 3
    assert found["calibration"] == ["x"] * 3, "both ratios are 1: the first choice"
    result, _ = task.evaluate(model, print)
    assert (result["score"], result["best_method"]) == (1.0, "regular")
    assert result["scores"] == {"regular": 1.0, "calibration": 1.0, "normalization": 0.0}
    assert result["num_truncated"] == 0
    lengths = [len(f"{prompt_of(task, example)} xyyy") for example in task.test]
    model.max_length = max(lengths) - 2
    assert task.evaluate(model, print)[0]["num_truncated"] == lengths.count(max(lengths))


def test_calibration_divides_by_the_likelihood_after_an_empty_context() -> None:
    """`b` is always likely; `a` is likely only after a question."""

    def logits(ids: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(*ids.shape, 128)
        out[..., ord("b")] = 4.0
        after = (ids == ord("?")).cumsum(-1) > 0
        out[..., ord("a")] = torch.where(after, 3.5, -3.0)
        return out

    model = LanguageModel(
        logits, lambda text: list(map(ord, text)), lambda ids: "", begin_id=127, max_length=999, name="m"
    )
    found = predict(model, task_of(("a", "b")), print)
    assert found["regular"] == ["b"] * 3
    assert found["calibration"] == ["a"] * 3


def test_shots_are_drawn_for_each_example_and_never_from_the_test_part() -> None:
    task = task_of(("x", "y"), count=20)
    prompts = [prompt_of(task, example) for example in task.test]
    assert prompts == [prompt_of(task, example) for example in task.test], "the same for every model"
    shots = [tuple(prompt.split("\n\n")[:-1]) for prompt in prompts]
    assert {len(one) for one in shots} == {5}
    assert len(set(shots)) == 20
    allowed = {f"{example.prompt} x" for example in task.train}
    assert {shot for one in shots for shot in one} <= allowed
    assert [prompt.split("\n\n")[-1] for prompt in prompts] == [example.prompt for example in task.test]
    assert prompt_of(task, task.test[0], seed=1) != prompts[0]


def test_weighted_f1_is_the_formula() -> None:
    right, found = list("aabbbc"), list("abbbac")
    examples = [Example(key="", prompt="", answer=answer) for answer in right]

    def score(examples: list[Example], found: list[str]) -> float:
        task = Classification(name="t", train=(), test=tuple(examples), choices=("a", "b", "c"))
        return classification_outcomes(task, found).score_of(np.arange(len(examples)))

    expected = 0.0
    for label in "abc":
        hits = sum(one == two == label for one, two in zip(right, found, strict=True))
        expected += 2 * hits / (right.count(label) + found.count(label)) * right.count(label) / len(right)
    assert score(examples, found) == pytest.approx(expected)
    other = [Example(key="", prompt="", answer="a", category="other")]
    assert score([*examples, *other], [*found, "a"]) == pytest.approx((expected + 1) / 2)


#: Appendix B: sizes of both parts. The file of Headline at hand has 10,570 of the 11,412 headlines.
SIZES = {"fpb": (3_876, 970), "fiqa_sa": (938, 235), "headline": (8_456, 2_114)}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_those_of_appendix_b(name: str, real_data: Callable[[str], Path]) -> None:
    task = read(name, real_data(f"eval_tasks/{name}"))
    train, test = ({example.key for example in part} for part in (task.train, task.test))
    assert (len(train), len(test), train & test) == (*SIZES[name], set())
    answers = Counter(example.answer for example in (*task.train, *task.test))
    assert set(answers) == set(task.choices)
    if name == "fpb":
        assert answers == {"positive": 1_086 + 277, "negative": 488 + 116, "neutral": 2_302 + 577}
    if name == "fiqa_sa":
        assert answers == {"positive": 576 + 141, "negative": 287 + 76, "neutral": 75 + 18}
    few = limited(task, 7)
    assert len({example.key for example in few.test}) == 7
    assert few.train == task.train


def test_phrasebank_reads_the_same_from_both_encodings(real_data: Callable[[str], Path]) -> None:
    assert read("fpb", real_data("eval_tasks/fpb")) == read("fpb", real_data("eval_tasks/fpb_latin1"))


def test_absent_and_foreign_files_are_named(tmp_path: Path) -> None:
    for name in SIZES:
        with pytest.raises(InputError, match="has no "):
            read(name, tmp_path)
    (tmp_path / "Sentences_50Agree.txt").write_text("Profit rose.@good\n")
    with pytest.raises(InputError, match=r"Sentences_50Agree\.txt:1: expected a sentence"):
        read("fpb", tmp_path)
    (tmp_path / "Sentences_50Agree.txt").write_text("")
    with pytest.raises(InputError, match="TASK fpb: its files have no example"):
        read("fpb", tmp_path)
    for text in ("", "[]", '{"1": {}}', '{"1": {"sentence": "a", "info": [{"target": "a", "sentiment_score": "b"}]}}'):
        (tmp_path / "task1_a.json").write_text(text)
        with pytest.raises(InputError, match=r"task1_a\.json: expected entries with `sentence` and `info`"):
            read("fiqa_sa", tmp_path)


_HEAD = b"Dates,URL,News,Price Direction Up,Price Direction Constant,Price Direction Down,Asset Comparision\n"


@pytest.mark.parametrize(
    ("task", "file", "data"),
    [
        ("headline", "gold-dataset-sinha-khandait.csv", _HEAD + b"2020,x,gold \xe9,1,0,0,0\n"),
        ("headline", "gold-dataset-sinha-khandait.csv", _HEAD + b"2020,x,gold rises,1,0\n"),
        ("headline", "gold-dataset-sinha-khandait.csv", _HEAD + b"2020,x,gold, rises,1,0,0,0\n"),
        ("headline", "gold-dataset-sinha-khandait.csv", _HEAD + b"2020,x," + b"gold" * 40_000 + b",1,0,0,0\n"),
        ("ner", "FIN5.txt", b"Caf\xe9 I-ORG\n"),
        ("convfinqa", "convfinqa_dataset.json", b'{"dev": "\xe9"}'),
        ("convfinqa", "convfinqa_dataset.json", b"[" * 9000),
        ("fiqa_sa", "task1_a.json", b'{"1": "\xe9"}'),
        ("fiqa_sa", "task1_a.json", b"[" * 9000),
    ],
)
def test_a_damaged_file_of_a_task_is_named(tmp_path: Path, task: str, file: str, data: bytes) -> None:
    (tmp_path / file).write_bytes(data)
    limit = csv.field_size_limit(1 << 17)  # of Python, which readers of documents raise in their process
    try:
        with pytest.raises(InputError, match=file):
            read(task, tmp_path)
    finally:
        csv.field_size_limit(limit)
