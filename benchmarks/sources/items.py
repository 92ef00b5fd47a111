"""Items of annual and quarterly reports beside edgartools, against where the reports say that they are.

    python -m benchmarks.sources.items [--data DATA] [--peers PYTHON] [--results FOLDER]

`--peers` is the Python of an environment with edgartools (`python -m pip install edgartools`).

The reports are the 10-K and 10-Q of `fin_filings/edgar_10k10q_ixbrl_html.tar.zst` and `edgar_other_forms_html.tar.zst`,
from the tests of edgartools. Where their items are is read from the links of their tables of contents, and by a reader
where links are missing or lead elsewhere (`item_truth`, `item_labels.json`). Compared are words of letters and digits:

- found: the same first words, but for the line at the top of a page, and F1 of the words at least 0.95, or at most 24
  words more or fewer (the numbers and lines of pages), or the same last words and 95% of all (grids repeat heads);
- wrong: a section that differs, or that the report does not have;
- unsure: an item that the tool names, without a section; `missing`: an item that it does not name.

Both forms of tables are read: items have to be the same. Items of Form 8-K and of extracted reports, against
edgar-crawler, are in the page of `benchmarks.sources.filings`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import members_of
from benchmarks.sources.item_truth import read_items, words_of
from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise
from finpile.filings import find_items

_REPORTS = "fin_filings/edgar_10k10q_ixbrl_html.tar.zst"
_OTHER = "fin_filings/edgar_other_forms_html.tar.zst"
_IN_OTHER = r"10-[KQ]\.html$"
_FORMS: dict[str, Literal["lines", "markdown"]] = {"finpile, lines": "lines", "finpile, grids": "markdown"}
_GRADES = ("found", "wrong", "unsure", "missing")
_SCRIPT = Path(__file__).with_name("item_peers.py")
#: Words of a page's top or end, and those of a section's beginning and end.
_PAGE_WORDS, _END_WORDS = 24, 3
#: The sections of one report; None for an item that is unsure.
_Sections = Mapping[str, str | None]


def reports_of(data: Path) -> dict[str, tuple[str, str]]:
    """Form and page of each report by its name."""
    members = chain(members_of(data / _REPORTS), members_of(data / _OTHER, _IN_OTHER))
    pages = sorted((Path(name).stem, raw.decode()) for name, raw in members)
    return {name: ("10-Q" if "10-q" in name.lower() else "10-K", page) for name, page in pages}


def grade(section: str | None, truth: Sequence[str] | None) -> str:
    """`truth`: the words of the item's section, None for an item that the report does not have."""
    if section is None:
        return "unsure"
    if truth is None:
        return "wrong"
    words = words_of(section)
    starts = _has(words[: _PAGE_WORDS + _END_WORDS], truth[:_END_WORDS])
    common = sum((Counter(words) & Counter(truth)).values())
    num_other = len(words) + len(truth) - 2 * common
    is_near = num_other <= _PAGE_WORDS or 2 * common >= 0.95 * (len(words) + len(truth))
    ends = _has(words[-_PAGE_WORDS - _END_WORDS :], truth[-_END_WORDS:]) and common >= 0.95 * len(truth)
    return "found" if starts and (is_near or ends) else "wrong"


def _has(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(words[at : at + len(part)] == part for at in range(len(words)))


def run_finpile(
    tables: Literal["lines", "markdown"], reports: Mapping[str, tuple[str, str]]
) -> tuple[dict[str, _Sections], dict[str, Any]]:
    """The sections of each report; seconds are those of the text and of its items."""
    to_text("<table><tr><td>a<td>1</table>", main_content=False, tables=tables)
    found: dict[str, _Sections] = {}
    start = time.process_time()
    for name, (form, page) in reports.items():
        text = normalise(to_text(page, main_content=False, tables=tables).text)
        items = find_items(text, form)
        certain = {item.number: text[item.start : item.end] for item in items.found}
        found[name] = {**dict.fromkeys(items.unsure), **certain}
    return found, {"version": "0.1.0", "cpu_s": time.process_time() - start}


def run_peer(
    python: str, reports: Mapping[str, tuple[str, str]], folder: Path
) -> tuple[dict[str, _Sections], dict[str, Any]]:
    """As `run_finpile`, of edgartools."""
    pages = folder / "pages"
    pages.mkdir()
    for name, (form, page) in reports.items():
        (pages / f"{name}.{form}.html").write_text(page)
    done = subprocess.run(
        [python, str(_SCRIPT), str(pages), str(folder / "out.json")], stdout=subprocess.PIPE, check=True
    )
    return json.loads((folder / "out.json").read_text()), json.loads(done.stdout.splitlines()[-1])


def graded(truth: Mapping[str, list[str]], sections: _Sections) -> dict[str, str]:
    """The grade of each item of the report, and of those that only the tool has."""
    named = {item: grade(section, truth.get(item)) for item, section in sections.items()}
    return {item: named.get(item, "missing") for item in truth} | {
        item: found for item, found in named.items() if item not in truth
    }


def measure(reports: Mapping[str, tuple[str, str]], python: str | None) -> tuple[list[dict[str, Any]], Counter[str]]:
    """A row for each tool, and how many items are labelled by links and by a reader."""
    truths, origins = {}, Counter[str]()
    for name, (form, page) in reports.items():
        truths[name], labelled = read_items(name, page, form)
        origins.update(reader=len(labelled), links=len(truths[name]) - len(labelled))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for tool in [*_FORMS, *(["edgartools"] if python else [])]:
            say(tool)
            found, run = (
                run_finpile(_FORMS[tool], reports) if tool in _FORMS else run_peer(str(python), reports, Path(folder))
            )
            grades = {name: graded(truth, found.get(name, {})) for name, truth in truths.items()}
            rows.append({"tool": tool, **run, "grades": grades})
    return rows, origins


def _counts(row: Mapping[str, Any], reports: Mapping[str, tuple[str, str]], form: str) -> list[str]:
    counts = Counter(
        grade for name, grades in row["grades"].items() if reports[name][0] == form for grade in grades.values()
    )
    first = sum(row["grades"][name].get("I.1" if form == "10-Q" else "1") == "found" for name in row["grades"])
    return [form, f"{row['tool']} {row['version']}", *(f"{counts[kind]:,}" for kind in _GRADES), f"{first}"]


def _raw(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the number of items that are found, and the grades of all others."""
    others = {
        name: {item: grade for item, grade in grades.items() if grade != "found"}
        for name, grades in row["grades"].items()
    }
    num_found = {name: len(grades) - len(others[name]) for name, grades in row["grades"].items()}
    return {**row, "grades": {name: found for name, found in others.items() if found}, "num_found": num_found}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "items", "Items of reports", ["finpile", "resiliparse"])
    report.add(*(__doc__ or "").strip().split("\n\n")[3:])
    reports = reports_of(arguments.data)
    rows, origins = measure(reports, arguments.peers)
    report.path.with_suffix(".json").write_text(json.dumps([_raw(row) for row in rows], indent=1) + "\n")
    num_bytes = sum(len(page.encode()) for _, page in reports.values())
    speeds = ", ".join(f"{row['tool']} {row['cpu_s'] / num_bytes * 1e6:.3f}" for row in rows)
    report.add(
        f"{len(reports)} reports of {num_bytes:,} bytes; {origins['links']} items by links, {origins['reader']} by the "
        f"reader. CPU seconds for each MB of HTML: {speeds}.",
        table(
            ["form", "tool", *_GRADES, "reports whose (Part I) Item 1 is found"],
            [_counts(row, reports, form) for form in ("10-K", "10-Q") for row in rows],
        ),
        "Items that are not found:",
        table(
            ["report", "item", *(row["tool"] for row in rows)],
            [
                [name, item, *(row["grades"][name].get(item, "–") for row in rows)]
                for name in reports
                for item in dict.fromkeys(chain.from_iterable(row["grades"][name] for row in rows))
                if any(row["grades"][name].get(item, "found") != "found" for row in rows)
            ],
        ),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
