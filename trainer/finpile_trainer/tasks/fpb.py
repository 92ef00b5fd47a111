"""The Financial PhraseBank, in the template of BloombergGPT's Table 7."""

from __future__ import annotations

from pathlib import Path

from finpile.errors import InputError
from finpile.report.tasks import classification_table
from finpile_trainer.evaluation.classification import Classification, split_classification
from finpile_trainer.evaluation.few_shot import Example
from finpile_trainer.evaluation.task import Task, task_files

SENTIMENTS = ("negative", "neutral", "positive")


def sentiment_prompt(sentence: str, target: str | None = None) -> str:
    """Table 7, sentiment analysis and aspect sentiment analysis."""
    about = "" if target is None else f" on {target}"
    return f"{sentence}\nQuestion: what is the sentiment{about}?\nAnswer:"


def read(folder: Path, limit: int | None) -> Classification:
    """Sentences on which half of the annotators agree (`Sentences_50Agree.txt`)."""
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
    return split_classification("fpb", SENTIMENTS, examples, limit)


TASK = Task(name="fpb", read=read, table=classification_table, order=3)
