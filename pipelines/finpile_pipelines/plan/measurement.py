"""What the stages take on this machine: a build of made text, beside the same build on the machine of the rates."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from finpile.config import load_config
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes

#: Workers of the build, as those of the builds of which the rates are.
WORKERS = 2
_DOCUMENTS, _WORDS, _VOCABULARY = 18_000, 400, 30_000
#: Every eighth document repeats the one before it, with two other words.
_REPEATED = 8
#: Documents of the build before: with it, kernels are compiled.
_FIRST = 100


def measure_machine() -> dict[str, float]:
    """CPU seconds by stage of a build of 50 MB of made text, by two workers in a temporary folder: about 20 s.

    The first one on a machine takes longer: kernels are compiled, which is not in the times.
    """
    with tempfile.TemporaryDirectory(prefix="finpile-measure-") as name:
        folder = Path(name)
        _built(folder / "first", _FIRST)
        return _built(folder / "all", _DOCUMENTS)


def _built(folder: Path, num_documents: int) -> dict[str, float]:
    folder.mkdir()
    lines = (json.dumps({"text": text}) for text in _texts(num_documents))
    (folder / "made.jsonl").write_text("".join(f"{line}\n" for line in lines))
    config = {
        "name": "measure",
        "sources": [{"name": "Made", "dataset": "Made", "format": "jsonl", "paths": [str(folder / "made.jsonl")]}],
        "dedup": {"substring": {"min_length": 200}},
        "tokenizer": {"vocab_size": 8_192, "sample": "6 MB"},
    }
    (folder / "corpus.yaml").write_text(json.dumps(config))
    engine = Engine(num_workers=WORKERS, watch=lambda label, progress: None)
    manifest = build(load_config(folder / "corpus.yaml"), str(folder / "out"), engine, sizes=Sizes(small_bytes=0))
    return {record["stage"]: record["cpu_seconds"] for record in manifest["stages"] if record["stage"] != "reports"}


def _texts(num_documents: int) -> Iterator[str]:
    """Words with frequencies as in text (Zipf), the same on each machine."""
    draw = np.random.Generator(np.random.PCG64(0))
    letters = draw.integers(ord("a"), ord("z") + 1, (_VOCABULARY, 12), dtype=np.uint8)
    lengths = draw.integers(2, 13, _VOCABULARY)
    words = [bytes(row[:length]).decode() for row, length in zip(letters, lengths, strict=True)]
    shares = 1 / np.arange(1, _VOCABULARY + 1)
    chosen = np.searchsorted(np.cumsum(shares / shares.sum()), draw.random((num_documents, _WORDS)))
    for number in range(num_documents):
        row = chosen[number]
        if number and number % _REPEATED == 0:
            row = chosen[number - 1].copy()
            row[:2] = chosen[number, :2]
        yield " ".join(words[place] for place in row.clip(max=_VOCABULARY - 1)) + "."


def factors_of(here: Mapping[str, float], there: Mapping[str, float]) -> dict[str, float]:
    """By stage, the CPU time here by that of the machine of the rates; `all` of all stages."""
    found = {stage: here[stage] / seconds for stage, seconds in there.items() if seconds and stage in here}
    return found | {"all": sum(here[stage] for stage in found) / sum(there[stage] for stage in found)}
