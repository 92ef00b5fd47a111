"""NER of financial agreements, Salinas Alvarado et al. 2015, in the template of BloombergGPT's Table 7."""

from __future__ import annotations

from pathlib import Path

from finpile.report.tasks import generation_table
from finpile_trainer.evaluation.few_shot import Example, limited
from finpile_trainer.evaluation.generative import Generation
from finpile_trainer.evaluation.named_entities import read_tagged, write_entities
from finpile_trainer.evaluation.task import Task, task_files


def entity_prompt(sentence: str) -> str:
    """Table 7, NER."""
    return f"{sentence}\nExtract named entity:"


def read(folder: Path, limit: int | None) -> Generation:
    """Shots from `FIN5.txt`, the test part is `FIN3.txt`; sentences with an entity."""
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
    train, test = parts
    task = Generation(name="ner", train=train, test=test, num_shots=20, metric="entity_f1", max_tokens=256)
    return limited(task, limit)


TASK = Task(name="ner", read=read, table=generation_table, order=6)
