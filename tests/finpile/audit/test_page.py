"""The view Audit in headless Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.common.browser import Browser
from finpile import open_ledger
from finpile.audit.report import tables
from finpile.audit.sample import Item
from tests.finpile.audit.conftest import Served

AXE = Path(__file__).parents[1] / "explorer" / "axe.min.js"
_READY = "document.querySelector('.answers button')?.getAttribute('aria-disabled') === 'false'"


def press(browser: Browser, key: str, target: str = "document.body") -> None:
    browser.run(f"{target}.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}})); 0")


def open_item(browser: Browser, served: Served, item: Item) -> None:
    browser.open(f"{served.address}?item={item.shown}")
    browser.wait(_READY)


def test_keys_answer_one_item_after_the_other(browser: Browser, served: Served) -> None:
    browser.open(served.address)
    number, expected = len(served.sample.items), {}
    for at, item in enumerate(served.sample.items[:6]):
        browser.wait(f"document.querySelector('.sum').innerText.startsWith('{at} of {number} items') && {_READY}")
        press(browser, "yn"[at % 2])
        expected[item.shown] = at % 2 == 0
    browser.wait(f"document.querySelector('.sum').innerText.startsWith('6 of {number} items')")
    assert served.answers == expected
    for table in tables(served.sample, expected):
        rows = browser.texts(f".scroll[aria-label='{table.title}'] tbody tr")
        assert [row.split("\t") for row in rows] == [[cell.text for cell in row.cells] for row in table.rows]
    browser.open_blank()
    browser.open(served.address)
    browser.wait(f"document.querySelector('.sum').innerText.startsWith('6 of {number} items')")


def test_buttons_answer_and_the_last_answer_counts(browser: Browser, served: Served) -> None:
    item = served.sample.items[0]
    for number, expected in ((0, True), (1, False)):
        open_item(browser, served, item)
        browser.run(f"document.querySelectorAll('.answers button')[{number}].click()")
        browser.wait(f"!location.hash.includes('{item.shown}')")
        assert served.answers == {item.shown: expected}
    open_item(browser, served, item)
    assert "Answer so far: no" in browser.text(".answers")
    assert len(served.judgements.read_text().splitlines()) == 2


def test_keys_in_fields_and_with_modifiers_are_no_answers(browser: Browser, served: Served) -> None:
    open_item(browser, served, served.sample.items[0])
    press(browser, "y", "document.querySelector('#f-from')")
    event = "new KeyboardEvent('keydown', {key: 'n', ctrlKey: true, bubbles: true})"
    browser.run(f"document.body.dispatchEvent({event}); 0")
    press(browser, "x")
    browser.run("document.querySelector('nav a:nth-of-type(2)').click()")
    browser.wait("document.querySelector('main').dataset.view === 'flow'")
    press(browser, "y")
    assert not served.judgements.exists()


def test_items_are_shown_with_the_copy_that_was_kept(browser: Browser, served: Served) -> None:
    ledger = open_ledger(str(served.out)).to_table().to_pylist()
    stages = set()
    for item in served.sample.items:
        if item.kind == "removal" and item.other is not None and item.stage not in stages:
            stages.add(item.stage)
            open_item(browser, served, item)
            (text,) = (
                row["removed_text"].decode()
                for row in ledger
                if (row["id"], row["stage"], row["start"], row["end"]) == (item.id, item.stage, item.start, item.end)
            )
            left, right = browser.run("[...document.querySelectorAll('.text')].map((each) => each.textContent)")
            assert text in left
            assert right
    assert {"exact", "near", "substring"} <= stages
    pair = next(item for item in served.sample.items if item.kind == "pair")
    open_item(browser, served, pair)
    assert "Should one of these two" in browser.text(".question")
    assert len(browser.texts(".panels .text")) == 2


def test_an_answer_that_is_not_saved_is_said(browser: Browser, served: Served) -> None:
    item = served.sample.items[0]
    open_item(browser, served, item)
    response = "new Response(JSON.stringify({error: 'the disk is full'}), {status: 500})"
    browser.run(f"window.fetch = async () => {response}; 0")
    press(browser, "y")
    browser.wait("document.querySelector('[role=alert]').innerText === 'The answer is not saved: the disk is full'")
    assert browser.text(".sum").startswith("0 of ")


def test_filters_narrow_the_items(browser: Browser, served: Served) -> None:
    browser.open(f"{served.address}?stage=substring&source=FinPile%2FPress")
    browser.wait("document.querySelector('.sum')")
    assert browser.text(".sum").startswith("0 of 4 items")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_view_has_no_violation_of_axe(browser: Browser, served: Served, width: int) -> None:
    pair = next(item for item in served.sample.items if item.kind == "pair")
    near = next(item for item in served.sample.items if item.stage == "near")
    for dark, item in ((False, near), (True, pair)):
        browser.dark(dark)
        browser.size(width, 900)
        browser.open_blank()
        open_item(browser, served, item)
        browser.run(AXE.read_text() + "; 0")
        found = browser.run(
            "axe.run({preload: false}).then((found) => found.violations.map((each) => "
            "[each.id, each.nodes.map((node) => node.html.slice(0, 200) + node.failureSummary)]))"
        )
        assert json.dumps(found) == "[]"
        assert browser.run("document.documentElement.scrollWidth") <= width
