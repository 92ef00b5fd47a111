"""A chart of another package is one file: the page of a build has it if the corpus file names it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.plugins.chart import CHARTS
from finpile.report.from_manifest import rewrite
from finpile.verify import verify
from tests.support.packages import installed

#: A bar for each source, of its documents in training and of those that were read.
CHART_FILE = """
from finpile.plugins.chart import Chart
from finpile.report.drawing.grouped_bars import BarChart


def draw(statistics, removals, facts):
    rows = statistics.sources
    return BarChart(
        title="Kept and read",
        x_title="documents",
        groups=[row.source for row in rows],
        series=["kept", "read"],
        values=[[row.num_docs, facts.read_by_source[row.dataset, row.source]] for row in rows],
        digits=0,
    ).to_html("kept_chart", f"{sum(row.num_docs for row in removals)} were removed.")


CHART = Chart(name="kept", above="table1", draw=draw)
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", {"kept_chart": CHART_FILE}, {CHARTS: "kept = kept_chart:CHART"}):
        yield


def test_every_module_of_charts_is_a_chart() -> None:
    folder = Path(sys.modules["finpile.report"].__path__[0], "charts")
    assert list(CHARTS.built_in) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert [CHARTS.get(name).name for name in CHARTS.built_in] == list(CHARTS.built_in)


@pytest.mark.usefixtures("package")
def test_the_page_has_the_chart_of_another_package_and_verify_draws_it_again(
    copy_small: Callable[..., Path], write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    folder = copy_small(tmp_path / "small").parent
    page = folder / "out/reports/index.html"
    before = page.read_text()
    assert "kept_chart" not in before, "a package that is installed changes no build"
    ran: list[StageEvent] = []
    config = load_config(write_corpus(folder, files={}, reports={"charts": ["kept"]}))
    build(config, str(folder / "out"), Engine(), listen=ran.append)
    assert [event.stage for event in ran if event.state == "done"] == ["reports"]
    after = page.read_text()
    begin = after.index('<figure id="kept_chart">')
    end = after.index("</figure>", begin) + len("</figure>\n")
    assert after[:begin] + after[end:] == before
    assert after[end:].startswith('<figure id="table1">')
    assert "Kept and read" in after[begin:end] and " were removed." in after[begin:end]
    assert [check.name for check in verify(str(folder / "out")) if not check.ok] == []
    layout = Layout(str(folder / "out"))
    rewrite(layout, load_manifest(layout))
    assert page.read_text() == after


def test_a_chart_that_is_not_installed_is_an_error_at_its_line(
    write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    path = write_corpus(tmp_path, reports={"charts": ["kept"]})
    line = [text.strip() for text in path.read_text().splitlines()].index("- kept") + 1
    message = f"{path}:{line}: reports.charts: 'kept' is not known; known: documents_by_year"
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert str(raised.value).startswith(message)
