"""Tables of results on tasks: every figure of the results, in Markdown and HTML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finpile.report.render import to_csv
from finpile.report.tasks import classification_table, generation_table, lm_eval_table, pairs_table, write_task_report

PAIRS: dict[str, Any] = {
    "sets": [
        {
            "group": "en",
            "name": "agreement",
            "num_pairs": 1200,
            "num_truncated": 2,
            "accuracy": 0.75,
            "interval": [0.7, 0.8],
        }
    ],
    "groups": [{"group": "en", "num_sets": 1, "accuracy": 0.75, "interval": [0.25, 1.0]}],
    "all": {"num_sets": 1, "accuracy": 0.75, "interval": [0.25, 1.0]},
}
FPB = {
    "task": "fpb",
    "num_test": 970,
    "num_shots": 5,
    "num_truncated": 7,
    "scores": {"regular": 0.5, "calibration": 0.625},
}
FPB |= {"best_method": "calibration", "score": 0.625}
NER = {"task": "ner", "num_test": 98, "num_shots": 20, "num_truncated": 3, "metric": "entity_f1", "score": 0.625}
ACC = {
    "task": "piqa",
    "num_shots": 0,
    "num_truncated": 4,
    "metric": "acc",
    "filter": "none",
    "value": 0.5,
    "standard_error": 0.0117,
}
GROUP = {
    "task": "mmlu",
    "num_shots": None,
    "num_truncated": None,
    "metric": "acc",
    "filter": "none",
    "value": 0.25,
    "standard_error": None,
}


def test_tables_have_the_figures_of_the_results() -> None:
    rows = to_csv(pairs_table("clams", "Language", "Test", PAIRS)).splitlines()
    assert rows[1:] == [
        "row,agreement,en,1200,2,0.75,0.7,0.8",
        "total,mean of 1,en,,,0.75,0.25,1.0",
        "total,mean of 1,all,,,0.75,0.25,1.0",
    ]
    assert to_csv(classification_table([FPB])).splitlines()[1:] == ["row,fpb,970,5,7,50.0,62.5,62.5"]
    assert to_csv(generation_table([NER])).splitlines()[1:] == ["row,ner,98,20,3,entity F1,62.5"]
    assert to_csv(lm_eval_table([ACC, GROUP])).splitlines()[1:] == [
        "row,piqa,0,4,acc,none,0.5,0.0117",
        "row,mmlu,,,acc,none,0.25,",
    ]


def test_the_report_is_markdown_and_one_page(tmp_path: Path) -> None:
    tables = [
        pairs_table("clams", "Language", "Test", PAIRS),
        classification_table([FPB]),
        generation_table([NER]),
        lm_eval_table([ACC]),
    ]
    markdown, page = (Path(url).read_text() for url in write_task_report(str(tmp_path), "<m>", tables))
    assert "| agreement | en | 1,200 | 2 | 0.750 | 0.700 | 0.800 |" in markdown
    assert "| fpb | 970 | 5 | 7 | 50.00 | 62.50 | 62.50 (calibration) |" in markdown
    assert "| ner | 98 | 20 | 3 | entity F1 | 62.50 |" in markdown
    assert "| piqa | 0 | 4 | acc | none | 0.5000 | 0.0117 |" in markdown
    assert page.startswith("<!doctype html>")
    assert "<m>" not in page
    assert [name for name in ("clams", "classification", "generation", "lm_eval") if f'id="{name}"' not in page] == []
    assert "src=" not in page
    assert "62.50 (calibration)" in page
