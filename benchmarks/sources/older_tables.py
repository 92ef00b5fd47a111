"""Tables of filings without Inline XBRL, by rows and heads that a reader has labelled.

    python -m benchmarks.sources.older_tables [--data DATA] [--peers PYTHON] [--results FOLDER]

`--peers` is the Python of an environment with tools of `benchmarks.sources.tables`; those that it has are run.

The filings are those of the data with tables of data: raw Forms 8-K of edgar-crawler's tests, and one submission of
edgartools' tests. `older_tables.json` has the labels: for some rows of each table the label, the figures, and the heads
above each figure. HTML is of 2006 to 2018, text filings with `<TABLE>`, `<S>` and `<C>` are of 1994 to 2006. The scorer
is that of `benchmarks.sources.tables`:

- rows: labelled figures that are in one line with the label of their row, signed;
- lowest head, all heads: those in a cell of a Markdown table whose column has the lowest of their heads, or all;
- exact heads: those in a row of a grid whose head is all of their heads, and nothing else (letters and digits);
- figures: for all tables of the text filings with data, the numbers of the file that its text has, as often.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import members_of
from benchmarks.sources.table_peers import TOOLS
from benchmarks.sources.table_scores import Score, figures_of, read_grids, score, squashed
from benchmarks.sources.table_truth import FIGURE, Figure, Row, Table, Truth, signed
from benchmarks.sources.tables import run_peer
from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise
from finpile.clean.text_tables import with_tables
from finpile.config import SourceConfig
from finpile.documents.document import HTML, RawDocument
from finpile.plugins.format import FORMATS
from finpile.sources import read_stream

_LABELS = Path(__file__).with_name("older_tables.json")
_ARCHIVE = "fin_filings/edgar_crawler/RAW_8-K.zip"
_SUBMISSIONS = "fin_filings/edgar_full_submission_sgml.tar.zst"
_SOURCE = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=("*",))
_FORMS: dict[str, Literal["lines", "markdown"]] = {"finpile, lines": "lines", "finpile, grids": "markdown"}
_TABLE = re.compile(r"<TABLE>.*?</TABLE>", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"\d[\d,]*")
_PRINTED = (
    ("1001136_8K_2000_0000950124-00-004609", "ADDITIONAL"),
    ("1001258_8K_2005_0001125282-05-004198", "Finance income"),
    ("1001426_8K_2006_0001275287-06-004486", "Previously"),
    ("104169_8K_1995_0000899243-95-000310", "Per Note"),
    ("100240_8K_1994_0000950144-94-000103", "Interest capitalized"),
)


def labels() -> dict[str, dict[str, Truth]]:
    """The labelled rows of each filing, by the form of its tables."""
    found: dict[str, dict[str, list[Table]]] = defaultdict(lambda: defaultdict(list))
    for entry in json.loads(_LABELS.read_text())["tables"]:
        rows = tuple(
            Row(
                label,
                tuple(
                    Figure(_signed(value), tuple(heads)) for value, heads in zip(values, entry["heads"], strict=True)
                ),
            )
            for label, values in entry["rows"]
        )
        found[entry["form"]][entry["filing"]].append(Table(rows, ()))
    return {form: {name: Truth((), tuple(of)) for name, of in filings.items()} for form, filings in found.items()}


def _signed(value: str) -> str:
    match = FIGURE.search(value)
    if match is None:
        raise ValueError(f"{value!r} is not a figure")
    return signed(match)


def documents_of(data: Path, names: Sequence[str]) -> Iterator[tuple[str, list[RawDocument]]]:
    """The documents of each filing."""
    with zipfile.ZipFile(data / _ARCHIVE) as files:
        raw = {Path(name).stem: files.read(name) for name in files.namelist() if Path(name).stem in names}
    raw |= {Path(name).stem: data for name, data in members_of(data / _SUBMISSIONS) if Path(name).stem in names}
    for name in names:
        content = raw[name]
        if b"<DOCUMENT>" not in content:
            content = b"<DOCUMENT>\n<TYPE>8-K\n<FILENAME>a.htm\n<TEXT>" + content + b"</TEXT>\n</DOCUMENT>\n"
        found = read_stream(FORMATS.get("edgar"), io.BytesIO(content), name, _SOURCE)
        yield name, [document for document in found if isinstance(document, RawDocument)]


def text_of(document: RawDocument, tables: Literal["lines", "markdown"]) -> str:
    """The text of a document as `clean` has it."""
    if document.media_type == HTML:
        return normalise(to_text(document.text, main_content=False, tables=tables).text)
    return normalise(with_tables(document.text, tables))


def measure(data: Path, python: str | None) -> Iterator[dict[str, Any]]:
    """A row for each form of tables and each tool."""
    for form, truths in labels().items():
        filings = dict(documents_of(data, list(truths)))
        num_bytes = sum(len(document.text.encode()) for documents in filings.values() for document in documents)
        whole = {"form": form, "filings": len(truths), "tables": sum(len(truth.tables) for truth in truths.values())}
        if form == "text":
            texts = {name: "\n".join(document.text for document in documents) for name, documents in filings.items()}
            yield {**whole, "tool": "as filed", "cpu_s": 0.0, "bytes": num_bytes, **scored(truths, texts)}
        for tool, tables in _FORMS.items():
            say(f"{form}: {tool}")
            start = time.process_time()
            texts = {
                name: "\n".join(text_of(document, tables) for document in documents)
                for name, documents in filings.items()
            }
            seconds = time.process_time() - start
            yield {**whole, "tool": tool, "cpu_s": seconds, "bytes": num_bytes, **scored(truths, texts)}
        if form == "html" and python:
            yield from _peers(python, truths, filings, {**whole, "bytes": num_bytes})


def _peers(
    python: str, truths: Mapping[str, Truth], filings: Mapping[str, list[RawDocument]], whole: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder, "pages")
        pages.mkdir()
        for name, documents in filings.items():
            (pages / f"{name}.html").write_text("\n".join(document.text for document in documents))
        for tool in TOOLS:
            texts = Path(folder, tool)
            texts.mkdir()
            say(tool)
            if run := run_peer(python, tool, pages, texts):
                read = {name: (texts / f"{name}.txt").read_text() for name in truths}
                yield {**whole, "tool": f"{tool} {run['version']}", "cpu_s": run["cpu_s"], **scored(truths, read)}


def scored(truths: Mapping[str, Truth], texts: Mapping[str, str]) -> dict[str, Any]:
    """The counts of all labelled figures in the texts of the filings, and those that are elsewhere."""
    total = Score()
    misses: list[str] = []
    for name, truth in truths.items():
        found: list[str] = []
        total.add(score(truth, texts[name], found))
        misses += [f"{name}: {miss}" for miss in found]
    counts = {key: getattr(total, key) for key in Score.__slots__}
    heads = [pair for name, truth in truths.items() for pair in exact_heads(truth, texts[name])]
    others = sorted({f"{wanted} / {given}" for wanted, given in heads if wanted != given})
    size = sum(len(text.encode()) for text in texts.values())
    exact = {"num_exact": len(heads) - sum(wanted != given for wanted, given in heads), "num_compared": len(heads)}
    return {"text_bytes": size, **counts, **exact, "misses": misses, "other_heads": others}


def exact_heads(truth: Truth, text: str) -> list[tuple[str, str]]:
    """For each labelled figure in its row of a grid: the head of its column as labelled, and as the grid has it."""
    found = []
    grids = list(read_grids(text.split("\n")))
    for row in truth.rows:
        values = [figure.value for figure in row.figures]
        for grid in grids:
            at = next(
                (at for at, cells in enumerate(grid.rows) if _is_row(cells, grid.squashed[at], row.label, values)), 0
            )
            if not at:
                continue
            columns = iter(range(1, len(grid.rows[at])))
            for figure in row.figures:
                column = next(place for place in columns if figure.value in figures_of(grid.rows[at][place]))
                head = grid.squashed[0][column] if column < len(grid.squashed[0]) else ""
                found.append((squashed("".join(figure.heads)), head))
            break
    return found


def _is_row(cells: Sequence[str], names: Sequence[str], label: str, values: Sequence[str]) -> bool:
    left = iter(cells[1:])
    return any(squashed(label) in name for name in names) and all(
        any(value in figures_of(cell) for cell in left) for value in values
    )


def figures_kept(data: Path) -> dict[str, tuple[int, int, int]]:
    """Text tables, their numbers, and those that the text has, by form of tables; of all raw Forms 8-K in text."""
    counts = dict.fromkeys(_FORMS, (0, 0, 0))
    with zipfile.ZipFile(data / _ARCHIVE) as files:
        texts = [files.read(name).decode("latin-1") for name in sorted(files.namelist()) if name.endswith(".txt")]
    for text in texts:
        for found in _TABLE.finditer(text):
            if "<S>" not in found[0].upper():
                continue
            numbers = Counter(_NUMBER.findall(found[0]))
            for tool, tables in _FORMS.items():
                kept = (numbers & Counter(_NUMBER.findall(with_tables(found[0], tables)))).total()
                num, total, num_kept = counts[tool]
                counts[tool] = (num + 1, total + numbers.total(), num_kept + kept)
    return counts


def shown(row: Mapping[str, Any]) -> list[str]:
    """The columns of the page."""

    def share(part: str, whole: str) -> str:
        return f"{row[part]} of {row[whole]}" if row[part] else "–"

    parts = [("num_in_line", "num_in_rows"), ("num_lowest", "num_heads"), ("num_all", "num_levels")]
    parts.append(("num_exact", "num_compared"))
    sizes = [f"{row['text_bytes'] / row['bytes']:.2f}", f"{row['cpu_s'] / row['bytes'] * 1e6:.3f}"]
    return [row["tool"], *(share(*part) for part in parts), *sizes]


def printed(data: Path) -> Iterator[str]:
    """Some tables of text filings, as filed and in both forms."""
    for name, documents in documents_of(data, [name for name, _ in _PRINTED]):
        text = next(text for of, text in _PRINTED if of == name)
        tables = (found[0] for document in documents for found in _TABLE.finditer(document.text))
        chosen = next(found for found in tables if text in found and "<S>" in found)
        yield f"### {name}"
        for found in (chosen.strip(), *(normalise(with_tables(chosen, form)).strip() for form in _FORMS.values())):
            yield f"```text\n{found}\n```"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "older_tables", "Tables of older filings", ["finpile", "resiliparse"])
    report.add(*(__doc__ or "").strip().split("\n\n")[3:])
    rows = list(measure(arguments.data, arguments.peers))
    raw = [{key: len(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]
    report.path.with_suffix(".json").write_text(json.dumps(raw, indent=1) + "\n")
    for form, title in (("html", "HTML without Inline XBRL"), ("text", "Text filings")):
        of_form = [row for row in rows if row["form"] == form]
        report.add(
            f"## {title}",
            f"{of_form[0]['tables']} tables of {of_form[0]['filings']} filings.",
            table(
                ["tool", "rows", "lowest head", "all heads", "exact heads", "bytes of text", "CPU s/MB"],
                [shown(row) for row in of_form],
            ),
            "Figures of finpile's grids that are not in their row or under all of their heads:",
            "\n".join(f"- {miss}" for row in of_form if row["tool"] == "finpile, grids" for miss in row["misses"])
            or "None.",
            "Heads of finpile's grids that are not exact, as labelled / as they are:",
            "\n".join(f"- {pair}" for row in of_form if row["tool"] == "finpile, grids" for pair in row["other_heads"])
            or "None.",
        )
    kept = figures_kept(arguments.data)
    lines = [f"{tool}: {kept[tool][2]:,} of {kept[tool][1]:,} numbers in {kept[tool][0]} tables" for tool in _FORMS]
    report.add("Numbers of all text tables, with those of marks and pages: " + "; ".join(lines) + ".")
    report.add("## Tables as filed, as lines and as grids", *printed(arguments.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
