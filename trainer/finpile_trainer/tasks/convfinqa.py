"""ConvFinQA, Chen et al. 2022, in the template of BloombergGPT's Table 7: questions about a page, in turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from finpile.errors import InputError
from finpile.report.tasks import generation_table
from finpile_trainer.evaluation.few_shot import Example, limited
from finpile_trainer.evaluation.generative import Generation
from finpile_trainer.evaluation.task import Task, task_files

#: An empty cell of a table (appendix B).
EMPTY_CELL = "-"


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


def read(folder: Path, limit: int | None) -> Generation:
    """The public development set (`convfinqa_dataset.json`): an example for each turn.

    A shot is a whole conversation of the training part; if the file has none, one about another page of the
    development part.
    """
    (path,) = task_files(folder, "convfinqa_dataset.json")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        test = [_turns(entry) for entry in data["dev"]]
        shots = [_turns(entry) for entry in data["train"]] if data.get("train") else test
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: expected conversations with `id`, `doc` and `dialogue` below `dev` ({what})"
        ) from error
    task = Generation(
        name="convfinqa",
        train=tuple(turns[-1] for turns in shots),
        test=tuple(turn for turns in test for turn in turns),
        num_shots=1,
        metric="exact_match",
        max_tokens=32,
    )
    return limited(task, limit)


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


TASK = Task(name="convfinqa", read=read, table=generation_table, order=7)
