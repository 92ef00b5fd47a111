"""A build of days, a training run on it, and its snapshots of an append and a removal."""

from __future__ import annotations

import shutil
from pathlib import Path

import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_trainer.train import load_train_config, train

from finpile.config import load_config
from finpile.output.takedowns import Wanted
from tests.support.made_days import CORPUS, TOKENS, documents_of, make_days, write_batch

TRAINING = """
tokens: out/tokens/split=train
out: run
steps: 1
batch_size: 2
learning_rate: 0.01
model: {num_layers: 1, num_heads: 2, hidden_size: 16}
threads: 1
"""


def make_snapshots_build(folder: Path) -> None:
    """A folder with a corpus file, its build in `build` with a training run, and in `out` the same build, to which
    files were appended and from which some were removed. `later` has further files."""
    days, out, config = make_days(6, 12), folder / "out", folder / "corpus.yaml"
    story = {"text": "Oil rose 2 percent on Monday after the ministers met in the port.", "timestamp": "2021-01-04"}
    late = {"text": "Gold fell 1 percent on Tuesday in a week of thin trade.", "timestamp": "2021-01-04"}
    days[3] += [("News", story), ("Mail", story), ("News", late)]
    days[0] += [("News", {**story, "timestamp": "2021-01-01"}), ("Mail", story)]
    dedup = {**CORPUS["dedup"], "order": "time"}
    config.write_text(yaml.safe_dump({**CORPUS, **TOKENS, "dedup": dedup}, sort_keys=False))
    write_batch(folder, "1", *days[2:9])
    build(load_config(config), str(out), Engine())
    shutil.copytree(out, folder / "build")
    (folder / "train.yaml").write_text(TRAINING)
    train(load_train_config(str(folder / "train.yaml")))
    write_batch(folder, "2", *days[:2], *days[9:11])
    append(load_config(config), str(out), Engine())
    gone = frozenset(documents_of(out)["id"].to_pylist()[:4])
    remove(str(out), Wanted(ids=gone), "they asked", Engine())
    (folder / "shown").write_text(documents_of(out)["id"][0].as_py())
    (folder / "traced").write_text(documents_of(out, 0)["id"][0].as_py())
    (folder / "later").mkdir()
    write_batch(folder / "later", "3", [*days[11], ("News", {**late, "timestamp": "2020-12-31"})])
