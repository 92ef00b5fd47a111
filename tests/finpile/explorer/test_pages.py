"""The static pages in headless Chromium, opened from disk."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.common.browser import Browser
from finpile import open_documents, open_ledger
from finpile.errors import InputError
from finpile.explorer import write_explorer
from finpile.explorer.site import data_script
from finpile.history.document import document_history, segments
from tests.finpile.explorer.conftest import read_data, violations

VIEWS = ("flow", "removals", "clusters", "passages", "documents", "tokenizer", "papers")


@pytest.mark.parametrize("view", VIEWS)
def test_views_open_from_disk(browser: Browser, page: str, view: str) -> None:
    browser.open(f"{page}#/{view}")
    assert browser.run("document.querySelector('nav a[aria-current]').hash") == f"#/{view}"
    assert browser.texts("main h2")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("width", [390, 1280])
def test_views_have_no_violation_of_axe(browser: Browser, page: str, view: str, width: int) -> None:
    near = open_ledger_id(page)
    for dark, more in ((False, ""), (True, f"?id={near}")):
        browser.dark(dark)
        browser.size(width, 900)
        browser.open_blank()
        browser.open(f"{page}#/{view}{more}")
        if more and view in ("removals", "documents", "clusters"):
            browser.wait("document.querySelector('.text') !== null")
        browser.wait("!document.querySelector('.list-row .soft')?.textContent.startsWith('…')")
        assert violations(browser) == []
        assert browser.run("document.documentElement.scrollWidth") <= width


def open_ledger_id(page: str) -> str:
    folder = page.removeprefix("file://").removesuffix("/explorer/index.html")
    ledger = open_ledger(folder).to_table().to_pylist()
    return str(next(row["id"] for row in ledger if row["stage"] == "near"))


def test_flow_has_the_numbers_of_the_report(browser: Browser, page: str, explored: Path) -> None:
    browser.open(f"{page}#/flow")
    tiles = browser.run("[...document.querySelectorAll('.tiles dd')].map((each) => each.firstChild.textContent)")
    assert tiles == ["356", "267", "31", "58"]
    bands = browser.run("[...document.querySelectorAll('.band')].map((each) => each.getAttribute('aria-label'))")
    in_bands = sum(int(re.search(r": ([\d,]+) document", band)[1].replace(",", "")) for band in bands)
    assert in_bands == 356
    total = browser.texts("tr.total")[0].split("\t")
    assert total == ["All", "356", "267", "31", "22", "4", "20", "12"]


def test_charts_have_the_numbers_of_the_cells(browser: Browser, page: str, explored: Path) -> None:
    cells = read_data(explored, "summary")["documents"]["cells"]
    dated = sum(rows for rows, month in zip(cells["rows"], cells["month"], strict=True) if month is not None)
    browser.open(f"{page}#/documents")
    titles = browser.run(
        "[...document.querySelectorAll('.columns')].map((chart) => "
        "[...chart.querySelectorAll('title')].map((each) => each.textContent))"
    )
    timeline, lengths = ([int(re.search(r": ([\d,]+) document", title)[1]) for title in chart] for chart in titles)
    assert (sum(timeline), sum(lengths)) == (dated, 298)
    heights = browser.run("[...document.querySelectorAll('.columns')][1].querySelectorAll('.bar').length")
    assert heights == len(lengths)


def test_filters_are_in_the_address_and_narrow_every_view(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/flow")
    browser.run(
        "document.querySelector('#f-source').value = 'FinPile/News';"
        "document.querySelector('#f-source').dispatchEvent(new Event('change'))"
    )
    browser.wait("location.hash === '#/flow?source=FinPile%2FNews'")
    assert browser.texts(".tiles dd")[0] == "93"
    browser.run("document.querySelector('nav a:nth-of-type(2)').click()")
    browser.wait("location.hash === '#/removals?source=FinPile%2FNews'")
    browser.wait("document.querySelectorAll('.row-sub.side').length > 0")
    assert {text.split(",")[0] for text in browser.texts(".row-sub.side")} == {"News"}
    browser.run(
        "[...document.querySelectorAll('.ranking a')].find((each) => each.innerText.includes('near_dup')).click()"
    )
    browser.wait("location.hash.includes('reason=near_duplicate')")
    browser.wait("document.querySelectorAll('.list-row b').length === 3")
    browser.run(
        "[...document.querySelectorAll('.columns a')][0].dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    browser.wait("/from=\\d{4}-\\d{2}&to=/.test(location.hash)")
    browser.wait("document.querySelectorAll('.list-row b').length < 3")
    browser.run("history.back()")
    browser.wait("document.querySelectorAll('.list-row b').length === 3")


def test_keyboard_walks_the_list(browser: Browser, page: str) -> None:
    browser.open(f"{page}#/documents")
    browser.wait("document.querySelectorAll('.row-main').length > 3")
    press = "document.querySelector('.list').dispatchEvent(new KeyboardEvent('keydown', {key: '%s'}))"
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Enter"):
        browser.run(press % key)
    browser.wait("document.querySelector('.doc-head') !== null")
    second = browser.run("document.querySelectorAll('.list-row')[1].querySelector('.row-sub').innerText")
    assert second in browser.text(".facts")
    browser.run(press % "End")
    browser.wait("document.querySelector('[aria-selected=true]')?.getAttribute('aria-posinset') === '298'")


def test_differences_are_those_of_both_texts(browser: Browser, page: str, explored: Path) -> None:
    known = set(read_data(explored, "samples")["ids"])
    ledger = [row for row in open_ledger(str(explored)).to_table().to_pylist() if row["id"] in known]
    rows = [row for row in ledger if row["stage"] in ("near", "exact")]
    assert len(rows) > 20
    for row in rows:
        browser.open(f"{page}#/removals?id={row['id']}")
        browser.wait(f"document.querySelector('[data-shown=\"{row['id']} \"]') !== null")
        left, right = browser.run("[...document.querySelectorAll('.text')].map((each) => each.textContent)")
        assert left == row["removed_text"].decode()
        kept = document_history(str(explored), row["duplicate_of"])
        assert kept.document is not None
        whole = b"".join(segment.text for segment in segments(kept.document["text"].encode(), kept.removals))
        assert right == whole.decode()
        same = browser.run(
            "[...document.querySelectorAll('.text')].map((each) => [...each.childNodes]"
            ".filter((node) => node.nodeType === 3).map((node) => node.textContent).join(''))"
        )
        assert same[0] == same[1]
        assert bool(browser.texts(".differs")) == (left != right)


def test_cuts_are_marked_where_the_ledger_says(browser: Browser, page: str, explored: Path) -> None:
    ledger = open_ledger(str(explored)).to_table().to_pylist()
    spans = [row for row in ledger if row["start"] is not None and row["end"] > row["start"]]
    known = set(read_data(explored, "samples")["ids"])
    checked = 0
    for row in sorted(spans, key=lambda row: (row["id"], row["start"])):
        if row["id"] not in known:
            continue
        browser.open(f"{page}#/removals?id={row['id']}&at={row['start']}&of={row['stage']}")
        browser.wait(f"document.querySelector('[data-shown=\"{row['id']} {row['start']}\"]') !== null")
        history = document_history(str(explored), row["id"])
        left = history.document["text"].encode() if history.document else history.removals[-1]["removed_text"]
        expected = [(part.text.decode(), part.removal is not None) for part in segments(left, history.removals)]
        shown = browser.run(
            "[...document.querySelector('.text').childNodes].map((node) => [node.textContent, node.nodeName === 'DEL'])"
        )
        assert [tuple(part) for part in shown] == expected
        assert browser.run("document.querySelector('del.focus').textContent") == row["removed_text"].decode()
        if row["duplicate_offset"] is not None and row["duplicate_of"] in known:
            assert browser.run("document.querySelector('mark.focus').textContent") == row["removed_text"].decode()
        assert browser.run(
            "[...document.querySelectorAll('.text .focus')].every((mark) => { const box = mark.closest('.text');"
            "return mark.offsetTop >= box.scrollTop && mark.offsetTop < box.scrollTop + box.clientHeight; })"
        )
        checked += 1
    assert checked > 20


def test_cuts_that_meet_within_a_character_show_it(browser: Browser, explored: Path, tmp_path: Path) -> None:
    shutil.copytree(explored / "explorer", tmp_path / "explorer")
    texts = read_data(tmp_path, "texts-0")
    name, record = next((name, record) for name, record in texts.items() if record["document"])
    cut, (start, middle, end) = "油 and 油".encode(), (2, 4, 13)
    row = {
        "stage": "substring",
        "reason": "repeated_text",
        "duplicate_of": None,
        "duplicate_offset": None,
        "detail": "",
    }
    spans = [(start, middle, cut[: middle - start]), (middle, end, cut[middle - start :])]
    record["removals"] = [
        {**row, "start": at, "end": to, "removed_text": {"hex": text.hex()}} for at, to, text in spans
    ]
    record["document"]["text"] = "a b"
    (tmp_path / "explorer" / "data" / "texts-0.js").write_bytes(data_script("texts-0", texts))
    browser.open((tmp_path / "explorer" / "index.html").as_uri() + f"#/documents?id={name}")
    browser.wait(f"document.querySelector('[data-shown=\"{name} \"]') !== null")
    assert browser.run("document.querySelector('.text').textContent") == "a 油 and 油b"


def test_passages_lead_to_all_documents_that_had_them(
    browser: Browser, copy_of_sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finpile.explorer.counts.MOST_MEMBERS", 1)
    write_explorer(str(copy_of_sample))
    ledger = open_ledger(str(copy_of_sample)).to_table().to_pylist()
    passages = read_data(copy_of_sample, "summary")["removals"]["passages"]
    for number in (0, len(passages) - 1):
        (identifier, start, *_) = passages[number]["rows"][0]
        (text,) = {row["removed_text"] for row in ledger if (row["id"], row["start"]) == (identifier, start)}
        stage = next(row["stage"] for row in ledger if (row["id"], row["start"]) == (identifier, start))
        equal = [row for row in ledger if row["removed_text"] == text and row["stage"] == stage]
        assert len(equal) == passages[number]["cuts"] > 1
        browser.open_blank()
        browser.open(f"{(copy_of_sample / 'explorer' / 'index.html').as_uri()}#/passages?passage={number}")
        browser.wait("[...document.querySelectorAll('.detail-pane a')].some((each) => each.innerText.includes('more'))")
        browser.run(
            "[...document.querySelectorAll('.detail-pane a')].find((a) => a.innerText.includes('more')).click()"
        )
        browser.wait(f"document.querySelector('.list-status')?.innerText.startsWith('{len(equal)} rows listed')")


def test_search_finds_ids_locators_and_words(browser: Browser, page: str) -> None:
    identifier = open_ledger_id(page)
    browser.open(f"{page}#/documents?find={identifier[:8]}")
    browser.wait(f"document.querySelector('.answer a')?.hash.includes('{identifier}')")
    browser.open(f"{page}#/documents?find=fw-20070507")
    browser.wait("document.querySelector('.list-status').innerText.startsWith('1 document listed')")
    browser.open(f"{page}#/documents?find=old%20customs%20house")
    browser.wait("document.querySelector('.answer')?.innerText.includes('these words: ')")
    assert "these words: " in browser.text(".answer")


ATTACK = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
#: Keys of data that pages compute with; all other texts may be an attack.
_STRUCTURE = {"id", "stage", "reason", "duplicate_of", "mode", "ids", "checksum", "heldout_after", "key", "split"}


def attacked(value: Any, key: str = "") -> Any:
    """The value with markup in every text that is not of its structure, and a script in addresses."""
    if isinstance(value, dict):
        return {name: attacked(entry, name) for name, entry in value.items()}
    if isinstance(value, list):
        return [attacked(entry, key) for entry in value]
    if key == "url":
        return "javascript:window.hit=1"
    return f"{ATTACK}{value}" if isinstance(value, str) and key not in _STRUCTURE else value


def test_markup_in_texts_names_and_addresses_is_inert(browser: Browser, explored: Path, tmp_path: Path) -> None:
    shutil.copytree(explored / "explorer", tmp_path / "explorer")
    for file in (tmp_path / "explorer" / "data").iterdir():
        value = attacked(read_data(explored, file.stem))
        file.write_bytes(data_script(file.stem, value))
    page = (tmp_path / "explorer" / "index.html").as_uri()
    (near,) = [row["id"] for row in open_ledger(str(explored)).to_table().to_pylist() if row["stage"] == "near"][:1]
    (kept,) = [row["id"] for row in open_documents(str(explored)).to_table().to_pylist() if row["url"]][:1]
    fragments = [f"#/{view}" for view in VIEWS]
    fragments += [
        f"#/removals?id={near}",
        f"#/documents?id={kept}",
        f"#/removals?source={quote(ATTACK)}&stage={quote(ATTACK)}",
    ]
    fragments += [f"#/documents?find={quote(ATTACK)}&id={quote(ATTACK)}", f"#/{quote(ATTACK)}"]
    for fragment in fragments:
        browser.open_blank()
        browser.open(page + fragment)
        browser.run("new Promise((done) => setTimeout(done, 100))")
        assert browser.run("document.body.textContent").count("onerror") > 0
        assert browser.run("window.hit") is None
        assert browser.run("document.querySelectorAll('img, body script').length") == 0
        assert browser.run("document.querySelectorAll('a[href^=\"javascript\" i]').length") == 0


def test_tables_of_a_snapshot_are_called_those_of_its_build(browser: Browser, explored: Path, tmp_path: Path) -> None:
    note = "The tables are those of the build, not of snapshot 2."
    shutil.copytree(explored / "explorer", tmp_path / "explorer")
    summary = read_data(tmp_path, "summary")
    for number in (0, 2):
        data = data_script("summary", {**summary, "snapshot": number})
        (tmp_path / "explorer" / "data" / "summary.js").write_bytes(data)
        browser.open_blank()
        browser.open((tmp_path / "explorer" / "index.html").as_uri() + "#/papers")
        browser.wait("document.querySelector('main').dataset.view === 'papers'")
        assert browser.texts("main .note") == [note] * bool(number)


def test_curves_of_runs_are_those_of_their_logs(browser: Browser, copy_of_sample: Path, tmp_path: Path) -> None:
    run = tmp_path / "run-1"
    run.mkdir()
    steps = [{"step": step, "tokens": 512 * step, "loss": 9.0 - step / 500} for step in range(1, 1501)]
    (run / "losses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in steps))
    measured = {"step": 1500, "tokens": 768_000, "loss": 6.25, "num_tokens": 9, "sources": {"D/A": 6.5, "D/B": 6.0}}
    (run / "heldout.jsonl").write_text(json.dumps(measured) + "\n")
    write_explorer(str(copy_of_sample), runs=[str(run)])
    (found,) = read_data(copy_of_sample, "summary")["runs"]
    assert (found["steps"], found["width"], len(found["loss"])) == (1500, 3, 500)
    assert sum(found["loss"]) * 3 == pytest.approx(sum(row["loss"] for row in steps))
    browser.open((copy_of_sample / "explorer" / "index.html").as_uri() + "#/runs")
    assert browser.texts("tbody tr") == ["D/B\t6.0000", "D/A\t6.5000", "All\t6.2500"]
    assert browser.run("document.querySelectorAll('polyline')[0].points.length") == 500


def test_folder_without_a_run_is_refused(copy_of_sample: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no training run"):
        write_explorer(str(copy_of_sample), runs=[str(tmp_path)])
