"""Scores of several models beside each other, with their means and pairwise win rates: BloombergGPT §5.

A win rate is the share of comparisons with each other model on each task that a model wins. Equal scores are a win of
both: the paper does not say so, but only then do the scores of its Table 13 give the rates that it prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import fsum, nan
from typing import Any

from finpile.report.figures import Cell, name
from finpile.report.table import Row, RowKind, Table, columns

#: Scores by task, by the name of the model.
Scores = Mapping[str, Mapping[str, float]]


def task_scores(report: Mapping[str, Any]) -> dict[str, float]:
    """The score of each task of a `tasks.json`, in percent; the mean accuracy of minimal pairs.

    Tasks of lm-evaluation-harness are left out: they have several metrics each, some of which fall as models improve.
    """
    scores = {}
    for task, result in report["tasks"].items():
        if isinstance(result, dict):
            scores[task] = 100 * float(result["score"] if "score" in result else result["all"]["accuracy"])
    return scores


def win_rates(scores: Scores) -> dict[str, float]:
    """The win rate of each model; nan for a single one.

    >>> win_rates({"a": {"x": 3, "y": 1}, "b": {"x": 2, "y": 1}})
    {'a': 1.0, 'b': 0.5}
    """
    rates = {}
    for model, mine in scores.items():
        others = [other for key, other in scores.items() if key != model]
        wins = [value >= other[task] for other in others for task, value in mine.items()]
        rates[model] = sum(wins) / len(wins) if wins else nan
    return rates


def model_table(scores: Scores) -> Table:
    """The table of all models; they must have scores of the same tasks."""
    tasks = list(next(iter(scores.values())))
    titles = {"task": "Task", **{model: model for model in scores}}
    rows = [_row(task, [mine[task] for mine in scores.values()]) for task in tasks]
    means = [fsum(mine.values()) / len(mine) for mine in scores.values()]
    rows.append(_row("All tasks (mean)", means, RowKind.TOTAL))
    rows.append(_row("All tasks (win rate)", list(win_rates(scores).values()), RowKind.TOTAL))
    caption = "Scores in percent. A win rate is the share of comparisons with each other model on each task."
    return Table(name="models", title="Models", caption=caption, columns=columns(titles), rows=tuple(rows))


def _row(label: str, values: list[float], kind: RowKind = RowKind.PLAIN) -> Row:
    return Row(cells=(name(label), *(Cell(f"{value:.2f}", value) for value in values)), kind=kind)
