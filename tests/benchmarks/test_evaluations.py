"""The corpus, the training files and the task of the evaluation of small models are valid."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import yaml
from finpile_trainer.training.config import load_train_config

from finpile.config import load_config

ROOT = Path(__file__).resolve().parents[2]


def test_corpus_training_files_and_task_are_valid(modules: None, tmp_path: Path) -> None:
    evaluations = import_module("benchmarks.lm.evaluations")
    corpus = load_config(str(ROOT / "benchmarks/lm/evaluations.yaml"))
    assert corpus.heldout.after is not None
    for preset in evaluations.PRESETS:
        path = tmp_path / f"{preset}.yaml"
        path.write_text(evaluations._TRAINING.format(preset=preset, steps=30, rate=evaluations._RATES[preset]))
        assert load_train_config(str(path)).preset == preset
    task = yaml.safe_load(evaluations._LAMBADA_TASK.format(file="items.json"))
    assert (task["doc_to_text"], task["dataset_kwargs"]) == ("{{context}}", {"data_files": {"test": "items.json"}})
