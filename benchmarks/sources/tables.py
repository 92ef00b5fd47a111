"""Tables of filings beside other tools: figures, their rows and their heads, by one scorer.

    python -m benchmarks.sources.tables [--data DATA] [--peers PYTHON] [--every N] [--results FOLDER]

`--peers` is the Python of an environment with the other tools (`python -m pip install edgartools docling markitdown
inscriptis html2text trafilatura sec-parser`); `--every 3` reads each third page.

The pages are the reports in Inline XBRL of `fin_filings/edgar_10k10q_ixbrl_html.tar.zst`, and the 10-K and 10-Q of
`edgar_other_forms_html.tar.zst`, both from the tests of edgartools. What they show is read by the HTML
table model over the tree of the page (`table_truth`), not by FinPile, and one scorer takes all texts (`table_scores`):

- figures: visible numeric facts that are in the text with their sign, as often as in the page;
- rows: of the facts in tables whose row has a label, those in one line with the label and the others of the row;
- lowest head: of the facts in tables below a head, those in a cell of a Markdown or pipe table whose column has it;
- all heads: of those below several heads, the ones whose column has all of them.

Bytes are those of the text, for each byte of FinPile's lines. CPU seconds for each MB of HTML are those of the tool in
one process, start and imports left out.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import members_of
from benchmarks.sources.table_peers import TOOLS
from benchmarks.sources.table_scores import Score, score
from benchmarks.sources.table_truth import Truth, read_truth
from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise

_REPORTS = "fin_filings/edgar_10k10q_ixbrl_html.tar.zst"
_OTHER = "fin_filings/edgar_other_forms_html.tar.zst"
_IN_OTHER = r"10-[KQ]\.html$"
_FORMS: dict[str, Literal["lines", "markdown"]] = {"finpile, lines": "lines", "finpile, grids": "markdown"}
_BLANKS = re.compile("[ \u00a0]+")
_SCRIPT = Path(__file__).with_name("table_peers.py")


def pages_of(data: Path, every: int) -> dict[str, str]:
    """Each N-th page by its name."""
    members = chain(members_of(data / _REPORTS), members_of(data / _OTHER, _IN_OTHER))
    found = sorted((Path(name).stem, raw.decode()) for name, raw in members)
    return dict(found[::every])


def run_finpile(tables: Literal["lines", "markdown"], pages: Path, texts: Path) -> dict[str, Any]:
    """As a run of `table_peers`."""
    to_text("<table><tr><td>a<td>1</table>", main_content=False, tables=tables)
    seconds = 0.0
    for path in sorted(pages.glob("*.html")):
        page = path.read_text()
        start = time.process_time()
        text = normalise(to_text(page, main_content=False, tables=tables).text)
        seconds += time.process_time() - start
        (texts / f"{path.stem}.txt").write_text(text)
    return {"version": "0.1.0", "cpu_s": seconds, "num_failed": 0}


def run_peer(python: str, tool: str, pages: Path, texts: Path) -> dict[str, Any] | None:
    """None for a tool that does not run in that environment; the reason is printed."""
    done = subprocess.run([python, str(_SCRIPT), tool, str(pages), str(texts)], stdout=subprocess.PIPE, text=True)
    return None if done.returncode else json.loads(done.stdout.splitlines()[-1])


def scored(truths: dict[str, Truth], texts: Path) -> tuple[Score, int]:
    """The score of all pages, and the bytes of their texts."""
    total, size = Score(), 0
    for name, truth in truths.items():
        text = (texts / f"{name}.txt").read_text()
        total.add(score(truth, text))
        size += len(text.encode())
    return total, size


def measure(pages: dict[str, str], python: str | None) -> Iterator[dict[str, Any]]:
    """A row for each tool."""
    num_bytes = sum(len(page.encode()) for page in pages.values())
    truths = {name: read_truth(page) for name, page in pages.items()}
    with tempfile.TemporaryDirectory() as folder:
        read = Path(folder, "pages")
        read.mkdir()
        for name, page in pages.items():
            (read / f"{name}.html").write_text(page)
        for tool in [*_FORMS, *(TOOLS if python else [])]:
            say(tool)
            texts = Path(folder, tool)
            texts.mkdir()
            if tool in _FORMS:
                run: dict[str, Any] | None = run_finpile(_FORMS[tool], read, texts)
            else:
                run = run_peer(str(python), tool, read, texts)
            if run is None:
                continue
            found, size = scored(truths, texts)
            counts = {key: getattr(found, key) for key in Score.__slots__}
            yield {"tool": tool, "html_bytes": num_bytes, "text_bytes": size, **run, **counts}


def shown(row: dict[str, Any], lines_bytes: int) -> list[str]:
    """The columns of the page."""

    def share(part: str, whole: str) -> str:
        return f"{row[part] / row[whole]:.2%}" if row[part] else "–"

    return [
        f"{row['tool']} {row['version']}",
        share("num_found", "num_figures"),
        share("num_in_line", "num_in_rows"),
        share("num_lowest", "num_heads"),
        share("num_all", "num_levels"),
        f"{row['text_bytes'] / lines_bytes:.2f}",
        f"{row['cpu_s'] / row['html_bytes'] * 1e6:.3f}",
        f"{row['num_failed']}",
    ]


#: Tables of different kinds: what it is, the archive, a part of the page's name, a text in the table, and the flaws
#: that a reader found.
_NOTES = (
    "a mark of a footnote that has a cell of its own is a column of its own: it cannot be told from a negative figure"
)
_EMPTY = "in lines, empty cells vanish, so the column of the figures behind them is lost"
_KINDS: list[tuple[str, str, str, str, str]] = [
    ("Statement of operations, two levels of heads", _REPORTS, "aapl/10q/", "Research and development", "none"),
    ("Statement of equity, with empty cells", _REPORTS, "unp/10q/", "Conversion, stock option", _EMPTY),
    (
        "Two halves of a list beside each other", _REPORTS, "unh/10k/", "Feb 2024",
        "two rows of the list are one row, as in the page; the head of the second half is `(continued)`",
    ),
    ("Ranges as labels", _REPORTS, "crm/10k/", "$218.21", "none"),
    ("Figures in words", _REPORTS, "ba/10k/", "$171.5854", "none"),
    ("Percentages, signs in cells of their own, blank cells", _REPORTS, "nke/10k/", "TOTAL REVENUES", _EMPTY),
    ("Debt with marks of footnotes", _REPORTS, "jnj/10k/", "Notes due 2028", _NOTES),
    (
        "Segments, with heads again below data", _REPORTS, "xom/10q/", "Segment Total",
        "heads further down are rows; in the grid, figures of the reconciliations are below `Upstream Non-U.S.`, the "
        "only head over them",
    ),
    ("Press release without Inline XBRL", _OTHER, "BuckleInc.8-K.EX99.1", "NET INCOME", "none"),
    (
        "Proxy statement, names over several rows", _OTHER, "cabot.DEF14A", "Stock Awards",
        f"a name is in the first of its rows only; {_NOTES}; {_EMPTY}",
    ),
    (
        "Fees of a fund, with footnotes in the table", _OTHER, "Delaware.485BPOS", "Management fees",
        "footnotes are rows with one cell",
    ),
]  # fmt: skip
_TABLE = re.compile(r"<table(?:(?!<table).)*?</table>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def table_with(page: str, text: str) -> str:
    """The first table with more than three rows, and no table inside, that has the text."""
    tables = (match[0] for match in _TABLE.finditer(page))
    return next(
        found for found in tables if text in html.unescape(_TAG.sub("", found)) and found.lower().count("<tr") > 3
    )


def printed(data: Path) -> Iterator[str]:
    """Each table of `_KINDS` in both forms."""
    pages = {(archive, name): raw for archive in (_REPORTS, _OTHER) for name, raw in members_of(data / archive)}
    for number, (kind, archive, name, text, flaws) in enumerate(_KINDS, 1):
        raw = next(raw for (of, member), raw in pages.items() if of == archive and name in member)
        found = table_with(raw.decode(errors="replace"), text)
        yield f"### {number}. {kind} ({name})"
        for tables in _FORMS.values():
            written = normalise(to_text(found, main_content=False, tables=tables).text)
            yield f"```text\n{_BLANKS.sub(' ', written)}\n```"
        yield f"Flaws: {flaws}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "tables", "Tables of filings", ["finpile", "resiliparse"])
    report.add(*(__doc__ or "").strip().split("\n\n")[3:])
    pages = pages_of(arguments.data, arguments.every)
    rows = list(measure(pages, arguments.peers))
    report.path.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    first = rows[0]
    report.add(
        f"{len(pages)} pages of {first['html_bytes']:,} bytes; {first['num_figures']:,} figures, "
        f"{first['num_in_rows']:,} in rows with a label, {first['num_heads']:,} below a head, "
        f"{first['num_levels']:,} below several.",
        table(
            ["tool", "figures", "rows", "lowest head", "all heads", "bytes", "CPU s/MB", "pages that failed"],
            [shown(row, first["text_bytes"]) for row in rows],
        ),
    )
    report.add("## Tables of different kinds, as lines and as grids", *printed(arguments.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
