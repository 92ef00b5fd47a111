"""The progress display: shares that grow to 100 %, the time left, with and without a terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from finpile_cli.console import Console
from finpile_cli.display import Display
from finpile_pipelines.progress import Progress
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SHOWN = re.compile(r"^(?P<stage>[a-z]+) +[━╸╺ ]+ +(?P<share>\d+) %(?P<detail>[^\r\n]*)", re.MULTILINE)


def progress(share: float, size_bytes: int = 0, note: str = "", documents: int = 0) -> Progress:
    return Progress(documents, size_bytes, 1_000_000, share=share, pass_share=share, note=note)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def advance(seconds: float) -> None:
        now[0] += seconds

    return advance


# --- lines, where there is no terminal -------------------------------------------------------------------------------


def test_lines_come_every_few_seconds_with_share_and_time_left(
    capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]
) -> None:
    with Display(Console()) as display:
        display.begin("near")
        for step in range(1, 14):
            clock(1)
            display.watch("near: keys", progress(step / 20, step * 3_000_000))
        display.end("near", "13.0 s")
    assert capsys.readouterr().out.splitlines() == [
        "  near           25 %  15 s left, keys, 3.8 MB/s, 1.0 MB in memory",
        "  near           50 %  10 s left, keys, 3.3 MB/s, 1.0 MB in memory",
        "near          13.0 s",
    ]


def test_rate_is_hidden_without_byte_counts(capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]) -> None:
    """`0 B/s` would suggest that no work is done."""
    with Display(Console()) as display:
        display.begin("tokenizer")
        clock(6)
        display.watch("tokenizer: train", progress(0.5, note="chunk 3: update 2, 48,000 pieces"))
    assert capsys.readouterr().out.splitlines() == ["  tokenizer      50 %  6 s left, chunk 3: update 2, 48,000 pieces"]


@given(
    share=st.floats(0, 1),
    seconds=st.floats(5, 1e7),
    size_bytes=st.integers(0, 10**16),
    documents=st.integers(0, 10**12),
    memory=st.integers(0, 10**13),
    note=st.sampled_from(["", "compiling kernels (first run only)", "chunk 3: update 12, 48,576 pieces", "x" * 99]),
)
def test_progress_fits_its_line_and_its_last_figure_is_whole(
    share: float, seconds: float, size_bytes: int, documents: int, memory: int, note: str
) -> None:
    now, out = [100.0], io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: now[0])
        patch.setattr(sys, "stdout", out)
        display = Display(Console())
        display.begin("contamination")
        now[0] += seconds
        display.watch("contamination: search", Progress(documents, size_bytes, memory, share=share, note=note))
    [line] = out.getvalue().splitlines()
    assert len(line) <= 80
    number, unit = r"[\d,.]+", r"(B|[kMGT]B)"
    parts = line[23:].split(", ")
    assert re.fullmatch(rf"{number} s|({number} (s|min|h) ?)+left", parts[0]), line
    figures = rf"{number} {unit}/s|{number} documents|{number} {unit} in memory"
    last = ", ".join(parts[1:]).removeprefix(note or "search").removeprefix(", ")
    assert last.endswith("...") or last == "" or re.fullmatch(rf"({figures})(, ({figures}))*", last), line


def test_compilation_is_named_instead_of_a_rate(
    capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]
) -> None:
    with Display(Console()) as display:
        display.begin("near")
        for _ in range(6):
            clock(1)
            display.watch("near", progress(0.0, note="compiling kernels (first run only)"))
    assert capsys.readouterr().out.splitlines() == [
        "  near            0 %  5 s, compiling kernels (first run only), 1.0 MB in memory"
    ]


def test_share_never_falls_and_a_new_stage_begins_at_nothing(
    capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]
) -> None:
    with Display(Console()) as display:
        for stage in ("exact", "near"):
            display.begin(stage)
            for share in (0.6, 0.4, 0.999):
                clock(5)
                display.watch(stage, progress(share))
            display.end(stage, "done")
    shares = re.findall(r"(\d+) %", capsys.readouterr().out)
    assert shares == ["60", "60", "99"] * 2


def test_rate_is_that_of_the_pipeline_and_not_of_the_wait_after_its_work(
    capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]
) -> None:
    with Display(Console()) as display:
        display.begin("exact")
        display.watch("exact", progress(0.0))
        clock(2)
        display.watch("exact", progress(0.5, 8_000_000, documents=7))
        clock(6)
        display.watch("exact", progress(0.5, 8_000_000, documents=7))
    assert "4.0 MB/s, 7 documents, " in capsys.readouterr().out


def test_steps_of_a_training_are_pipelines(capsys: pytest.CaptureFixture[str], clock: Callable[[float], None]) -> None:
    with Display(Console(), by_pipeline=True) as display:
        display.begin("train")
        clock(5)
        display.watch("tokenizer: train", Progress(0, 0, 1, share=0.9, pass_share=0.1))
        display.end("train", "5.0 s")
        display.watch("tokenizer: held out", Progress(0, 0, 1, share=1, pass_share=0.5))
        clock(5)
        display.watch("tokenizer: held out", Progress(0, 0, 1, share=1, pass_share=0.5))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("  train          10 %  45 s left, ")
    assert lines[1] == "train         5.0 s"
    assert lines[2].startswith("  held out       50 %  5 s left, ")


# --- a terminal ------------------------------------------------------------------------------------------------------


def on_a_terminal(command: list[str], columns: int) -> tuple[int, str]:
    """Exit code and output of a command on a terminal of the given number of columns."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env={**environment, "TERM": "xterm-256color"}, cwd=ROOT
    )
    os.close(slave)
    parts = list(_read(master))
    os.close(master)
    return process.wait(), b"".join(parts).decode()


def _read(master: int) -> Iterator[bytes]:
    while True:
        try:
            block = os.read(master, 1 << 16)
        except OSError:  # the other side is closed
            return
        if not block:
            return
        yield block


#: The command line, with the time left from the first share on, however short a stage is.
_ESTIMATES_AT_ONCE = """
import finpile_cli.display
from finpile_cli.main import main
finpile_cli.display._LEAST_SECONDS = 0.0
main()
"""


@pytest.fixture(scope="module")
def terminal_build(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What an 80-column terminal is sent while a corpus is built in which each stage has something to do."""
    folder = tmp_path_factory.mktemp("terminal")
    sentences = [
        f"Shares of company {number} rose by {number % 7} per cent on day {number % 31}." for number in range(3300)
    ]
    lines = [
        json.dumps({"text": " ".join(sentences[at : at + 40]), "date": f"20{at % 20:02d}-01-02"}) for at in range(3200)
    ]
    (folder / "news.jsonl").write_text("\n".join(lines))
    (folder / "corpus.yaml").write_text(
        "name: small\nsources:\n  - name: News\n    dataset: FinPile\n    format: jsonl\n    paths: [news.jsonl]\n"
        "    fields: {timestamp: date}\n    clean: {filters: []}\n"
        "dedup: {near: {bands: 32, rows: 8}, substring: {min_length: 400}}\n"
        "tokenizer: {vocab_size: 400, chunks: 2, chunk_vocab_size: 350}\ntokens: {sequence_length: 64}\n"
    )
    command = ["build", str(folder / "corpus.yaml"), "-o", str(folder / "out"), "--workers", "1"]
    code, output = on_a_terminal([sys.executable, "-c", _ESTIMATES_AT_ONCE, *command], 80)
    assert code == 0, output
    return output


def test_each_stage_grows_to_all_of_its_work_on_a_terminal(terminal_build: str) -> None:
    text = ESCAPES.sub("", terminal_build.replace("\x1b[2K", "\n"))
    shown = [(found["stage"], int(found["share"])) for found in _SHOWN.finditer(text)]
    stages = {stage: [share for _, share in some] for stage, some in groupby(shown, key=lambda pair: pair[0])}
    assert {"ingest", "clean", "exact", "near", "substring", "split", "tokenizer", "tokens"} <= stages.keys()
    for stage, shares in stages.items():
        assert all(before <= after for before, after in pairwise(shares)), (stage, shares)
        assert shares[-1] == 100, (stage, shares)
    assert any(0 < share < 100 for shares in stages.values() for share in shares)
    assert " left" in text


def test_no_stage_shows_a_rate_of_zero(terminal_build: str) -> None:
    assert " 0 B/s" not in terminal_build


def test_nothing_is_wider_than_the_terminal(terminal_build: str) -> None:
    lines = ESCAPES.sub("", terminal_build).replace("\r", "\n").splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in terminal_build, "nothing is cut"
    assert any(line.startswith("TOTAL") for line in lines)
    assert any(line.startswith("stages: ") and " of CPU time, at most " in line for line in lines)
