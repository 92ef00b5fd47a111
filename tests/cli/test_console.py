"""Output of commands: plain lines without a terminal, bars on a terminal, only the result as JSON."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path

import pytest
from finpile_cli.console import Console, quantity
from finpile_cli.display import Display
from finpile_pipelines.progress import Progress

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Standard output as a terminal of 80 columns; to be called in the test, where pytest no longer moves it."""
    stream = Terminal()
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", stream)
    return stream


def say_everything(console: Console) -> None:
    console.line("a [bold]line[/bold] :smile:", style="red")
    console.table("Sums [a]", ["name", "count", "mixed"], [["[b] :smile:", 1234, "x"], ["b", 5, 2]])
    with console.progress("reading", total=10, unit="B") as advance:
        advance(4)
        advance(6)
    console.result({"ß": 1, "a": [2]})


def test_json_is_the_result_and_nothing_else(capsys: Capture) -> None:
    say_everything(Console(as_json=True))
    out, err = capsys.readouterr()
    assert json.loads(out) == {"ß": 1, "a": [2]}
    assert out == '{\n  "a": [\n    2\n  ],\n  "ß": 1\n}\n'
    assert err == ""


def test_plain_output_has_no_escapes_and_prints_markup_verbatim(capsys: Capture) -> None:
    say_everything(Console())
    out, _ = capsys.readouterr()
    assert "\x1b" not in out
    lines = out.splitlines()
    assert lines[0] == "a [bold]line[/bold] :smile:"
    assert lines[1].rstrip() == "Sums [a]"
    assert lines[3].startswith("[b] :smile:  1,234  x")
    assert "{" not in out


def test_characters_that_control_a_terminal_are_escaped(capsys: Capture) -> None:
    """Titles of pages and bytes that nobody could read can have them."""
    console, text = Console(), "oil\x1b[31m\x9b31m\x07\r\tgas\n"
    console.line(text)
    console.pieces([(text, "bold"), ("x", None)])
    console.table(text, ["name"], [[text]])
    out = capsys.readouterr().out
    assert out.count(r"oil\x1b[31m\x9b31m\x07\r") == 4
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", out)


def test_numbers_are_right_aligned_with_separators(capsys: Capture) -> None:
    Console().table("Sums", ["name", "count"], [["a", 1234], ["b", 5]])
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines] == ["Sums", "name  count", "a     1,234", "b         5"]


def test_long_line_is_not_broken_without_a_terminal(capsys: Capture) -> None:
    Console().line("word " * 200)
    assert capsys.readouterr().out == "word " * 200 + "\n"


LONG = "evaluating a-model-with-a-very-long-name-of-the-folder-that-it-is-in, log-likelihoods"


def test_line_of_progress_fits_80_columns_with_whole_figures(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Console().progress(LONG, total=10**9, unit="documents") as advance:
        now[0] = 1e5
        advance(123_456_789)
    [line] = capsys.readouterr().out.splitlines()
    assert len(line) <= 80
    assert line == "  evaluating a-mod...: 123,456,789 of 1,000,000,000 documents, 197 h 13 min left"


def test_bar_fits_80_columns_with_whole_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = terminal(monkeypatch), [0.0]
    monkeypatch.setattr("rich.console.monotonic", lambda: now[0])
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Console().progress(LONG, total=100_000_000, unit="documents") as advance:
        for _ in range(3):
            now[0] += 0.15
            advance(12_345)
    lines = ESCAPES.sub("", stream.getvalue()).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in stream.getvalue()
    assert any(re.search(r" [\d,]+ documents/s +\d+:\d\d:\d\d", line) for line in lines), lines


@pytest.mark.parametrize("value", ["1", "no"])
def test_no_color_leaves_out_every_style(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", value)
    console = Console()
    assert console.is_terminal
    say_everything(console)
    with Display(console) as display:
        display.begin("near")
        display.watch("near", Progress(1, 1, 1, share=0.5))
        display.end("near", "done")
    assert re.findall(r"\x1b\[[0-9;]*m", stream.getvalue()) == []
    monkeypatch.setenv("NO_COLOR", "")
    Console().line("a line", style="bold")
    assert "\x1b[1ma line" in stream.getvalue()


def test_terminal_shows_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    console = Console()
    assert console.is_terminal
    say_everything(console)
    assert "\x1b" in stream.getvalue()
    out = ESCAPES.sub("", stream.getvalue())
    assert "a [bold]line[/bold] :smile:" in out
    assert "1,234" in out
    assert "reading" in out


@pytest.mark.parametrize("total", [None, 10_000.0])
def test_plain_progress_speaks_every_few_seconds(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, total: float | None
) -> None:
    clock = iter([100.0, 101.0, 106.0, 107.0, 112.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    with Console().progress("reading", total, "B") as advance:
        for _ in range(4):
            advance(2000)
    goal, left = (" of 10.0 kB", [", 9 s left", ", 3 s left"]) if total else ("", ["", ""])
    assert capsys.readouterr().out.splitlines() == [
        f"  reading: 4.0 kB{goal}, 667 B/s{left[0]}",
        f"  reading: 8.0 kB{goal}, 667 B/s{left[1]}",
    ]


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0, "B", "0 B"),
        (999, "B", "999 B"),
        (1000, "B", "1.0 kB"),
        (12_300_000, "B", "12.3 MB"),
        (5e9, "B", "5.0 GB"),
        (7.25e15, "B", "7250.0 TB"),
        (4096, "documents", "4,096 documents"),
        (12.6, "", "13"),
    ],
)
def test_quantity_is_for_people(value: float, unit: str, expected: str) -> None:
    assert quantity(value, unit) == expected


def test_paths_in_a_result_are_json(capsys: Capture) -> None:
    Console(as_json=True).result({"out": Path("a/b")})
    assert json.loads(capsys.readouterr().out) == {"out": "a/b"}


WIDE = ["dataset", "source", *(f"column {number}" for number in range(12))]


@pytest.mark.parametrize("columns", [40, 80, 300])
def test_wide_table_is_cut_into_tables_that_fit(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Each has the first columns, and all together have all cells, none of them folded."""
    stream = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [[f"set {row}", "News", *(1000 * row + at for at in range(12))] for row in range(3)]
    Console().table("Documents", WIDE, rows, num_keys=2)
    lines = [line.rstrip() for line in ESCAPES.sub("", stream.getvalue()).splitlines()]
    assert max(map(len, lines)) <= columns
    parts = [lines[at : at + 4] for at in range(1, len(lines), 4)]
    assert (len(parts) == 1) == (columns == 300)
    for number, row in enumerate(rows, 1):
        cells = [re.split(r"\s{2,}", part[number]) for part in parts]
        assert all(some[:2] == row[:2] for some in cells)
        assert [int(cell.replace(",", "")) for some in cells for cell in some[2:]] == row[2:]
    assert [name for part in parts for name in re.split(r"\s{2,}", part[0])[2:]] == WIDE[2:]
