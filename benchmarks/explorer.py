"""Measures the pages of builds: the cost of writing them, and the time and bytes to the first row.

    python -m benchmarks.explorer OUT... [--results FOLDER]

Each OUT is a finished build; its folder `explorer` is written again. Pages are opened in headless Chromium, three times
each with an empty cache; a row is shown when its text is in the page.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.common.browser import Browser
from benchmarks.common.measure import run_tree
from benchmarks.common.report import RESULTS, Report, say, table
from finpile import open_documents, open_ledger
from finpile.explorer.serve import address_of, make_server

_TIMES = 3
_JUMPS = 20
_FIRST_ROW = "document.querySelectorAll('.row-main').length > 0"
_INDEX = "import sys; from finpile.explorer import write_index; write_index(sys.argv[1])"
#: Jumps to places of the list; returns the milliseconds until the rows there are shown.
_SCROLL = """
(async () => {
  const list = document.querySelector(".list"), times = [];
  for (let jump = 1; jump <= JUMPS; jump += 1) {
    const start = performance.now();
    list.scrollTop = (list.scrollHeight - list.clientHeight) * ((jump * 0.6180339) % 1);
    await new Promise((done) => requestAnimationFrame(done));
    await new Promise((done) => requestAnimationFrame(done));
    while ([...document.querySelectorAll(".list-row")].some((row) => !row.querySelector(".row-main")))
      await new Promise((done) => setTimeout(done, 1));
    times.push(performance.now() - start);
  }
  return times;
})()
""".replace("JUMPS", str(_JUMPS))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outs", nargs="+", metavar="OUT")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    written, shown = [], []
    folder = tempfile.mkdtemp()
    for out in map(Path, options.outs):
        documents, removals = open_documents(str(out)).count_rows(), open_ledger(str(out)).count_rows()
        text_bytes = sum(file.stat().st_size for file in (out / "documents").rglob("*.parquet"))
        size = [f"{documents:,}", f"{removals:,}", f"{text_bytes / 1e6:,.1f}"]
        for kind, command in (
            ("static", [sys.executable, "-m", "finpile_cli", "explore", str(out)]),
            ("index", [sys.executable, "-c", _INDEX, str(out)]),
        ):
            say(f"{out.name}: {kind}")
            shutil.rmtree(out / "explorer", ignore_errors=True)
            cost = run_tree(command, Path(folder) / "log")
            made = sum(file.stat().st_size for file in (out / "explorer").rglob("*") if file.is_file())
            figures = [
                f"{cost.wall_seconds:.1f}",
                f"{cost.cpu_seconds:.1f}",
                f"{cost.peak_mib:,.0f}",
                f"{made / 1e6:.1f}",
            ]
            written.append([out.name, *size, kind, *figures])
            address = (out / "explorer/index.html").as_uri() if kind == "static" else None
            shown.append([out.name, kind, *_opened(out, address)])
    shutil.rmtree(folder)
    report = Report(
        options.results, "explorer", "The explorer: cost of its pages, and time to the first row", ["pyarrow"]
    )
    load = f"{os.getloadavg()[1]:.0f} processes were running or waiting on {os.cpu_count()} cores (mean of 5 minutes)."
    head = ["build", "documents", "ledger rows", "Parquet MB", "pages", "wall s", "CPU s", "peak MiB", "written MB"]
    report.add(load, "## Writing", table(head, written))
    head = ["build", "pages", "first row s", "bytes, kB", "jump in the list, median ms", "worst ms"]
    text = (
        "Time from the request of an address of the view Documents to its first row, and what was transferred until "
        f"then: medians of {_TIMES}. Static pages are read from disk. Then {_JUMPS} jumps to places of the whole list."
    )
    report.add("## Opening", text, table(head, shown))


def _opened(out: Path, address: str | None) -> list[str]:
    """Seconds and kB to the first row, and milliseconds of jumps in the list."""
    server = None if address else make_server(str(out), 0)
    if server is not None:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    seconds, received = [], []
    for _ in range(_TIMES):
        profile = Path(tempfile.mkdtemp())
        browser = Browser(profile)
        browser.size(1280, 900)
        start = time.perf_counter()
        browser.open(f"{address or address_of(server)}#/documents")  # type: ignore[arg-type]
        browser.wait(_FIRST_ROW)
        seconds.append(time.perf_counter() - start)
        received.append(browser.received_bytes)
        jumps = browser.run(_SCROLL)
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)
    if server is not None:
        server.shutdown()
        server.server_close()
    return [
        f"{statistics.median(seconds):.2f}",
        f"{statistics.median(received) / 1e3:,.0f}" if server is not None else "from disk",
        f"{statistics.median(jumps):.0f}",
        f"{max(jumps):.0f}",
    ]


if __name__ == "__main__":
    main()
