"""Small models of three papers, and one of transformers, trained on real documents and evaluated beside each other.

    python -m benchmarks.lm.evaluations DATA OUT [--steps 60] [--limit 1] [--items 10] [--results FOLDER]

DATA has the archives that evaluations.yaml names, and the evaluation sets; OUT is a folder for the corpus, the runs and
the reports. What is there from an earlier call is not made again. `gpt2` is a GPT-2 of transformers with the published
tokenizer of GPT-2, trained by a plain loop on the same training documents: a Hugging Face folder with other tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.report import RESULTS, ROOT, Report, say

PRESETS = ("bloomberggpt-tiny", "gpt-neox-tiny", "palm-tiny")
_SEQUENCE, _BATCH = 128, 4
_TASKS = "fpb,fiqa_sa,ner,convfinqa,blimp,lambada_local"
#: Sets whose items are searched for whole, and two runs of items of LAMBADA with one from Mansfield Park each.
_SEARCHED = {
    "lambada_openai": "eval_tasks/general/lambada_openai.jsonl",
    "boolq": "eval_tasks/general/boolq.jsonl",
}
_LAMBADA = (range(1_030, 1_035), range(3_137, 3_142))
_LAMBADA_TASK = """\
task: lambada_local
dataset_path: json
dataset_kwargs: {{data_files: {{test: {file}}}}}
test_split: test
output_type: loglikelihood
doc_to_text: "{{{{context}}}}"
doc_to_target: " {{{{continuation}}}}"
metric_list: [{{metric: acc}}, {{metric: perplexity}}]
"""
_TRAINING = """\
tokens: corpus/tokens/split=train
out: {preset}
preset: {preset}
steps: {steps}
sequence_length: 128
batch_size: 4
learning_rate: {rate}
warmup_steps: 10
threads: 1
"""
#: Learning rates; PaLM's optimizer is Adafactor, which scales them by the size of each tensor.
_RATES = {"bloomberggpt-tiny": 3e-3, "gpt-neox-tiny": 3e-3, "palm-tiny": 1e-2}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--limit", type=int, default=1)
    parser.add_argument("--items", type=int, default=10)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    report = Report(options.results, "evaluations", "Evaluations of small models", ("finpile", "torch", "transformers"))
    _build(options.data, options.out)
    for preset in PRESETS:
        _train(options.out, preset, options.steps)
    seconds = _train_gpt2(options.data, options.out, options.steps)
    report.add(*_runs(options.out, options.steps, seconds))
    report.add(*_search(options.data, options.out))
    report.add(*_bits_per_byte(options.out, options.limit))
    report.add(*_tasks(options.data, options.out, options.items))


def _finpile(*arguments: object) -> None:
    """Raises: CalledProcessError if the command fails."""
    command = [str(Path(sys.executable).with_name("finpile")), *map(str, arguments)]
    say(" ".join(command[1:]))
    subprocess.run(command, check=True, stdout=sys.stderr, env={**os.environ, "OMP_NUM_THREADS": "1"})


def _build(data: Path, out: Path) -> None:
    if not (out / "corpus/manifest.json").exists():
        _finpile("build", ROOT / "benchmarks/lm/evaluations.yaml", "--root", data, "-o", out / "corpus")


def _train(out: Path, preset: str, steps: int) -> None:
    if (out / preset / "run.html").exists():
        return
    config = out / f"{preset}.yaml"
    config.write_text(_TRAINING.format(preset=preset, steps=steps, rate=_RATES[preset]))
    _finpile("model", "train", config)


def _train_gpt2(data: Path, out: Path, steps: int) -> float:
    """Trains and saves the peer; returns the seconds of its training, which are in a file beside it."""
    import torch
    import transformers

    folder, seconds = out / "gpt2", out / "gpt2/seconds.json"
    if seconds.exists():
        return float(json.loads(seconds.read_text()))
    folder.mkdir(exist_ok=True)
    shutil.copy(data / "tokenizers/gpt2/encoder.json", folder / "vocab.json")
    shutil.copy(data / "tokenizers/gpt2/vocab.bpe", folder / "merges.txt")
    tokenizer: Any = transformers.GPT2Tokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))
    ids = torch.tensor(_training_ids(out, tokenizer, steps * _BATCH * _SEQUENCE)).view(steps, _BATCH, _SEQUENCE)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    shape = {"n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": _SEQUENCE}
    model: Any = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**shape, resid_pdrop=0, attn_pdrop=0, embd_pdrop=0)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    began = time.monotonic()
    for step, batch in enumerate(ids):
        loss = model(input_ids=batch, labels=batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            say(f"gpt2: step {step}, loss {loss.item():.3f}")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    seconds.write_text(json.dumps(time.monotonic() - began))
    return _train_gpt2(data, out, steps)


def _training_ids(out: Path, tokenizer: Any, number: int) -> list[int]:
    """So many tokens of training documents in random order, each document after the end of the one before."""
    from finpile.output.published import open_documents

    table = open_documents(str(out / "corpus")).to_table(columns=["text", "split"])
    texts = [row["text"] for row in table.to_pylist() if row["split"] == "train"]
    random.Random(0).shuffle(texts)
    ids: list[int] = []
    for text in texts:
        ids += [tokenizer.eos_token_id, *tokenizer.encode(text, verbose=False)]
        if len(ids) >= number:
            return ids[:number]
    raise ValueError(f"the training documents have {len(ids):,} tokens of GPT-2, {number:,} are needed: fewer --steps")


def _runs(out: Path, steps: int, seconds: float) -> list[str]:
    """Losses and times of the training runs."""
    from finpile_trainer.training.losses import read_log

    lines = ["| model | parameters | first loss | last loss | seconds |", "|---|--:|--:|--:|--:|"]
    for preset in PRESETS:
        log = read_log(str(out / preset))
        events = [json.loads(line) for line in (out / preset / "events.jsonl").read_text().splitlines()]
        stop = next(entry for entry in reversed(events) if entry["event"] == "stop")
        start = next(entry for entry in events if entry["event"] == "start")
        lines.append(
            f"| {preset} | {start['num_parameters']:,} | {log[0].loss:.3f} | {log[-1].loss:.3f} | "
            f"{stop['seconds']:,.0f} |"
        )
    lines.append(f"| gpt2 (transformers) | | | | {seconds:,.0f} |")
    about = (
        f"## Training\n\n{steps} steps of {_BATCH} sequences of {_SEQUENCE} tokens each, one CPU thread, under load: "
        "other work ran on the machine. Losses are in nats per token of the model's own tokenizer. Documents: 8-Ks and "
        "other filings, Reuters stories of 1987, FOMC minutes and speeches (for Press and Bloomberg), chats, novels, "
        "articles of Wikipedia; those after 2016-12-31 are held out."
    )
    return [about, "\n".join(lines)]


def _bits_per_byte(out: Path, limit: int) -> list[str]:
    """Of the documents of FinPile, without those of The Pile: the chats are long."""
    documents = "documents/dataset=FinPile"
    shutil.copytree(out / "corpus" / documents, out / "finpile" / documents, dirs_exist_ok=True)
    shutil.copy(out / "corpus/manifest.json", out / "finpile/manifest.json")
    models = [out / name for name in (*PRESETS, "gpt2")]
    _finpile(
        "model",
        "evaluate",
        out / "finpile",
        *models,
        "--per-source",
        limit,
        "--period",
        "year",
        "-o",
        out / "bits",
    )
    text = (out / "bits/evaluation.md").read_text().split("\n", 2)[2]
    return [f"## Bits per byte\n\n{text.strip()}"]


def _tasks(data: Path, out: Path, items: int) -> list[str]:
    """The tasks of the first run, with their items looked for in its training documents."""
    folder = out / "task_data"
    folder.mkdir(exist_ok=True)
    for task, name in {"fpb": "fpb", "fiqa_sa": "fiqa_sa", "ner": "ner_sec", "convfinqa": "convfinqa"}.items():
        shutil.copytree(data / "eval_tasks" / name, folder / task, dirs_exist_ok=True)
    shutil.copytree(data / "blimp", folder / "blimp", dirs_exist_ok=True)
    rows = (data / _SEARCHED["lambada_openai"]).read_text().splitlines()
    (folder / "lambada.json").write_text("\n".join(rows[at] for part in _LAMBADA for at in part) + "\n")
    (folder / "lambada.yaml").write_text(_LAMBADA_TASK.format(file=folder / "lambada.json"))
    run, corpus = out / PRESETS[0], out / "corpus"
    arguments = (_TASKS, "--data", folder, "--limit", items, "--contamination", corpus, "-o", out / "tasks")
    _finpile("model", "tasks", run, *arguments)
    text = (out / "tasks/tasks.md").read_text()
    about = (
        f"At most {items} items of each set. `lambada_local` is a task of lm-evaluation-harness with items of "
        f"LAMBADA from {' and '.join(f'{part.start:,} to {part.stop - 1:,}' for part in _LAMBADA)}."
    )
    return [f"## Tasks of {PRESETS[0]}\n\n{about}\n\n{text.split(chr(10), 2)[2].strip()}"]


def _search(data: Path, out: Path) -> list[str]:
    """Items of two whole sets in the training documents, and the time of the search."""
    from finpile_trainer.evaluation.contamination import STATUSES, find_items
    from finpile_trainer.evaluation.lm_eval import strings_of
    from finpile_trainer.evaluation.outcomes import TaskItem

    items = [
        TaskItem(name, str(number), tuple(strings_of(json.loads(line))))
        for name, file in _SEARCHED.items()
        for number, line in enumerate((data / file).read_text().splitlines())
    ]
    find_items(items[:1], str(out / "corpus"))  # compiles the kernels
    began, read = time.monotonic(), 0

    def count(num_bytes: int) -> None:
        nonlocal read
        read += num_bytes

    found = find_items(items, str(out / "corpus"), on_bytes=count)
    seconds = time.monotonic() - began
    lines = [
        "| set | items | " + " | ".join(STATUSES) + " | contaminated items (coverage) |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name in _SEARCHED:
        mine = {item: finding for item, finding in found.items() if item.task == name}
        counts = [sum(finding.status == status for finding in mine.values()) for status in STATUSES]
        named = [f"{item.item} ({one.coverage:.2f})" for item, one in mine.items() if one.status == "contaminated"]
        lines.append(
            f"| {name} | {len(mine):,} | {' | '.join(f'{count:,}' for count in counts)} | {', '.join(named)} |"
        )
    about = (
        f"## Items in training documents\n\nEvery item of two sets, all strings of a record, in {read / 1e6:.1f} MB of "
        f"training documents: {seconds:.1f} s, compilation left out, under load."
    )
    return [about, "\n".join(lines)]


if __name__ == "__main__":
    main()
