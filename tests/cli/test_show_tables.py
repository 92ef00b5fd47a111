"""`finpile show --tables`: the tables of a document's page as grids, from its input file."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from tests.support.filings import CORPUS, made_page, submission, write_filings

TEXT = """Sales were 12.
<TABLE>
<CAPTION>
                 1995
<S>              <C>
Sales            $12
Costs             34
</TABLE>
"""
GRID = """\
|                   |        |
| ----------------- | ------ |
| Revenues of cafés | $1,234 |
| Costs of cafés    |    $56 |"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with two tables, a copy of it, and a text."""
    folder, day = tmp_path_factory.mktemp("tables"), date(2021, 3, 1)
    second = "<p>Item 7. Management's Discussion and Analysis</p><table><tr><td>a | b<td>2<tr><td>c<td>30</table>"
    report = submission(made_page(1, 2020, {"Revenues": "1,234", "Costs": "56"}, f"{second}<p>| a |</p>"), day)
    plain = submission(TEXT, day, accession="0000000001-24-000002").replace("report.htm", "report.txt")
    write_filings(folder / "files", {0: (day, report), 1: (day, report), 2: (day, plain)})
    sources = [{**CORPUS["sources"][0], "clean": {"items": "documents"}}]
    (folder / "corpus.yaml").write_text(yaml.safe_dump({**CORPUS, "sources": sources, "root": str(folder / "files")}))
    build(load_config(folder / "corpus.yaml"), str(folder / "out"), Engine(num_workers=1), until="split")
    return folder


def show(built: Path, name: str, *options: str) -> Result:
    return CliRunner().invoke(finpile, ["show", str(built / "out"), name, "--tables", *options])


@pytest.mark.parametrize("part", ["text-1", "item-7"])
def test_the_tables_of_the_page_are_printed_as_grids(built: Path, part: str) -> None:
    found = show(built, next(name for name in locators(built) if name.endswith(part)))
    assert (found.exit_code, found.stderr) == (0, "")
    _, first, second = found.stdout.strip("\n").split("\n\n")
    assert first == GRID
    assert second.split("\n") == ["|        |    |", "| ------ | -- |", "| a \\| b |  2 |", "| c      | 30 |"]


def locators(built: Path) -> list[str]:
    listed = CliRunner().invoke(finpile, ["ls", str(built / "out"), "--json"])
    return [row["locator"] for row in json.loads(listed.stdout)["documents"]]


def test_tables_of_a_text_filing_are_grids(built: Path) -> None:
    plain = next(name for name in locators(built) if name.startswith("002"))
    _, grid = show(built, plain).stdout.strip("\n").split("\n\n")
    assert [line.split() for line in grid.split("\n")[2:]] == [
        ["|", "Sales", "|", "$12", "|"],
        ["|", "Costs", "|", "34", "|"],
    ]


def test_json_has_the_tables(built: Path) -> None:
    found = json.loads(show(built, locators(built)[0], "--json").stdout)
    assert found["tables"][0] == GRID


def test_other_documents_have_no_tables(built: Path, tmp_path: Path) -> None:
    plain = next(name for name in locators(built) if name.startswith("002"))
    copy = next(name for name in ("000.txt", "001.txt") if not any(one.startswith(name) for one in locators(built)))
    listed = CliRunner().invoke(finpile, ["ls", str(built / "out"), "--removed", "--json"])
    removed = next(row["id"] for row in json.loads(listed.stdout)["documents"] if row["locator"].startswith(copy))
    assert "only kept documents have tables" in str(show(built, removed).exception)
    (built / "files").rename(tmp_path / "elsewhere")
    found = show(built, plain)
    (tmp_path / "elsewhere").rename(built / "files")
    assert "cannot be read again" in str(found.exception)
