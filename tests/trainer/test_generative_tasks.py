"""Templates are those of Table 7, sizes those of appendix B, entity F1 that of seqeval."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from finpile_trainer.evaluation.few_shot import Example, limited, prompt_of
from finpile_trainer.evaluation.generative import Generation, grade
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.named_entities import (
    KINDS,
    Entity,
    TaggedSentence,
    match_entities,
    read_entities,
    read_tagged,
    score_entities,
    write_entities,
)
from finpile_trainer.tasks import convfinqa, ner
from finpile_trainer.tasks.convfinqa import conversation_prompt, markdown_table
from finpile_trainer.tasks.ner import entity_prompt
from hypothesis import given
from hypothesis import strategies as st

from finpile.errors import InputError


def test_prompts_are_the_templates_of_table_7() -> None:
    jobs = [Entity("Steve Jobs", "person"), Entity("Apple", "organization")]
    sentence = "Steve Jobs is the CEO of Apple"
    text = f"{entity_prompt(sentence)} {write_entities(jobs)}"
    assert text == f"{sentence}\nExtract named entity: Steve Jobs (person), Apple (organization)"
    asked = conversation_prompt("context", ["first?", "second ?", "third"], ["1", "2"])
    turns = "Question: first?\nAnswer: 1\nQuestion: second?\nAnswer: 2\nQuestion: third?\nAnswer:"
    assert asked == f"context\n{turns}"


def test_a_table_keeps_names_and_numbers_and_marks_empty_cells() -> None:
    table = markdown_table({"a|b": {"x": 1_000_000.0, "y": -0.5}, "c": {"y": "n/\na", "z": ""}})
    assert table.split("\n")[2:] == ["| x | 1000000 | - |", "| y | -0.5 | n/ a |", "| z | - | - |"]
    assert table.startswith("| - | a\\|b | c |\n")


# --- entities ------------------------------------------------------------------------------------------------------

TAGS = st.sampled_from(["O", *(f"{begin}-{kind}" for begin in "BI" for kind in KINDS)])
SENTENCES = st.lists(st.lists(st.tuples(TAGS, TAGS), max_size=12), min_size=1, max_size=6)


@given(SENTENCES)
def test_entity_f1_equals_that_of_seqeval(sentences: list[list[tuple[str, str]]]) -> None:
    """Words are different, so a name is in one place only."""
    metrics = pytest.importorskip("seqeval.metrics")
    parts = []
    for at in (0, 1):
        tagged = [
            TaggedSentence(tuple(f"w{number}" for number in range(len(one))), tuple(tags[at] for tags in one))
            for one in sentences
        ]
        parts.append([read_entities(write_entities(sentence.entities())) for sentence in tagged])
    matches = np.concatenate([match_entities(one, other) for one, other in zip(*parts, strict=True)])
    score = score_entities(matches)
    right, found = ([[tags[at] for tags in one] for one in sentences] for at in (0, 1))
    if matches.any(axis=0).all():
        assert score["score"] == pytest.approx(metrics.f1_score(right, found))
        assert score["precision"] == pytest.approx(metrics.precision_score(right, found))
        assert score["recall"] == pytest.approx(metrics.recall_score(right, found))
    else:
        assert score["score"] == 0.0


WORDS = st.lists(st.sampled_from(["A", "b", "(c)", "(", ")", ",", "Inc", "(d"]), min_size=1, max_size=4).map(" ".join)


@given(st.lists(st.builds(Entity, WORDS, st.sampled_from([*KINDS.values()])), max_size=5))
def test_reading_undoes_writing(entities: list[Entity]) -> None:
    """But for names with a comma at their begin or after a bracket, where one ends an entity."""
    kept = [entity for entity in entities if not entity.text.startswith(",") and ") ," not in entity.text]
    assert read_entities(write_entities(kept)) == kept


def test_answers_that_are_no_entities_count_as_such() -> None:
    """By hand: 5 expected, 5 found, of which 3 are right."""
    expected = [
        read_entities("Borrower (person), Lender (person), Borrower (person)"),
        read_entities("France (location)"),
        read_entities("HSBC (organization)"),
    ]
    found = [
        read_entities("Borrower (person), Borrower (Person), Borrower (person)"),
        read_entities("nothing is here"),
        read_entities("HSBC (organization), HSBC (company), and"),
    ]
    assert found[2] == [Entity("HSBC", "organization"), Entity("HSBC", "company")]
    matches = np.concatenate([match_entities(one, other) for one, other in zip(expected, found, strict=True)])
    assert matches.sum(axis=0).tolist() == [5, 5]
    assert matches.all(axis=1).sum() == 3
    assert score_entities(matches)["score"] == pytest.approx(0.6)
    assert score_entities(match_entities([], []))["score"] == 0.0


def test_words_of_one_tag_are_one_entity(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    lines = ["-DOCSTART- -X- O O", "", "Ann N - I-PER", "Lee N - I-PER", "Rome N - I-LOC", "it N - O"]
    lines += ["Oslo N - I-LOC", "Bern N - B-LOC", "Dow N - I-MISC", "", "", "a N - O"]
    path.write_text("\n".join(lines))
    first, second = read_tagged(path)
    names = [("Ann Lee", "person"), ("Rome", "location"), ("Oslo", "location"), ("Bern", "location")]
    assert (first.entities(), second.entities()) == (names, [])
    path.write_text("Ann N - I-PER\nLee")
    with pytest.raises(InputError, match=r"a\.txt:2: expected a word and, last, a tag"):
        read_tagged(path)


# --- the data of the paper -----------------------------------------------------------------------------------------


def test_sizes_of_ner_are_those_of_appendix_b(real_data: Callable[[str], Path]) -> None:
    """The test part is the paper's; its 39 PER and 216 LOC are printed in the place of each other.

    The training file has 511 sentences with an entity, the paper 504.
    """
    task = ner.TASK.read(real_data("eval_tasks/ner_sec"), None)
    assert (len(task.train), len(task.test)) == (511, 98)
    kinds = Counter(entity.kind for example in task.test for entity in read_entities(example.answer))
    assert kinds == {"person": 216, "location": 39, "organization": 56}
    for example in (*task.train, *task.test):
        assert write_entities(read_entities(example.answer)) == example.answer
    prompt = prompt_of(task, task.test[0])
    assert prompt.count("Extract named entity:") == 21
    assert grade(task, [example.answer for example in task.test])["score"] == 1.0


def test_sizes_of_convfinqa_are_those_of_appendix_b(real_data: Callable[[str], Path]) -> None:
    """Each turn is an example: 1,490. The paper's 5,932 questions are those of the conversation of each example."""
    task = convfinqa.TASK.read(real_data("eval_tasks/convfinqa"), None)
    assert (len(task.train), len(task.test)) == (421, 1_490)
    turns = Counter(example.key.rpartition("/")[0] for example in task.test)
    assert sum(number**2 for number in turns.values()) == 5_932
    assert grade(task, [example.answer for example in task.test])["score"] == 1.0
    example = next(example for example in task.test if example.key == "Single_MRO/2007/page_134.pdf-1/1")
    asked = "2007?\nAnswer: 60.94\nQuestion: and what was it in 2005?\nAnswer:"
    assert example.prompt.endswith(f"\n.\nQuestion: what was the weighted average exercise price per share in {asked}")
    assert "\n| - | 2007 | 2006 | 2005 |\n" in example.prompt
    assert "\n| expected life in years | 5 | 5.1 | 5.5 |\n" in example.prompt
    for example in task.test[::100]:
        shot = prompt_of(task, example).removesuffix(example.prompt)
        assert shot.endswith("\n\n")
        (source,) = {other.document for other in task.train if shot == f"{other.prompt} {other.answer}\n\n"}
        assert source != example.document


def test_absent_and_foreign_files_are_named(tmp_path: Path) -> None:
    for task in (ner.TASK, convfinqa.TASK):
        with pytest.raises(InputError, match="has no "):
            task.read(tmp_path, None)
    path = tmp_path / "convfinqa_dataset.json"
    for text in ("[", "[]", "{}", '{"dev": [{"id": "x"}]}', '{"dev": [3]}'):
        path.write_text(text)
        with pytest.raises(InputError, match=r"convfinqa_dataset\.json: expected conversations"):
            convfinqa.TASK.read(tmp_path, None)
    path.write_text('{"dev": []}')
    with pytest.raises(InputError, match="TASK convfinqa: its files have no example"):
        convfinqa.TASK.read(tmp_path, None)


# --- generation ----------------------------------------------------------------------------------------------------


def copying_model(max_length: int) -> LanguageModel:
    """Characters; after any, the one that followed it last time."""

    def logits(ids: torch.Tensor) -> torch.Tensor:
        out = torch.zeros(*ids.shape, 128)
        row = ids[0].tolist()
        last = dict(itertools.pairwise(row))
        out[0, -1, last.get(row[-1], 10)] = 1.0
        return out

    return LanguageModel(
        logits, lambda text: [*map(ord, text)], lambda ids: "".join(map(chr, ids)), begin_id=127,
        max_length=max_length, name="copy",
    )  # fmt: skip


def test_an_answer_is_the_generated_line() -> None:
    def example(key: str, question: str, answer: str) -> Example:
        return Example(key=key, prompt=f"{question}=", answer=answer)

    task = Generation(
        name="t",
        train=(example("0", "a", "7"),),
        test=(example("1", "b", "7"), example("2", "c", "8")),
        num_shots=1,
        metric="exact_match",
        max_tokens=4,
    )
    prompts = [prompt_of(task, one) for one in task.test]
    assert prompts == ["a= 7\n\nb=", "a= 7\n\nc="]
    advanced: list[float] = []
    result, _ = task.evaluate(copying_model(64), advanced.append)
    assert (result["score"], result["num_right"], result["num_test"], sum(advanced)) == (0.5, 1, 2, task.num_items)
    assert result["num_truncated"] == 0
    assert task.evaluate(copying_model(11), print)[0]["num_truncated"] == 2
    assert len(limited(task, 1).test) == 1
    assert limited(task, 1).metric == "exact_match"
    assert json.loads(json.dumps(result)) == result
