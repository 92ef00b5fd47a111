"""The page of a run has the figures of its files: curves, held-out losses, Table 4, models, and every event."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from finpile_trainer.pages.run import run_page, write_run_page
from finpile_trainer.pages.tables import heldout_table, interventions_table, models_table, table4, total_speed
from finpile_trainer.training.chronicle import Chronicle, read_events
from finpile_trainer.training.heldout import HeldoutRecord
from finpile_trainer.training.losses import LossRecord, read_heldout, read_log
from finpile_trainer.training.retained import retained_steps

from finpile.errors import InputError
from finpile.report.render import to_csv

SETTINGS: dict[str, Any] = {
    "model.architecture": "bloomberggpt",
    "model.num_layers": 70,
    "model.num_heads": 40,
    "model.hidden_size": 7_680,
    "model.dropout": 0.0,
    "tokens.vocab_size": 131_072,
    "optimizer.learning_rate": 6e-5,
    "optimizer.schedule": "cosine",
    "sequence_length": 2_048,
    "batch.size": 2_048,
    "batch.ramp": [[7_200, 1_024]],
    "interventions": [{"step": 115_500, "rate_factor": 2 / 3, "dropout": None}],
}
TRAIN = {
    "out": "runs/<big>",
    "preset": "bloomberggpt-50b",
    "tokens": "out/tokens/split=train",
    "steps": 200,
    "activation_checkpointing": True,
}
STEP_TOKENS = 2_048 * 2_048
SPEED = {"tokens_per_second": STEP_TOKENS / 32.5, "tflops": 102.0, "utilisation": None, "watt_hours": 10.0}
EVENTS: list[dict[str, Any]] = [
    {"event": "start", "step": 0, "num_parameters": 50_558_868_480, "num_processes": 512, "device": "A100"},
    {"event": "heldout", "step": 100, "loss": 4.0, "sources": {}, "is_best": True},
    {"event": "retained", "step": 100, "file": "models/step-00000100.safetensors"},
    {"event": "checkpoint", "step": 100},
    {"event": "stop", "step": 100, "is_finished": False, "loss": 4.5, "seconds": 100.0, **SPEED},
    {"event": "start", "step": 100, "num_parameters": 50_558_868_480, "num_processes": 512, "device": "A100"},
    {"event": "heldout", "step": 200, "loss": 4.25, "sources": {}, "is_best": False},
    {"event": "checkpoint", "step": 200},
    {"event": "stop", "step": 200, "is_finished": True, "loss": 4.25, "seconds": 300.0, **SPEED, "tflops": 98.0},
]
EVENTS = [{"time": f"2026-01-01T00:00:0{number}+00:00", **entry} for number, entry in enumerate(EVENTS)]
RECORDS = [LossRecord(step, step * STEP_TOKENS, 12.0 - step / 30, 6e-5, 1.0) for step in range(1, 201)]
HELDOUT = [
    HeldoutRecord(100, 100 * STEP_TOKENS, 4.0, 77, {"FinPile/News": 3.5, "FinPile/Web": 4.5}),
    HeldoutRecord(200, 200 * STEP_TOKENS, 4.25, 77, {"FinPile/News": 3.75, "FinPile/Web": 4.75}),
]


def rows(table: Any) -> dict[str, str]:
    return {row["figure"]: row["value"] for row in csv.DictReader(to_csv(table).splitlines())}


def test_table_4_has_the_figures_of_the_paper() -> None:
    found = rows(table4(SETTINGS, EVENTS, 139_200 * STEP_TOKENS, checkpointed=True))
    assert found["Number of layers"] == "70"
    assert found["Total parameters"] == "50558868480"
    assert found["Sequences per step, at first"] == "1,024 before step 7,200"
    assert found["Hardware"] == "512 x A100"
    assert float(found["Throughput (s/step)"]) == pytest.approx(32.5)
    assert float(found["TFLOP/s of a device"]) == pytest.approx((102 * 100 + 98 * 300) / 400)
    assert float(found["Energy (Wh)"]) == 20.0
    assert found["Utilisation"] == ""
    assert float(found["Total FLOPs"]) == pytest.approx(2.36e23, rel=1e-2), "Table 4"


def test_a_run_that_was_never_timed_has_no_speed() -> None:
    assert set(total_speed([]).values()) == {None}
    found = rows(table4(SETTINGS, [], 10, checkpointed=False))
    assert (found["Total parameters"], found["Tokens/s"]) == ("", "")
    assert found["Tokens"] == "10"


def test_losses_interventions_and_models_are_those_of_the_run() -> None:
    assert to_csv(heldout_table(HELDOUT)).splitlines()[1:] == [
        "total,All,4.0,4.0,4.25",
        "row,FinPile/News,3.5,3.5,3.75",
        "row,FinPile/Web,4.5,4.5,4.75",
    ]
    assert to_csv(interventions_table(SETTINGS)).splitlines()[1:] == [f"row,115500,{2 / 3},"]
    assert to_csv(models_table(EVENTS, HELDOUT)).splitlines()[1:] == [
        "row,models/best.safetensors,100,4.0",
        "row,models/step-00000100.safetensors,100,4.0",
        "row,checkpoint.pt,200,4.25",
    ]


def test_the_page_has_every_part_and_is_a_function_of_the_files(tmp_path: Path) -> None:
    config = {"train": TRAIN, "resolved": SETTINGS}
    page = run_page(config, RECORDS, HELDOUT, EVENTS)
    ids = ("loss", "heldout_curves", "heldout", "learning_rate", "gradient_norm", "table4", "interventions")
    assert [name for name in (*ids, "checkpoints", "chronicle") if f'<figure id="{name}"' not in page] == []
    assert page.count("<svg") == 4
    assert all(entry["time"] in page for entry in EVENTS)
    assert "200 of 200" in page
    assert "<big>" not in page
    (tmp_path / "config.json").write_text(json.dumps(config))
    for name, lines in [("losses", RECORDS), ("heldout", HELDOUT)]:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines))
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in EVENTS))
    assert Path(write_run_page(str(tmp_path))).read_text() == page


def test_a_run_without_held_out_loss_has_no_part_of_it() -> None:
    page = run_page({"train": TRAIN, "resolved": {**SETTINGS, "interventions": []}}, RECORDS[:1], [], [])
    assert "heldout" not in page
    assert 'id="interventions"' not in page
    assert page.count("<svg") == 3


def test_an_event_is_a_line_more_in_the_files_of_the_chronicle(tmp_path: Path) -> None:
    files = [tmp_path / "events.jsonl", tmp_path / "chronicle.md"]
    Chronicle(str(tmp_path), "A run").add("checkpoint", 1)
    files[0].write_bytes(files[0].read_bytes() + b'{"time": "2026-')
    resumed = Chronicle(str(tmp_path), "A run")
    resumed.add("checkpoint", 2)
    inodes, before = [path.stat().st_ino for path in files], [path.read_bytes() for path in files]
    resumed.add("checkpoint", 3)
    assert [path.stat().st_ino for path in files] == inodes
    assert [path.read_bytes().startswith(text) for path, text in zip(files, before, strict=True)] == [True, True]
    assert [event["step"] for event in read_events(str(tmp_path))] == [1, 2, 3]
    assert [line.split(" | ")[1] for line in files[1].read_text().splitlines()[4:]] == ["1", "2", "3"]


@pytest.mark.parametrize("line", ["", "[]", "5", "{", '{"step": 2}', '{"event": "unheard of"}', "[" * 9000, "\xff"])
def test_a_damaged_line_of_a_log_is_named(tmp_path: Path, line: str) -> None:
    logs = {"losses.jsonl": (read_log, RECORDS), "heldout.jsonl": (read_heldout, HELDOUT)}
    for name, (read, records) in logs.items():
        first, second = (json.dumps(asdict(record)) for record in records[:2])
        (tmp_path / name).write_bytes(f"{first}\n{line}\n{second}\n".encode("latin-1"))
        with pytest.raises(InputError, match=rf"{name}:2 is damaged: restore the file, or delete this line"):
            read(str(tmp_path))
    event = json.dumps(EVENTS[0])
    (tmp_path / "events.jsonl").write_bytes(f"{event}\n{line}\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"events\.jsonl:2 is damaged"):
        read_events(str(tmp_path))


def test_files_of_others_beside_retained_models_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name in ("step-foo", "step-00000012", "step-", "best"):
        (tmp_path / "models" / f"{name}.safetensors").touch()
    assert retained_steps(str(tmp_path)) == [12]
