"""The tables of a run's page: Table 4 of BloombergGPT for this run, held-out losses, interventions, models, events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from finpile.report.figures import NOTHING, Cell, count, decimal, name
from finpile.report.table import Field, Row, RowKind, Table, columns, table_of
from finpile_trainer.training.chronicle import Event, describe
from finpile_trainer.training.heldout import HeldoutRecord, source_names
from finpile_trainer.training.throughput import Throughput

#: Figures of Table 4 with their keys in the settings of a run, by part.
_SHAPE = {
    "Architecture": "model.architecture",
    "Number of layers": "model.num_layers",
    "Number of heads": "model.num_heads",
    "Vocabulary size": "tokens.vocab_size",
    "Hidden dimension": "model.hidden_size",
}
_HYPERPARAMETERS = {
    "Optimizer": "optimizer.kind",
    "Max learning rate": "optimizer.learning_rate",
    "Final learning rate": "optimizer.final_learning_rate",
    "Learning rate schedule": "optimizer.schedule",
    "Warm-up steps": "optimizer.warmup_steps",
    "Gradient clipping": "optimizer.gradient_clipping",
    "Weight decay": "optimizer.weight_decay",
    "Dropout": "model.dropout",
    "Precision": "precision",
}
_BATCHES = {"Sequence length": "sequence_length", "Sequences per step": "batch.size"}


def total_speed(events: Sequence[Event]) -> dict[str, float | None]:
    """Seconds, tokens per second, TFLOP/s, utilisation and energy of all timed steps of all calls; null if unknown."""
    timed = [entry for entry in events if entry["event"] == "stop" and entry.get("seconds")]
    seconds = sum(entry["seconds"] for entry in timed)
    if not seconds:
        return dict.fromkeys(("seconds", "tokens_per_second", "tflops", "utilisation", "watt_hours"))

    def mean(key: str) -> float | None:
        parts = [entry[key] for entry in timed]
        return (
            None
            if None in parts
            else sum(part * entry["seconds"] for part, entry in zip(parts, timed, strict=True)) / seconds
        )

    energies = [entry["watt_hours"] for entry in timed]
    return {
        "seconds": seconds,
        **{key: mean(key) for key in ("tokens_per_second", "tflops", "utilisation")},
        "watt_hours": None if None in energies else sum(energies),
    }


def table4(settings: Mapping[str, Any], events: Sequence[Event], tokens: int, checkpointed: bool) -> Table:
    """Shape, hyperparameters and training of the run, in the order of Table 4."""
    start = next((entry for entry in reversed(events) if entry["event"] == "start"), None)
    rows = [
        *_part("Shape", _settings(settings, _SHAPE), _parameters(start)),
        *_part("Hyperparameters", _settings(settings, {**_HYPERPARAMETERS, **_BATCHES})),
        *_part("Training", _training(settings, events, start, tokens, checkpointed)),
    ]
    return Table(
        name="table4",
        title="Shape, hyperparameters and training",
        caption="The figures of Table 4 of BloombergGPT for this run.",
        columns=columns({"figure": "Figure", "value": "Value"}),
        rows=tuple(rows),
        footnotes=(
            "Times are those of steps, without the first step of a call, held-out losses and checkpoints. FLOPs are 6 "
            "for each parameter and token, 8 with activation checkpointing.",
        ),
    )


def _part(title: str, *figures: Iterator[tuple[str, Cell]]) -> Iterator[Row]:
    yield Row(cells=(name(title), Cell("")), kind=RowKind.TOTAL, gap=True)
    for group in figures:
        for label, cell in group:
            yield Row(cells=(name(label), cell), indent=True)


def _settings(settings: Mapping[str, Any], keys: Mapping[str, str]) -> Iterator[tuple[str, Cell]]:
    for label, key in keys.items():
        yield label, _value(settings.get(key))
    if "batch.size" in keys.values() and settings.get("batch.ramp"):
        steps = ", ".join(f"{size:,} before step {end:,}" for end, size in settings["batch.ramp"])
        yield "Sequences per step, at first", name(steps)


def _parameters(start: Event | None) -> Iterator[tuple[str, Cell]]:
    yield "Total parameters", Cell(NOTHING) if start is None else count(start["num_parameters"])


def _training(
    settings: Mapping[str, Any], events: Sequence[Event], start: Event | None, tokens: int, checkpointed: bool
) -> Iterator[tuple[str, Cell]]:
    speed = total_speed(events)
    yield "Tokens", count(tokens)
    if start is not None:
        yield "Hardware", name(f"{start['num_processes']:,} x {start['device']}")
    size, rate = settings.get("batch.size"), speed["tokens_per_second"]
    seconds = size * settings["sequence_length"] / rate if size and rate else None
    yield "Throughput (s/step)", decimal(seconds, ".3g")
    yield "Tokens/s", decimal(rate, ",.0f")
    yield "TFLOP/s of a device", decimal(speed["tflops"], ".3g")
    yield "Utilisation", decimal(speed["utilisation"], ".1%")
    yield "Energy (Wh)", decimal(speed["watt_hours"], ",.3g")
    if start is not None:
        flops = Throughput(num_parameters=start["num_parameters"], checkpointed=checkpointed).flops_per_token * tokens
        yield "Total FLOPs", Cell(f"{flops:.3g}", flops)


def heldout_table(records: Sequence[HeldoutRecord]) -> Table:
    """The first, the lowest and the last held-out loss of each source, those of all sources first."""
    best = min(records, key=lambda record: record.loss)
    shown = {"first": records[0], "lowest": best, "last": records[-1]}
    titles = {key: f"{key.capitalize()} (step {record.step:,})" for key, record in shown.items()}
    overall = Row(cells=(name("All"), *(decimal(record.loss, ".4f") for record in shown.values())), kind=RowKind.TOTAL)
    rows = [
        Row(cells=(name(source), *(decimal(record.sources.get(source), ".4f") for record in shown.values())))
        for source in source_names(records)
    ]
    return Table(
        name="heldout",
        title="Held-out loss by source",
        caption=f"Nats per token over {records[-1].num_tokens:,} held-out tokens; the lowest is that of all sources.",
        columns=columns({"source": "Source", **titles}),
        rows=(overall, *rows),
    )


_INTERVENTION: Sequence[Field[Mapping[str, Any]]] = (
    Field("step", "After step", lambda entry: count(entry["step"])),
    Field("rate_factor", "Learning rate times", lambda entry: _value(entry["rate_factor"])),
    Field(
        "dropout",
        "Dropout",
        lambda entry: Cell("unchanged") if entry["dropout"] is None else _value(entry["dropout"]),
    ),
)
_EVENT: Sequence[Field[Event]] = (
    Field("time", "Time (UTC)", lambda entry: name(entry["time"])),
    Field("step", "Step", lambda entry: count(entry["step"])),
    Field("what", "What", lambda entry: name(describe(entry).replace("**", ""))),
)


def interventions_table(settings: Mapping[str, Any]) -> Table:
    """The changes of learning rate and dropout by the training file."""
    entries = settings.get("interventions", ())
    return table_of(entries, _INTERVENTION, name="interventions", title="Interventions", caption="")


def models_table(events: Sequence[Event], records: Sequence[HeldoutRecord]) -> Table:
    """The retained models, each with the held-out loss of its step if it was measured, and the last checkpoint."""
    losses = {record.step: record.loss for record in records}
    files: dict[str, int] = {}
    for entry in events:
        if entry["event"] == "retained":
            files[entry["file"]] = entry["step"]
        elif entry["event"] == "heldout" and entry["is_best"]:
            files["models/best.safetensors"] = entry["step"]
        elif entry["event"] == "checkpoint":
            files["checkpoint.pt"] = entry["step"]
    rows = [
        Row(cells=(name(file), count(step), decimal(losses.get(step), ".4f")))
        for file, step in sorted(files.items(), key=lambda item: (item[1], item[0]))
    ]
    titles = {"file": "File", "step": "Step", "heldout_loss": "Held-out loss"}
    caption = "The state from which the run resumes, and retained models."
    return Table(name="checkpoints", title="Checkpoints", caption=caption, columns=columns(titles), rows=tuple(rows))


def events_table(events: Sequence[Event]) -> Table:
    """Everything that happened."""
    caption = "Steps that were trained again after an interruption appear twice."
    return table_of(events, _EVENT, name="chronicle", title="Chronicle", caption=caption)


def _value(value: Any) -> Cell:
    if value is None:
        return Cell(NOTHING)
    if isinstance(value, int) and not isinstance(value, bool):
        return count(value)
    return Cell(f"{value:g}", value) if isinstance(value, float) else name(str(value))
