"""FPB, FiQA SA and Headline in the templates of BloombergGPT's Table 7, with the splits of its appendix B.

None of them has an official split: a fifth of the sentences, rounded up, is the test part. Which ones the paper took is
not known; here they are those with the smallest hashes.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from finpile.errors import InputError
from finpile_trainer.tasks.few_shot import Classification, Example, FewShotTask

Task = TypeVar("Task", bound=FewShotTask)

#: Share of the test part (§5.1).
TEST_SHARE = 0.2
SENTIMENTS = ("negative", "neutral", "positive")
#: Scores of FiQA from -0.1 to +0.1 are neutral. Appendix B counts +0.1 as positive, but its numbers of sentences are
#: those of this rule: two scores are +0.1.
NEUTRAL = 0.1
#: Table 18, for the tags that the file of Headline has; its `Past Information` and `Future Information` join two tags
#: of the paper each, of prices and of general events, and are left out.
QUESTIONS = {
    "price or not": "Does the news headline talk about price?",
    "price up": "Does the news headline talk about price going up?",
    "price stable": "Does the news headline talk about price staying constant?",
    "price down": "Does the news headline talk about price going down?",
    "asset comparison": "Does the news headline compare gold with any other asset?",
}
_TAG_COLUMNS = {
    "price up": "Price Direction Up",
    "price stable": "Price Direction Constant",
    "price down": "Price Direction Down",
    "asset comparison": "Asset Comparision",
}


def sentiment_prompt(sentence: str, target: str | None = None) -> str:
    """Table 7, sentiment analysis and aspect sentiment analysis."""
    about = "" if target is None else f" on {target}"
    return f"{sentence}\nQuestion: what is the sentiment{about}?\nAnswer:"


def binary_prompt(sentence: str, question: str) -> str:
    """Table 7, binary classification."""
    return f"{sentence}\nQuestion: {question}\nAnswer:"


def read_fpb(folder: Path) -> Classification:
    """The Financial PhraseBank, sentences on which half of the annotators agree (`Sentences_50Agree.txt`)."""
    (path,) = task_files(folder, "Sentences_50Agree.txt")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:  # as published
        text = data.decode("latin-1")
    examples = []
    for number, line in enumerate(text.splitlines()):
        sentence, mark, answer = line.rpartition("@")
        if not mark or answer not in SENTIMENTS:
            raise InputError(f"{path}:{number + 1}: expected a sentence, @ and one of {', '.join(SENTIMENTS)}")
        text = sentence.strip()
        examples.append(Example(key=f"{number}", prompt=sentiment_prompt(text), answer=answer, texts=(text,)))
    return _task("fpb", SENTIMENTS, examples)


def read_fiqa(folder: Path) -> Classification:
    """Task 1 of FiQA 2018, headlines and posts (`task1_*.json`): an example for each target of a sentence."""
    examples = []
    for path in task_files(folder, "task1_*.json"):
        for name, entry in json.loads(path.read_text(encoding="utf-8")).items():
            for number, info in enumerate(entry["info"]):
                score = float(info["sentiment_score"])
                answer = "negative" if score < -NEUTRAL else "neutral" if score <= NEUTRAL else "positive"
                prompt = sentiment_prompt(entry["sentence"], info["target"])
                texts = (str(entry["sentence"]),)
                examples.append(Example(key=f"{path.stem}/{name}/{number}", prompt=prompt, answer=answer, texts=texts))
    return _task("fiqa_sa", SENTIMENTS, examples)


def read_headline(folder: Path) -> Classification:
    """Headlines about gold (`gold-dataset-sinha-khandait.csv`): an example for each tag of a headline."""
    (path,) = task_files(folder, "gold-dataset-sinha-khandait.csv")
    with path.open(encoding="utf-8", newline="") as stream:
        head = stream.readline()
        stream.seek(0)
        rows = list(csv.DictReader(stream, delimiter="\t" if "\t" in head else ","))
    examples = []
    try:
        for number, row in enumerate(rows):
            tags = {tag: row[column] == "1" for tag, column in _TAG_COLUMNS.items()}
            tags["price or not"] = tags["price up"] or tags["price stable"] or tags["price down"]
            examples += [
                Example(
                    key=f"{number}",
                    prompt=binary_prompt(row["News"], question),
                    answer="Yes" if tags[tag] else "No",
                    category=tag,
                    texts=(row["News"],),
                )
                for tag, question in QUESTIONS.items()
            ]
    except KeyError as error:
        raise InputError(f"{path}: has no column {error}; expected those of Sinha and Khandait") from error
    return _task("headline", ("Yes", "No"), examples)


#: Readers by the name of the task.
READERS: Mapping[str, Callable[[Path], Classification]] = {
    "fpb": read_fpb,
    "fiqa_sa": read_fiqa,
    "headline": read_headline,
}


def _task(name: str, choices: tuple[str, ...], examples: Sequence[Example]) -> Classification:
    keys = sorted({example.key for example in examples}, key=lambda key: _hash(f"{name}/{key}"))
    test = set(keys[: math.ceil(TEST_SHARE * len(keys))])
    return Classification(
        name=name,
        choices=choices,
        train=tuple(example for example in examples if example.key not in test),
        test=tuple(example for example in examples if example.key in test),
    )


def limited(task: Task, limit: int | None) -> Task:
    """The task with the test examples of at most `limit` sentences, those with the smallest hashes."""
    if limit is None:
        return task
    keys = sorted({example.key for example in task.test}, key=lambda key: _hash(f"{task.name}/{key}"))[:limit]
    kept = tuple(example for example in task.test if example.key in set(keys))
    return replace(task, test=kept)


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def task_files(folder: Path, pattern: str) -> list[Path]:
    """The files of a pattern in a folder, sorted.

    Raises: InputError if there are none.
    """
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(f"{folder}: has no {pattern}")
    return found
