"""Questions about headlines on gold, of Sinha and Khandait, in the template of BloombergGPT's Table 7."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from finpile.errors import InputError
from finpile.report.tasks import classification_table
from finpile_trainer.evaluation.classification import Classification, split_classification
from finpile_trainer.evaluation.few_shot import Example
from finpile_trainer.evaluation.task import Task, task_files, task_text

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


def binary_prompt(sentence: str, question: str) -> str:
    """Table 7, binary classification."""
    return f"{sentence}\nQuestion: {question}\nAnswer:"


def read(folder: Path, limit: int | None) -> Classification:
    """The file `gold-dataset-sinha-khandait.csv`: an example for each tag of a headline."""
    (path,) = task_files(folder, "gold-dataset-sinha-khandait.csv")
    text = task_text(path)
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    examples = []
    try:
        for number, row in enumerate(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)):
            if None in row or None in row.values():
                raise InputError(f"{path}: row {number + 1} has not as many columns as the head: copy the file again")
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
    except csv.Error as error:
        raise InputError(f"{path}: row {len(examples) // len(QUESTIONS) + 1}: {error}: copy the file again") from error
    return split_classification("headline", ("Yes", "No"), examples, limit)


TASK = Task(name="headline", read=read, table=classification_table, order=5)
