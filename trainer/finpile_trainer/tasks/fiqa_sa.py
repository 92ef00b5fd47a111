"""Task 1 of FiQA 2018, the sentiment on a target of a sentence, in the template of BloombergGPT's Table 7."""

from __future__ import annotations

import json
from pathlib import Path

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
        for name, entry in json.loads(path.read_text(encoding="utf-8")).items():
            for number, info in enumerate(entry["info"]):
                score = float(info["sentiment_score"])
                answer = "negative" if score < -NEUTRAL else "neutral" if score <= NEUTRAL else "positive"
                prompt = sentiment_prompt(entry["sentence"], info["target"])
                texts = (str(entry["sentence"]),)
                examples.append(Example(key=f"{path.stem}/{name}/{number}", prompt=prompt, answer=answer, texts=texts))
    return split_classification("fiqa_sa", SENTIMENTS, examples, limit)


TASK = Task(name="fiqa_sa", read=read, table=classification_table, order=4)
