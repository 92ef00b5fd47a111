"""Pages of all rows and texts: an index, a server of ranges, and texts that equal those of the files."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.browser import Browser
from finpile import open_documents, open_ledger
from finpile.config import load_config
from finpile.explorer import write_explorer, write_index
from finpile.explorer.serve import PAGE, address_of, make_server


@pytest.fixture(scope="module")
def indexed(sample_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample build with an index."""
    out = tmp_path_factory.mktemp("indexed") / "out"
    shutil.copytree(sample_build, out, ignore=shutil.ignore_patterns(".work"))
    write_index(str(out))
    return out


@pytest.fixture(scope="module")
def served(indexed: Path) -> Iterator[str]:
    """The address of the pages of the sample."""
    with serving(indexed) as address:
        yield address


@contextmanager
def serving(out: Path) -> Iterator[str]:
    """The address of the pages of a build."""
    server = make_server(str(out), 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield address_of(server)
    server.shutdown()
    server.server_close()
    thread.join()


def test_index_has_all_rows_and_where_they_are(indexed: Path, served: str) -> None:
    folder = indexed / "explorer" / "index"
    documents, removals, ids = (
        pq.read_table(folder / f"{name}.parquet").to_pylist() for name in ("documents", "removals", "ids")
    )
    assert sorted(row["id"].hex() for row in documents) == sorted(
        open_documents(str(indexed)).to_table()["id"].to_pylist()
    )
    assert sorted(row["id"].hex() for row in removals) == sorted(open_ledger(str(indexed)).to_table()["id"].to_pylist())
    tables, keys = [documents, removals, removals], ["id", "id", "duplicate_of"]
    for entry in ids:
        assert tables[entry["kind"]][entry["row"]][keys[entry["kind"]]] == entry["id"]
    copies = sum(row["duplicate_of"] is not None for row in removals)
    assert len(ids) == len(documents) + len(removals) + copies
    assert [row["id"] for row in ids] == sorted(row["id"] for row in ids)


def test_index_is_made_again_only_for_another_build_or_format(indexed: Path, served: str) -> None:
    index = indexed / "explorer" / "index" / "documents.parquet"
    before = index.stat().st_mtime_ns
    write_index(str(indexed))
    assert index.stat().st_mtime_ns == before
    made = indexed / "explorer" / "index" / "made.json"
    earlier = {**json.loads(made.read_text()), "format": 1}
    made.write_text(json.dumps(earlier))
    content = index.read_bytes()
    write_index(str(indexed))
    assert index.stat().st_mtime_ns != before
    assert index.read_bytes() == content


def ask(address: str, path: str, headers: dict[str, str] | None = None, method: str = "GET") -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection(address.split("/")[2])
    connection.request(method, path, headers=headers or {})
    response = connection.getresponse()
    found = response.status, response.read(), response.headers
    connection.close()
    return found


def test_server_answers_ranges(indexed: Path, served: str) -> None:
    data = (indexed / PAGE).read_bytes()
    for value, expected in (("0-3", data[:4]), ("5-", data[5:]), ("-7", data[-7:]), (f"2-{10**9}", data[2:])):
        status, body, headers = ask(served, f"/{PAGE}", {"Range": f"bytes={value}"})
        assert (status, body) == (206, expected)
        assert headers["Content-Range"].endswith(f"/{len(data)}")
    assert ask(served, f"/{PAGE}", {"Range": f"bytes={len(data)}-"})[0] == 416
    assert ask(served, f"/{PAGE}", {"Range": f"bytes={'9' * 5000}-"})[0] == 200
    assert ask(served, f"/{PAGE}", method="HEAD")[:2] == (200, b"")


def test_connections_that_a_browser_ends_print_nothing(indexed: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with make_server(str(indexed), 0) as server:
        for error in (BrokenPipeError(), ConnectionResetError(), ValueError()):
            try:
                raise error
            except (OSError, ValueError):
                server.handle_error(None, ("127.0.0.1", 1))  # type: ignore[arg-type]
    assert capfd.readouterr().err.count("Traceback") == 1


@pytest.mark.parametrize(
    "path",
    [
        "/manifest.json",
        "/.work/build.json",
        "/explorer/../manifest.json",
        "/explorer/%2e%2e/manifest.json",
        "/explorer/%2e%2e/%2e%2e/etc/passwd",
        "/versions/x",
        "/explorer/index/",
        "//etc/passwd",
        "/tokenizer/tokenizer.json",
        "/explorer/%00",
    ],
)
def test_server_has_nothing_but_what_the_pages_read(served: str, path: str) -> None:
    assert ask(served, path)[0] == 404


def test_server_refuses_other_names_of_this_machine(served: str) -> None:
    assert ask(served, f"/{PAGE}", {"Host": "attacker.example"})[0] == 403


_STORE = """
(async () => {
  const script = async (name) => (await fetch(`data/${name}.js`)).text();
  const read = async (name) => JSON.parse((await script(name)).match(/^[^,]*,(.*)\\)\\n$/s)[1]);
  const store = await window.finpileRanges(await read("start"), await read("summary"));
  const text = (value) => typeof value === "string" ? value
    : [...value].map((each) => String.fromCharCode(each)).join("");
  const found = {};
  for (const id of %s) {
    const { document, removals } = await store.record(id);
    found[id] = [document && [document.text, document.url, document.title, document.meta],
      removals.map((row) => [row.stage, row.reason, row.start, row.end, row.duplicate_of, row.duplicate_offset,
        row.detail, text(row.removed_text)])];
  }
  return found;
})()
"""


def check_texts(browser: Browser, out: Path, address: str, every: int) -> int:
    """Compares what the page reads with what Arrow reads, of each `every`-th id."""
    documents = {row["id"]: row for row in open_documents(str(out)).to_table().to_pylist()}
    ledger: dict[str, list[dict[str, Any]]] = {}
    for row in open_ledger(str(out)).to_table().to_pylist():
        ledger.setdefault(row["id"], []).append(row)
    ids = sorted({*documents, *ledger})[::every]
    browser.open(address)
    browser.wait("window.finpileRanges")
    found = browser.run(_STORE % json.dumps(ids))
    for name in ids:
        row, (document, removals) = documents.get(name), found[name]
        assert document == (row and [row["text"], row["url"], row["title"], row["meta"]])
        keys = ("stage", "reason", "start", "end", "duplicate_of", "duplicate_offset", "detail")
        expected = [
            [*(row[key] for key in keys), row["removed_text"].decode("latin-1")] for row in ledger.get(name, ())
        ]
        assert sorted(removals, key=str) == sorted(expected, key=str)
    return len(ids)


def test_texts_are_those_of_the_files(browser: Browser, indexed: Path, served: str) -> None:
    assert check_texts(browser, indexed, served, 1) > 300


def built(folder: Path, *texts: str) -> Path:
    """A build of texts, of which mail addresses are masked, with an index."""
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    source = {"name": "A", "dataset": "D", "format": "jsonl", "paths": "a.jsonl", "clean": {"filters": ["pii"]}}
    (folder / "c.yaml").write_text(yaml.safe_dump({"name": "c", "sources": [source], "tokenizer": None}))
    build(load_config(folder / "c.yaml"), str(folder / "out"), Engine())
    write_index(str(folder / "out"))
    return folder / "out"


def test_document_with_many_cuts_has_all_of_them(browser: Browser, tmp_path: Path) -> None:
    out = built(tmp_path, "".join(f"Write to desk{number}@north.example before noon.\n" for number in range(1100)))
    with serving(out) as address:
        assert check_texts(browser, out, address, 1) == 1


def test_build_without_removals_has_all_views(browser: Browser, tmp_path: Path) -> None:
    out = built(tmp_path, "Oil rose on Monday.", "Gas fell on Tuesday.")
    write_explorer(str(out))
    with serving(out) as address:
        for page in (address, (out / "explorer" / "index.html").as_uri()):
            for view in ("flow", "removals", "documents", "papers"):
                browser.open_blank()
                browser.open(f"{page}#/{view}")
                browser.wait(f"document.querySelector('main')?.dataset.view === '{view}'")
            browser.open(f"{page}#/removals")
            browser.wait("document.querySelector('.list-status')?.innerText === '0 rows listed'")


def test_views_show_all_rows(browser: Browser, indexed: Path, served: str) -> None:
    browser.open(f"{served}#/documents")
    browser.wait("document.querySelector('.list-status')?.innerText === '298 documents listed'")
    browser.wait("document.querySelectorAll('.row-main').length > 3")
    row = next(row for row in open_ledger(str(indexed)).to_table().to_pylist() if row["stage"] == "near")
    browser.open(f"{served}#/removals?id={row['id']}")
    browser.wait("document.querySelectorAll('.differs').length > 0")
    assert browser.run("document.querySelector('.text').textContent") == row["removed_text"].decode()
