"""Every format contains the same table, for any names."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import NearConfig
from finpile.errors import InputError
from finpile.report.eval_sets import EvalSetFacts, evaluation_table
from finpile.report.figures import Cell
from finpile.report.files import write_reports
from finpile.report.html import BuildFacts, build_page
from finpile.report.near import near_table
from finpile.report.removed import removal_by_source_table, removal_table
from finpile.report.render import to_csv, to_html, to_json, to_markdown, to_tex
from finpile.report.statistics import (
    CorpusStatistics,
    RemovalCount,
    SourceStatistics,
    YearStatistics,
)
from finpile.report.table import Column, Row, RowKind, Table
from finpile.report.table1 import table1
from finpile.report.table2 import documents_by_year, public_by_year, table2, year_labels

#: Characters that pdfLaTeX lacks, beside some that it has.
SCRIPTS = "Zürich Łódź ąę « » 中文 नमस्ते Ελλάδα עברית 😀 ␣ − \u200b\u00a0\u00ad\ufeff‚‹œ"
NASTY = 'A&B_50% #1 $x$ {y} ~^\\ <script>alert("1")</script> | `z` *w*, "q"\nnext'
VOID = {"meta", "input"}


def source(dataset: str, name: str, docs: int = 3, tokens: int = 40) -> SourceStatistics:
    return SourceStatistics(
        dataset=dataset, source=name, num_docs=docs, num_chars=200, num_tokens=tokens, num_bytes=210
    )


def year(name: str, when: int | None, docs: int, first: date | None = None, last: date | None = None) -> YearStatistics:
    return YearStatistics(
        dataset="FinPile", source=name, year=when, num_docs=docs, num_tokens=docs * 10, first_day=first, last_day=last
    )


def statistics(nasty: str = NASTY) -> CorpusStatistics:
    return CorpusStatistics(
        sources=(
            source("FinPile", "News", 6, 60),
            source("FinPile", nasty),
            source("Wiki", "Wiki"),
            source("Web", "Wiki"),
        ),
        years=(
            year("News", 1987, 4, date(1987, 2, 26), date(1987, 10, 20)),
            year("News", 1990, 2, date(1990, 1, 3), date(1990, 12, 1)),
            year(nasty, None, 3),
            YearStatistics(dataset="Wiki", source="Wiki", year=2001, num_docs=3, num_tokens=40),
            YearStatistics(dataset="Web", source="Wiki", year=None, num_docs=3, num_tokens=40),
        ),
    )


def facts(**changes: object) -> BuildFacts:
    read = {("FinPile", "News"): 10}
    values = {"name": NASTY, "num_read": 19, "num_heldout": 2, "details": (("Version", NASTY),), "read_by_source": read}
    values |= changes
    return BuildFacts(**values)  # type: ignore[arg-type]


REMOVALS = [
    RemovalCount(dataset="FinPile", source="News", stage="ingest", reason="bad_json", num_docs=1, num_bytes=9),
    RemovalCount(dataset="FinPile", source="News", stage="clean", reason=NASTY, num_docs=1, num_spans=4, num_bytes=70),
]


EVALUATION = (
    EvalSetFacts(
        set="LAMBADA",
        items=5153,
        items_not_checkable=3,
        items_found=2000,
        documents=1,
        first_found=("1032", "3139"),
    ),
    EvalSetFacts(set="Short", items=2, items_not_checkable=2, items_found=0, documents=0),
    EvalSetFacts(set="Clean", items=9, items_not_checkable=0, items_found=0, documents=0),
)
NEAR = near_table(
    NearConfig(ngram=5, bands=450, rows=20, numbers="any"),
    (0.0004, 0.0163, 0.3019, 0.9947, 1.0),
    {
        "candidate_pairs": 12_345,
        "large_buckets": 6,
        "compared_pairs": 7_890,
        "verified_pairs": 4_321,
        "removed": 1_234,
    },
)


class Balanced(HTMLParser):
    """Fails on a tag that is closed out of turn; collects tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(markup: str) -> Balanced:
    parser = Balanced()
    parser.feed(markup)
    parser.close()
    assert parser.open == []
    return parser


def all_tables() -> list[Table]:
    tables = [table1(statistics()), table2(statistics()), documents_by_year(statistics())]
    tables += [public_by_year(statistics()), removal_by_source_table(REMOVALS, {("FinPile", "News"): 10})]
    return [*tables, removal_table(REMOVALS, 19), NEAR, evaluation_table(EVALUATION)]


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.name)
def test_csv_and_json_hold_the_exact_values(table: Table) -> None:
    values = [[cell.value for cell in row.cells] for row in table.rows]
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    width = len(table.columns)
    assert [row[-width:] for row in rows[1:]] == [["" if v is None else str(v) for v in line] for line in values]
    assert [list(row["values"].values()) for row in json.loads(to_json(table))["rows"]] == values


STARTS = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://x","y")']


@given(st.lists(st.one_of(st.sampled_from(FORMULAS), st.text(), st.integers(), st.none()), min_size=1, max_size=4))
def test_no_text_of_a_csv_is_a_formula(values: list[str | int | None]) -> None:
    """Of headings, groups and cells; numbers are as they are, and other texts too."""
    columns = tuple(Column(key=str(value), title="Column") for value in values)
    cells = tuple(Cell("shown", value) for value in values)
    row = Row(kind=RowKind.PLAIN, cells=cells, group="=cmd|'/C calc'!A0")
    table = Table(name="t", title="T", caption="C", columns=columns, rows=(row,))
    (headings, found) = csv.reader(io.StringIO(to_csv(table), newline=""))
    assert found[1] == "'=cmd|'/C calc'!A0"
    assert headings[2:] == [f"'{key}" if key.startswith(STARTS) else key for key in map(str, values)]
    for text, value in zip(found[2:], values, strict=True):
        if isinstance(value, str) and value.startswith(STARTS):
            assert text == f"'{value}"
        else:
            assert text == ("" if value is None else str(value))


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.name)
def test_markdown_keeps_one_cell_a_column(table: Table) -> None:
    lines = [line for line in to_markdown(table).splitlines() if line.startswith("| ")]
    assert len(lines) == len(table.rows) + 2
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 1}


def test_markdown_of_a_total_without_a_figure_has_no_stars() -> None:
    row = Row(kind=RowKind.TOTAL, cells=(Cell("TOTAL", None), Cell("", None), Cell("1", 1)))
    columns = tuple(Column(key=key, title=key) for key in "abc")
    lines = to_markdown(Table(name="t", title="T", caption="C", columns=columns, rows=(row,))).splitlines()
    assert lines[-1] == "| **TOTAL** |  | **1** |"


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.name)
def test_tex_keeps_one_cell_a_column_and_no_sign_of_its_own(table: Table) -> None:
    text = to_tex(table)
    lines = [line for line in text.splitlines() if line.endswith(r" \\")]
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(table.columns) - 1}
    assert not re.search(r"(?<!\\)[#$%_^~]", re.sub(r"\\label{.*}|^\\providecommand.*", "", text))
    assert re.sub(r"\\[{}]", "", text).count("{") == re.sub(r"\\[{}]", "", text).count("}")


@pytest.mark.parametrize("table", all_tables(), ids=lambda table: table.name)
def test_html_shows_every_cell_and_runs_nothing(table: Table) -> None:
    page = parsed(to_html(table))
    assert "script" not in page.tags
    assert all(cell.text in page.text for row in table.rows for cell in row.cells)


def test_tables_and_charts_of_the_page_scroll_in_boxes_of_their_own() -> None:
    """A page of the width of a phone then cuts nothing that a finger cannot reach."""
    corpus = statistics()
    tables = [table1(corpus), table2(corpus), documents_by_year(corpus), public_by_year(corpus)]
    page = build_page(corpus, REMOVALS, facts(), tables)
    wide = re.findall(r"(<div class=\"?scroll[^>]*>)?<(?:table|svg)\b", page)
    assert len(wide) > 5 and all(wide)
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", page)


@given(st.text())
def test_no_name_breaks_the_page(name: str) -> None:
    corpus = statistics(name + "!")  # never equal to another source
    page = parsed(build_page(corpus, REMOVALS, facts(name=name), [table1(corpus), documents_by_year(corpus)]))
    assert page.tags.count("table") == 4
    assert "script" not in page.tags


def test_page_needs_nothing_from_elsewhere() -> None:
    page = build_page(statistics(), REMOVALS, facts(), all_tables()[:3])
    assert not re.search(r"(src=|@import|url\(|https?://|<link)", page)


def test_page_reports_documents_that_are_unaccounted_for() -> None:
    kept = statistics().num_docs
    read = kept + 2 + 2
    assert "do not add up" not in build_page(statistics(), REMOVALS, facts(num_read=read), [])
    assert "do not add up" in build_page(statistics(), REMOVALS, facts(num_read=read + 1), [])


def test_page_shows_the_curve_and_counts_of_near_duplicates_if_enabled() -> None:
    page = parsed(build_page(statistics(), REMOVALS, facts(near=NEAR), [])).text
    rows = ["0.50.0004", "0.60.0163", "0.70.3019", "0.80.9947", "0.91.0000"]
    assert all(row in page.replace("\n", "") for row in rows)
    assert "1 − (1 − J^20)^450" in page
    assert all(f"{number:,}" in page for number in (12_345, 7_890, 4_321, 1_234))
    assert "all their pairs: 6." in page
    assert "J^20" not in parsed(build_page(statistics(), REMOVALS, facts(), [])).text


def test_page_names_the_items_found_of_each_evaluation_set() -> None:
    page = parsed(build_page(statistics(), REMOVALS, facts(evaluation=EVALUATION), [])).text
    assert "LAMBADA: 1032, 3139, and 1,998 more." in page
    assert "Short: no item is long enough to be looked for." in page
    assert "Clean:" not in page
    assert "Evaluation sets" not in parsed(build_page(statistics(), REMOVALS, facts(), [])).text


def test_reports_are_the_same_bytes_again(tmp_path: Path) -> None:
    def written(folder: Path) -> dict[str, bytes]:
        urls = write_reports(str(folder), statistics(), REMOVALS, facts())
        assert sorted(urls) == sorted(str(path) for path in folder.iterdir())
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first, second = written(tmp_path / "a"), written(tmp_path / "b")
    assert first == second
    expected = {"table1.tex", "table2.csv", "table2_documents.md", "table2_public.md", "removed_by_source.csv"}
    assert expected | {"statistics.json", "index.html"} <= set(first)


def test_statistics_are_written_row_by_row() -> None:
    written = statistics().to_json()
    years = [(row["source"], row["year"], row["num_docs"], row["first_day"]) for row in written["years"]]
    expected = [(row.source, row.year, row.num_docs, row.first_day) for row in statistics().years]
    assert years == [(*row[:3], row[3] and row[3].isoformat()) for row in expected]
    assert list(written) == ["version", "private", "sources", "years", "dates"]
    assert "num_effective_tokens" not in written["sources"][0]


def test_statistics_reject_repeated_sources_and_negative_counts() -> None:
    with pytest.raises(InputError, match="FinPile/News twice"):
        CorpusStatistics(sources=(source("FinPile", "News"), source("FinPile", "News")))
    with pytest.raises(InputError, match="num_docs of FinPile/News is -1"):
        source("FinPile", "News", docs=-1)


def test_years_name_their_months_only_if_they_are_cut() -> None:
    rows = statistics().years[:3]
    assert list(year_labels(rows).values()) == ["1987 (from February)", "1990", "undated"]
    assert list(year_labels(rows[:1]).values()) == ["1987 (from February to October)"]
    whole = year("News", 1988, 1, date(1988, 1, 31), date(1988, 12, 1))
    assert list(year_labels([whole]).values()) == ["1988"]
    month = year("News", 1988, 1, date(1988, 5, 3), date(1988, 5, 4))
    assert list(year_labels([month]).values()) == ["1988 (May)"]
    last = year("News", 1989, 1, date(1989, 1, 3), date(1989, 11, 4))
    assert list(year_labels([whole, last]).values()) == ["1988", "1989 (to November)"]


def test_table2_counts_every_document_once_undated_ones_included() -> None:
    table = documents_by_year(statistics())
    assert [row.cells[-1].value for row in table.rows] == [4, 2, 3, 9]
    assert table.rows[-1].kind is RowKind.TOTAL


def test_public_sources_of_one_name_have_different_labels() -> None:
    labels = [row.cells[0].text for row in table1(statistics()).rows]
    assert {"Wiki (Wiki)", "Wiki (Web)"} < set(labels)
    assert labels[:2] == ["FinPile", "News"]


def test_a_private_dataset_of_one_source_of_its_name_is_one_row() -> None:
    corpus = CorpusStatistics(sources=(source("Notes", "Notes"),), private=("Notes",))
    assert [row.cells[0].text for row in table1(corpus).rows] == ["Notes", "TOTAL"]


@pytest.mark.parametrize("names", [["Diary"], ["Notes", "Diary"]])
def test_a_private_dataset_with_a_source_of_another_name_has_a_row_for_each(names: list[str]) -> None:
    corpus = CorpusStatistics(sources=tuple(source("Notes", name) for name in names), private=("Notes",))
    assert [row.cells[0].text for row in table1(corpus).rows] == ["Notes", *sorted(names), "TOTAL"]


def test_public_datasets_are_ordered_by_their_largest_source() -> None:
    rows = [("A", "Big", 50), ("A", "Small", 1), ("B", "Even", 30), ("B", "Odd", 40)]
    corpus = CorpusStatistics(sources=tuple(source(dataset, name, tokens=tokens) for dataset, name, tokens in rows))
    labels = [row.cells[0].text for row in table1(corpus).rows]
    assert [label for label in labels if label.isalpha() and not label.isupper()] == ["Big", "Small", "Odd", "Even"]


def test_table2_and_its_public_companion_have_each_document_once() -> None:
    private, public = documents_by_year(statistics()), public_by_year(statistics())
    assert [row.cells[0].text for row in public.rows] == ["2001", "undated", "Total"]
    assert [row.cells[-1].value for row in public.rows] == [3, 3, 6]
    assert private.rows[-1].cells[-1].value == 9
    alone = CorpusStatistics(sources=statistics().sources, years=statistics().years, private=())
    assert not public_by_year(alone).rows[:-1], "where no dataset is private, Table 2 covers all"


def test_warnings_come_before_all_figures() -> None:
    page = build_page(statistics(), REMOVALS, facts(warnings=(NASTY, "second")), all_tables()[:3])
    assert page.count("role=alert") == 2
    assert page.index("<h1>") < page.index("role=alert") < page.index("second") < page.index("class=tiles")
    assert NASTY in parsed(page).text


def test_an_empty_corpus_still_has_tables_and_a_page(tmp_path: Path) -> None:
    write_reports(str(tmp_path), CorpusStatistics(sources=()), [], facts(num_read=0, num_heldout=0))
    assert "do not add up" not in (tmp_path / "index.html").read_text()


def test_tex_has_only_characters_that_pdflatex_sets_or_their_codes() -> None:
    tex = to_tex(worded(SCRIPTS))
    left = re.sub(r"\\unicodechar\{(.)\}\{([0-9A-F]{4,})\}", lambda found: same_code(*found.groups()), tex)
    assert {sign for sign in left if not sign.isascii()} == set("üŁóźœ\u00a0\u00ad") - {"\u00a0", "\u00ad"}
    assert tex.startswith(r"\providecommand{\unicodechar}")
    assert "unicodechar" not in to_tex(worded("Zürich"))


def same_code(sign: str, code: str) -> str:
    assert ord(sign) == int(code, 16)
    return ""


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is absent")
def test_tex_compiles(tmp_path: Path) -> None:
    body = to_tex(worded(SCRIPTS)) + to_tex(worded(NASTY))
    page = "\\documentclass{article}\n\\usepackage{booktabs}\n\\begin{document}\n" + body + "\\end{document}\n"
    (tmp_path / "page.tex").write_text(page, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    for _ in range(2):  # the second run reads what the first one wrote of captions
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stdout[-2000:].decode(errors="replace")


def worded(text: str) -> Table:
    return Table(
        name="words",
        title="Words",
        caption=f"Words: {text}",
        columns=(Column(key="word", title="Word"), Column(key="tokens", title=text, is_text=True)),
        rows=(Row(cells=(Cell(text, text), Cell(text, text))),),
        footnotes=(text,),
    )


def test_columns_of_text_are_left_aligned() -> None:
    assert "| :-- | :-- |" in to_markdown(worded("x"))
    assert r"\begin{tabular}{ll}" in to_tex(worded("x"))
    assert '<td style="text-align:left">x</td>' in to_html(worded("x"))
