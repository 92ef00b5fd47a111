"""Pages of the sample build, and a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common.browser import Browser, executable
from finpile.explorer import write_explorer
from tests.conftest import Share


@pytest.fixture(scope="session")
def explored(share: Share, sample_build: Path) -> Path:
    """The sample build with static pages that have 5 texts of each reason and source. Read only."""

    def make(folder: Path) -> None:
        shutil.copytree(sample_build, folder / "out", ignore=shutil.ignore_patterns(".work"))
        write_explorer(str(folder / "out"), samples=5)

    return share("explored", make) / "out"


@pytest.fixture(scope="session")
def page(explored: Path) -> str:
    """The address of the pages on disk."""
    return (explored / "explorer" / "index.html").as_uri()


@pytest.fixture
def browser(browser_process: Browser) -> Iterator[Browser]:
    """An empty page of 1,280 pixels. Afterwards its console has no errors, and nothing but files was requested."""
    browser_process.open_blank()
    browser_process.size(1280, 900)
    browser_process.dark(False)
    yield browser_process
    assert browser_process.errors == []
    outside = ("file:", "data:", "about:", "http://127.0.0.1:", "chrome:")
    assert [url for url in browser_process.requests if not url.startswith(outside)] == []


@pytest.fixture(scope="module")
def browser_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if executable() is None:
        pytest.skip("no Chromium: `apt-get install chromium`")
    browser = Browser(tmp_path_factory.mktemp("chromium"))  # its processes write there after it has ended
    yield browser
    browser.close()


def read_data(folder: Path, name: str) -> Any:
    """The value of a file of data of static pages."""
    text = (folder / "explorer" / "data" / f"{name}.js").read_text()
    found = re.fullmatch(rf'finpileData\("{name}",(.*)\)\n', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def violations(browser: Browser) -> list[Any]:
    """What `axe-core` finds in the page: rules, and the elements that break them."""
    browser.run((Path(__file__).parent / "axe.min.js").read_text() + "; 0")
    found: list[Any] = browser.run(
        "axe.run({preload: false}).then((found) => found.violations.map((each) => "
        "[each.id, each.nodes.map((node) => node.html.slice(0, 200) + node.failureSummary)]))"
    )
    return found
