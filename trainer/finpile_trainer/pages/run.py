"""The page of a training run, RUN/run.html: curves, held-out losses, Table 4, interventions, checkpoints, chronicle.

It is made from the files of the run alone, so that it can be written again at any time.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from finpile import storage
from finpile.report.drawing.lines import Line, LineChart
from finpile.report.drawing.svg import SERIES, series_colour
from finpile.report.figures import NOTHING
from finpile.report.html import html_page, links, tiles
from finpile.report.render import to_html
from finpile_trainer.pages.tables import (
    events_table,
    heldout_table,
    interventions_table,
    models_table,
    table4,
    total_speed,
)
from finpile_trainer.training.chronicle import read_events
from finpile_trainer.training.heldout import HeldoutRecord, source_names
from finpile_trainer.training.losses import LossRecord, loss_chart, read_heldout, read_log

PAGE_NAME = "run.html"


def write_run_page(folder: str) -> str:
    """Writes the page of the run in `folder` (an fsspec URL), which has completed a step; returns its URL."""
    config = storage.read_json(storage.join(folder, "config.json"))
    page = run_page(config, read_log(folder), read_heldout(folder), read_events(folder))
    url = storage.join(folder, PAGE_NAME)
    storage.write_bytes(url, page.encode())
    return url


def run_page(
    config: dict[str, Any],
    records: Sequence[LossRecord],
    heldout: Sequence[HeldoutRecord],
    events: Sequence[Any],
) -> str:
    """The whole page, from the content of `config.json` and of the logs."""
    train, settings = config["train"], config["resolved"]
    sections = [
        _tiles(train, records, heldout, events),
        loss_chart(records, settings["tokens.vocab_size"], heldout).to_html(
            "loss", "The loss of each step, and a running mean. The dotted line is uniform prediction."
        ),
    ]
    if heldout:
        sections += [_source_chart(heldout), to_html(heldout_table(heldout))]
    sections += [
        *_step_charts(records),
        to_html(table4(settings, events, records[-1].tokens, train["activation_checkpointing"])),
    ]
    tables = (interventions_table(settings), models_table(events, heldout), events_table(events))
    sections += [to_html(table) for table in tables if table.rows]
    files = ("config.json", "losses.jsonl", "loss.svg", "chronicle.md", *(["heldout.jsonl"] if heldout else []))
    sections.append(links({name: name for name in files}))
    shards = html.escape(train["tokens"])
    lead = f"<p>Preset <code>{html.escape(train['preset'])}</code> on <code>{shards}</code>.</p>"
    name = str(train["out"]).rstrip("/").rpartition("/")[2]
    return html_page(name, "FinPile training run", lead, sections)


def _tiles(
    train: dict[str, Any], records: Sequence[LossRecord], heldout: Sequence[HeldoutRecord], events: Sequence[Any]
) -> str:
    last, rate = records[-1], total_speed(events)["tokens_per_second"]
    return tiles(
        {
            "step": f"{last.step:,} of {train['steps']:,}",
            "tokens": f"{last.tokens:,}",
            "training loss": f"{last.loss:.4f}",
            "held-out loss": f"{heldout[-1].loss:.4f}" if heldout else NOTHING,
            "tokens per second": NOTHING if rate is None else f"{rate:,.0f}",
            "loss spikes": f"{sum(entry['event'] == 'rollback' for entry in events):,}",
        }
    )


def _source_chart(heldout: Sequence[HeldoutRecord]) -> str:
    """The curves of as many sources as there are colours; the table below has all."""
    shown = list(source_names(heldout))[: len(SERIES)]
    lines = [
        Line(
            points=[(float(record.step), record.sources[source]) for record in heldout if source in record.sources],
            label=source.rpartition("/")[2],
            colour=series_colour(index),
            dots=True,
        )
        for index, source in enumerate(shown)
    ]
    chart = LineChart(title="Held-out loss by source", x_title="step", y_title="nats per token", lines=lines)
    return chart.to_html("heldout_curves", f"The first {len(shown)} sources." if len(shown) == len(SERIES) else "")


def _step_charts(records: Sequence[LossRecord]) -> list[str]:
    charts = []
    for key, title in (("learning_rate", "Learning rate"), ("gradient_norm", "Norm of the gradient before clipping")):
        points = [(float(record.step), float(getattr(record, key))) for record in records]
        chart = LineChart(title=title, x_title="step", y_title=key.replace("_", " "), lines=[Line(points=points)])
        charts.append(chart.to_html(key, ""))
    return charts
