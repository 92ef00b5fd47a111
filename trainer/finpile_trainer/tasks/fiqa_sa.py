"""Task 1 of FiQA 2018, the sentiment on a target of a sentence, in the template of BloombergGPT's Table 7."""

from __future__ import annotations

import json
from pathlib import Path

from finpile.errors import InputError
from finpile.report.tasks import classification_table
from finpile_trainer.evaluation.classification import Classification, split_classification
from finpile_trainer.evaluation.few_shot import Example
from finpile_trainer.evaluation.task import Task, task_files
from finpile_trainer.tasks.fpb import SENTIMENTS, sentiment_prompt

#: Scores of FiQA from -0.1 to +0.1 are neutral. Appendix B counts +0.1 as positive, but its numbers of sentences are
#: those of this rule: two scores are +0.1.
NEUTRAL = 0.1


def read(folder: Path, limit: int | None) -> Classification:
    """Headlines and posts (`task1_*.json`): an example for each target of a sentence."""
    examples = []
    for path in task_files(folder, "task1_*.json"):
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))
            examples += [
                _example(f"{path.stem}/{name}/{number}", entry["sentence"], info["target"], info["sentiment_score"])
                for name, entry in entries.items()
                for number, info in enumerate(entry["info"])
            ]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            what = f"{type(error).__name__}: {error}"
            raise InputError(f"{path}: expected entries with `sentence` and `info` ({what})") from error
    return split_classification("fiqa_sa", SENTIMENTS, examples, limit)


def _example(key: str, sentence: str, target: str, sentiment_score: str) -> Example:
    score = float(sentiment_score)
    answer = "negative" if score < -NEUTRAL else "neutral" if score <= NEUTRAL else "positive"
    return Example(key=key, prompt=sentiment_prompt(sentence, target), answer=answer, texts=(str(sentence),))


TASK = Task(name="fiqa_sa", read=read, table=classification_table, order=4)
