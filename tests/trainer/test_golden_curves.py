"""Loss curves of a tiny model of each kind on a pinned build of real text; and that they are the same after a kill.

The golden losses are of one machine. The build is the same everywhere; sums are rounded otherwise by other processors,
and Adam lets such differences grow: with PyTorch's portable kernels, without AVX, the losses of bloomberggpt-tiny were
within a relative 2e-7 of those with AVX. The tolerance leaves room for other processors and versions. To make the file
anew after a change of the build or of the training, run this module with the folder of the data and a new one.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from finpile_trainer.train import Intervention, TrainConfig, train
from finpile_trainer.training.checkpoint import load_checkpoint
from finpile_trainer.training.guard import SpikeGuard
from finpile_trainer.training.losses import LOG_NAME, read_heldout

from finpile.tokens.store import TokenStore

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests/golden/loss_curves.json"
PRESETS = ("bloomberggpt-tiny", "gpt-neox-tiny", "palm-tiny")
TOLERANCE = 1e-4
#: Reuters stories of 1987, speeches of the Federal Reserve of 2017, its minutes of 2014 to 2017.
CORPUS = """
name: golden-curves
sources:
  - {name: News, dataset: FinPile, format: sgml, paths: fin_news/reuters21578.tar.gz, members: ["*/reut2-000.sgm"]}
  - name: Speeches
    dataset: FinPile
    format: text
    paths: fin_centralbank/fed_speeches_txt.tar.zst
    members: ["*2017*.txt"]
    date_pattern: "%Y%m%d*"
  - name: Minutes
    dataset: FinPile
    format: text
    paths: fin_centralbank/fomc_minutes_txt.tar.zst
    members: ["*/201[4-7]*.txt"]
    date_pattern: "%Y%m%d*"
heldout: {after: 2017-06-30, undated: drop}
tokenizer: {vocab_size: 2048, chunks: 1, chunk_vocab_size: 2048, train_on: []}
tokens: {sequence_length: 256}
"""


def build(data: Path, folder: Path) -> Path:
    """The token shards of the corpus."""
    (folder / "corpus.yaml").write_text(CORPUS)
    command = [sys.executable, "-m", "finpile_cli", "build", str(folder / "corpus.yaml"), "--root", str(data)]
    subprocess.run([*command, "-o", str(folder / "out")], cwd=REPOSITORY, check=True, capture_output=True)
    return folder / "out/tokens"


def settings(tokens: Path, out: Path, preset: str, **changes: Any) -> TrainConfig:
    values: dict[str, Any] = {"steps": 24, "heldout_every": 12, "checkpoint_every": 24, "batch_size": 8, **changes}
    return TrainConfig(
        tokens=f"{tokens}/split=train",
        heldout=f"{tokens}/split=heldout",
        out=str(out),
        preset=preset,
        sequence_length=64,
        threads=1,
        device="cpu",
        **values,
    )


def curves(tokens: Path, out: Path, preset: str) -> dict[str, Any]:
    """The shards, and the losses of each step and of the held-out text."""
    store = TokenStore.open(f"{tokens}/split=train")
    result = train(settings(tokens, out, preset))
    return {
        "tokenizer": store.meta.tokenizer,
        "num_sequences": len(store),
        "losses": [round(record.loss, 6) for record in result.records],
        "heldout": [round(record.loss, 6) for record in result.heldout],
    }


@pytest.fixture(scope="module")
def tokens(real_data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(real_data("fin_news").parent, tmp_path_factory.mktemp("golden"))


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_a_tiny_model_of_each_kind_learns_as_recorded(tokens: Path, tmp_path: Path, preset: str) -> None:
    """In 24 steps of 512 tokens from ln V, the loss of a uniform prediction, or a little more to below 6.9 nats.

    PaLM's embeddings have a standard deviation of 1 and are the output's weights too: it begins farther above.
    """
    found, golden = curves(tokens, tmp_path / "run", preset), json.loads(GOLDEN.read_text())[preset]
    for name in ("tokenizer", "num_sequences"):
        assert found[name] == golden[name], "the build has changed: make the file anew, as the module says"
    for name in ("losses", "heldout"):
        assert found[name] == pytest.approx(golden[name], rel=TOLERANCE)
    assert math.log(2048) < found["losses"][0] < math.log(2048) + (1.5 if preset == "palm-tiny" else 1)
    assert max(*found["losses"][-5:], found["heldout"][-1]) < 6.9


#: Kills itself after step 13, as no handler can prevent.
VICTIM = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_golden_curves import steered
from finpile_trainer.train import train

train(steered(Path(sys.argv[2]), Path(sys.argv[3])), on_step=lambda record: die() if record.step == 13 else None)
""".replace("die()", "os.kill(os.getpid(), signal.SIGKILL)")


def steered(tokens: Path, out: Path) -> TrainConfig:
    """Eighteen steps with dropout from step 6 on, and rollbacks, because each small rise of the loss is a spike."""
    guard = SpikeGuard(threshold=0.02, window=2, rollback_steps=2, skip_batches=3, max_rollbacks=99)
    changes = (Intervention(step=6, rate_factor=0.5, dropout=0.1),)
    return settings(
        tokens,
        out,
        "bloomberggpt-tiny",
        steps=18,
        checkpoint_every=5,
        heldout_every=9,
        interventions=changes,
        loss_spikes=guard,
    )


@pytest.mark.slow
def test_a_killed_run_with_interventions_and_rollbacks_ends_in_the_same_bytes(tokens: Path, tmp_path: Path) -> None:
    whole, killed = steered(tokens, tmp_path / "whole"), steered(tokens, tmp_path / "killed")
    assert train(whole).num_rollbacks
    command = [sys.executable, "-c", VICTIM, str(Path(__file__).parent), str(tokens), killed.out]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == -9
    assert 0 < train(killed).resumed_from < 18
    states = [load_checkpoint(run.out) for run in (whole, killed)]
    assert states[0] is not None
    assert states[1] is not None
    assert states[0].rollbacks == states[1].rollbacks
    assert all(torch.equal(tensor, states[1].model[name]) for name, tensor in states[0].model.items())
    assert Path(whole.out, LOG_NAME).read_bytes() == Path(killed.out, LOG_NAME).read_bytes()
    assert read_heldout(whole.out) == read_heldout(killed.out)


def write_golden(data: Path, folder: Path) -> None:
    """Makes the golden file anew."""
    folder.mkdir(parents=True)
    tokens = build(data, folder)
    GOLDEN.write_text(
        json.dumps({preset: curves(tokens, folder / preset, preset) for preset in PRESETS}, indent=1) + "\n"
    )


if __name__ == "__main__":
    write_golden(Path(sys.argv[1]), Path(sys.argv[2]))
