"""What changed from one build to another: by ids and reasons of both."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.common.browser import Browser
from finpile import open_documents, open_ledger
from finpile.config import load_config
from finpile.explorer import write_explorer
from tests.conftest import SAMPLE_CONFIG, Share
from tests.finpile.explorer.conftest import read_data


@pytest.fixture(scope="module")
def other(share: Share) -> Path:
    """The sample without near duplicates and with another day of the split."""

    def make(folder: Path) -> None:
        from finpile_pipelines.build import build
        from finpile_pipelines.runner.engine import Engine

        text = SAMPLE_CONFIG.read_text().replace("2022-07-31", "2022-09-30")
        config = folder / "other.yaml"
        config.write_text(
            text.replace("root: ../../data_samples", f"root: {SAMPLE_CONFIG.parents[2] / 'data_samples'}")
        )
        build(load_config(config), str(folder / "out"), Engine(num_workers=1), until="split")

    return share("other", make) / "out"


def states(out: Path) -> dict[str, tuple[str, str]]:
    found = {
        row["id"]: (f"{row['dataset']}/{row['source']}", f"{row['stage']}/{row['reason']}")
        for row in open_ledger(str(out)).to_table().to_pylist()
        if row["start"] is None
    }
    for row in open_documents(str(out)).to_table().to_pylist():
        found[row["id"]] = (f"{row['dataset']}/{row['source']}", row["split"])
    return found


def test_changes_are_those_of_all_ids(browser: Browser, copy_of_sample: Path, other: Path) -> None:
    write_explorer(str(copy_of_sample), against=str(other))
    changes = read_data(copy_of_sample, "summary")["changes"]
    before, after = states(other), states(copy_of_sample)
    none = ("", "not read")
    expected = Counter(
        (after.get(name, before.get(name, none))[0], before.get(name, none)[1], after.get(name, none)[1])
        for name in {*before, *after}
        if before.get(name, none)[1] != after.get(name, none)[1]
    )
    assert {(row["source"], row["before"], row["after"]): row["documents"] for row in changes["documents"]} == expected
    assert sum(expected.values()) > 0
    for row in changes["documents"]:
        assert all(after[name][1] == row["after"] for name in row["examples"])
    browser.open((copy_of_sample / "explorer" / "index.html").as_uri() + "#/changes")
    assert str(sum(expected.values())) in browser.text(".sum")
    first = browser.run("[...document.querySelectorAll('.ranking a')][0].hash")
    browser.run("document.querySelector('.ranking a').click()")
    browser.wait(f"location.hash === {first!r}")


def test_a_build_has_no_changes_from_itself(copy_of_sample: Path, explored: Path) -> None:
    write_explorer(str(copy_of_sample), against=str(explored))
    changes = read_data(copy_of_sample, "summary")["changes"]
    assert (changes["documents"], changes["cuts"]) == ([], [])
    assert changes["same"] == len(states(explored))
