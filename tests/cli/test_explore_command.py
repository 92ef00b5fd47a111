"""`finpile explore`."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_pages_are_written_and_named(run: Run, copy_of_sample: Path) -> None:
    found = run("explore", copy_of_sample, "--per-source", "1", "--json").json()
    assert Path(found["page"]).is_file()
    written = [path for path in (copy_of_sample / "explorer").rglob("*") if path.is_file()]
    assert (found["num_files"], found["num_bytes"]) == (len(written), sum(path.stat().st_size for path in written))
    assert found["num_texts"] > 0


def test_more_samples_than_rows_are_refused(run: Run, sample_build: Path) -> None:
    assert "raise --rows" in run("explore", sample_build, "--per-source", "2", "--rows", "1").refusal()


def heed_interrupts() -> None:
    """In the process that is started: a suite that runs in the background of a shell ignores the signal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_pages_are_served_until_ctrl_c(copy_of_sample: Path) -> None:
    command = [sys.executable, "-m", "finpile_cli", "explore", str(copy_of_sample), "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:
        assert process.stdout is not None
        line = next(line for line in process.stdout if line.startswith("open http"))
        with urllib.request.urlopen(line.split()[1]) as response:
            assert b"FinPile explorer" in response.read()
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "ended\n"
    assert process.returncode == 0


def test_options_of_static_pages_are_refused_with_a_server(run: Run, sample_build: Path) -> None:
    assert "leave out --serve" in run("explore", sample_build, "--serve", "--pairs", "5").refusal()
    assert "--port is for --serve" in run("explore", sample_build, "--port", "8000").refusal()
    assert "is not on this machine" in run("explore", "memory://out", "--serve").refusal()
