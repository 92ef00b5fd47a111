"""Means and win rates are those that the paper prints below its scores."""

from __future__ import annotations

import math

from finpile.report.render import to_markdown
from finpile.report.win_rates import model_table, task_scores, win_rates

MODELS = ("BloombergGPT", "GPT-NeoX", "OPT", "BLOOM")
#: Tables 8 and 13 of the BloombergGPT paper.
FINANCIAL = """43.41 30.06 27.88 36.31
75.07 50.59 51.60 53.12
51.07 44.64 48.67 50.25
82.20 73.22 79.41 76.51
60.82 60.98 57.49 55.56"""
BIG_BENCH_HARD = """62.40 71.20 48.40 69.20
49.73 52.41 51.87 51.87
54.80 45.60 49.60 50.00
34.00 40.80 40.40 40.40
15.60 26.00 14.80 42.00
50.80 52.80 54.00 52.80
15.20 8.00 11.60 22.40
92.00 92.00 91.60 92.00
34.53 30.93 31.87 34.00
90.40 86.40 91.20 91.20
1.20 0.40 0.40 0.00
42.00 45.20 42.00 50.00
33.20 21.20 26.00 36.80
37.67 33.56 28.08 40.41
34.80 26.00 31.20 36.80
56.00 54.00 52.80 54.80
20.00 20.40 16.40 23.60
69.66 62.36 69.66 72.47
62.80 53.20 54.40 53.20
29.20 21.20 23.60 36.80
25.33 24.53 24.00 23.47
49.20 52.40 54.00 51.20
4.80 5.20 2.40 7.60"""


def scores_of(text: str) -> dict[str, dict[str, float]]:
    rows = [list(map(float, line.split())) for line in text.splitlines()]
    return {model: {f"task {at}": row[place] for at, row in enumerate(rows)} for place, model in enumerate(MODELS)}


def test_win_rates_are_those_of_tables_8_and_13() -> None:
    """The second has 11 ties: with ties as losses, or as half a win, the rates would be lower."""
    rounded = [f"{rate:.2f}" for rate in win_rates(scores_of(FINANCIAL)).values()]
    assert rounded == ["0.93", "0.27", "0.33", "0.47"]
    rounded = [f"{rate:.2f}" for rate in win_rates(scores_of(BIG_BENCH_HARD)).values()]
    assert rounded == ["0.57", "0.45", "0.39", "0.75"]
    assert math.isnan(win_rates({"a": {"x": 1.0}})["a"])


def test_the_table_ends_in_the_means_and_rates_of_the_paper() -> None:
    lines = to_markdown(model_table(scores_of(FINANCIAL))).splitlines()
    assert lines[2] == "| Task | BloombergGPT | GPT-NeoX | OPT | BLOOM |"
    assert lines[-2].replace("*", "").endswith("(mean) | 62.51 | 51.90 | 53.01 | 54.35 |")
    assert lines[-1].replace("*", "").endswith("(win rate) | 0.93 | 0.27 | 0.33 | 0.47 |")


def test_scores_of_a_result_are_those_of_its_tasks() -> None:
    tasks = {"fpb": {"score": 0.5}, "blimp": {"all": {"accuracy": 0.75}, "sets": []}, "piqa": [{"value": 0.6}]}
    assert task_scores({"tasks": tasks}) == {"fpb": 50.0, "blimp": 75.0}
