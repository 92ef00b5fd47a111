"""NER and ConvFinQA in the templates of BloombergGPT's Table 7: answers that a model writes, greedily.

An answer is the generated line. NER is scored by the F1 of entities over all sentences; ConvFinQA by exact match: the
answer is that of the file, character by character.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from finpile.errors import InputError
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Indices, Outcomes, of_flags, of_score
from finpile_trainer.tasks.few_shot import Example, FewShotTask, prompt_of, task_items
from finpile_trainer.tasks.financial import task_files
from finpile_trainer.tasks.named_entities import (
    match_entities,
    read_entities,
    read_tagged,
    score_entities,
    write_entities,
)

#: An empty cell of a table (appendix B).
EMPTY_CELL = "-"
_END = "\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation(FewShotTask):
    """A task whose answers are generated."""

    metric: Literal["entity_f1", "exact_match"]
    max_tokens: int
    """Tokens of an answer, at most."""


def entity_prompt(sentence: str) -> str:
    """Table 7, NER."""
    return f"{sentence}\nExtract named entity:"


def conversation_prompt(context: str, questions: Sequence[str], answers: Sequence[str]) -> str:
    """Table 7, QA: all questions with the answers to all but the last.

    >>> print(conversation_prompt("Sales: 3", ["what are sales?", "and twice that?"], ["3"]))
    Sales: 3
    Question: what are sales?
    Answer: 3
    Question: and twice that?
    Answer:
    """
    asked = [f"Question: {question.rstrip(' ?')}?\nAnswer:" for question in questions]
    turns = [f"{question} {answer}" for question, answer in zip(asked, answers, strict=False)]
    return "\n".join([context, *turns, asked[-1]])


def markdown_table(columns: Mapping[str, Mapping[str, Any]]) -> str:
    """A table of named columns with named rows; an absent or empty cell is `-`.

    >>> print(markdown_table({"2007": {"sales": 3.0, "": ""}, "2006": {"sales": 2.5}}))
    | - | 2007 | 2006 |
    | --- | --- | --- |
    | sales | 3 | 2.5 |
    | - | - | - |
    """
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [["", *columns], ["---"] * (len(columns) + 1)]
    rows += [[name, *(column.get(name, "") for column in columns.values())] for name in names]
    return "\n".join(f"| {' | '.join(map(_cell, row))} |" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return " ".join(str(value).replace("|", "\\|").split()) or EMPTY_CELL


def read_ner(folder: Path) -> Generation:
    """Salinas Alvarado et al. 2015: shots from `FIN5.txt`, the test part is `FIN3.txt`; sentences with an entity."""
    parts = []
    for name in ("FIN5.txt", "FIN3.txt"):
        (path,) = task_files(folder, name)
        examples = [
            Example(
                key=f"{number}",
                prompt=entity_prompt(text := " ".join(sentence.words)),
                answer=write_entities(entities),
                texts=(text,),
            )
            for number, sentence in enumerate(read_tagged(path))
            if (entities := sentence.entities())
        ]
        parts.append(tuple(examples))
    return Generation(name="ner", train=parts[0], test=parts[1], num_shots=20, metric="entity_f1", max_tokens=256)


def read_convfinqa(folder: Path) -> Generation:
    """Chen et al. 2022, the public development set (`convfinqa_dataset.json`): an example for each turn.

    A shot is a whole conversation of the training part; if the file has none, one about another page of the
    development part.
    """
    (path,) = task_files(folder, "convfinqa_dataset.json")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        test = [_turns(entry) for entry in data["dev"]]
        shots = [_turns(entry) for entry in data["train"]] if data.get("train") else test
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: expected conversations with `id`, `doc` and `dialogue` below `dev` ({what})"
        ) from error
    return Generation(
        name="convfinqa",
        train=tuple(turns[-1] for turns in shots),
        test=tuple(turn for turns in test for turn in turns),
        num_shots=1,
        metric="exact_match",
        max_tokens=32,
    )


def _turns(entry: Mapping[str, Any]) -> list[Example]:
    """The questions of a conversation, each with the gold answers to those before it."""
    document, dialogue = entry["doc"], entry["dialogue"]
    parts = [document["pre_text"], markdown_table(document["table"]), document["post_text"]]
    context = "\n".join(part.strip() for part in parts if part.strip())
    questions, answers = dialogue["conv_questions"], [answer.strip() for answer in dialogue["conv_answers"]]
    if not questions or len(questions) != len(answers):
        raise ValueError(f"{entry['id']} has {len(questions)} questions and {len(answers)} answers")
    return [
        Example(
            key=f"{entry['id']}/{number}",
            prompt=conversation_prompt(context, questions[: number + 1], answers[:number]),
            answer=answer,
            document=_page(entry["id"]),
            texts=(document["pre_text"], document["post_text"], questions[number]),
        )
        for number, answer in enumerate(answers)
    ]


def _page(name: str) -> str:
    """`MRO/2007/page_134` of `Single_MRO/2007/page_134.pdf-1`: several conversations are about one page."""
    return name.partition("_")[2].partition(".pdf")[0]


#: Readers by the name of the task.
GENERATIVE_READERS: Mapping[str, Callable[[Path], Generation]] = {"ner": read_ner, "convfinqa": read_convfinqa}


def answer_questions(
    model: LanguageModel, task: Generation, seed: int = 0, on_example: Callable[[], object] | None = None
) -> list[str]:
    """The generated line of each test example. A prompt that is too long loses its beginning: its first shots."""
    found = []
    for example in task.test:
        line = model.generate(prompt_of(task, example, seed), stop=[_END], max_tokens=_max_tokens(model, task))
        found.append(line.strip())
        if on_example:
            on_example()
    return found


def _max_tokens(model: LanguageModel, task: Generation) -> int:
    return min(task.max_tokens, model.max_length // 2)


def evaluate_generation(
    model: LanguageModel, task: Generation, seed: int = 0, on_example: Callable[[], object] | None = None
) -> dict[str, Any]:
    """The task's metric, its sizes, and the number of prompts that the model cannot read whole."""
    return generation_report(model, task, answer_questions(model, task, seed, on_example), seed)


def generation_report(model: LanguageModel, task: Generation, answers: Sequence[str], seed: int = 0) -> dict[str, Any]:
    """The result of `evaluate_generation` for these answers."""
    longest = model.max_length - _max_tokens(model, task)
    return {
        "task": task.name,
        "num_shots": task.num_shots,
        "num_train": len(task.train),
        "num_test": len(task.test),
        "num_truncated": sum(model.num_tokens(prompt_of(task, example, seed)) > longest for example in task.test),
        "metric": task.metric,
        **grade(task, answers),
    }


def generation_outcomes(task: Generation, answers: Sequence[str]) -> Outcomes:
    """The task's metric of each example's answer."""
    items = task_items(task)
    expected = [example.answer for example in task.test]
    if task.metric == "exact_match":
        right = [answer == other for answer, other in zip(answers, expected, strict=True)]
        return of_flags(task.name, "exact match", items, right)
    matches = _matches(expected, answers)

    def score_of(chosen: Indices) -> float:
        return score_entities(np.concatenate([matches[number] for number in chosen]))["score"]

    return of_score(task.name, "entity F1", items, score_of)


def grade(task: Generation, answers: Sequence[str]) -> dict[str, Any]:
    """The score of answers to the test part, and the counts that it comes from."""
    expected = [example.answer for example in task.test]
    if task.metric == "exact_match":
        right = sum(answer == other for answer, other in zip(answers, expected, strict=True))
        return {"score": right / len(expected), "num_right": right}
    matches = np.concatenate(_matches(expected, answers))
    num_expected, num_found = matches.sum(axis=0).tolist()
    counts = {"num_right": int(matches.all(axis=1).sum()), "num_expected": num_expected, "num_found": num_found}
    return {**score_entities(matches), **counts}


def _matches(expected: Sequence[str], answers: Sequence[str]) -> list[npt.NDArray[np.bool_]]:
    pairs = zip(expected, answers, strict=True)
    return [match_entities(read_entities(one), read_entities(other)) for one, other in pairs]
