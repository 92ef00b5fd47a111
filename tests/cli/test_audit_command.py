"""`finpile audit`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cli.test_explore_command import heed_interrupts

Run = Callable[..., Any]


def judge(address: str, number: int) -> int:
    """Answers yes to items that have no answer; returns how many had one."""
    host = "/".join(address.split("/")[:3])
    with urllib.request.urlopen(f"{host}/explorer/index/data/audit.js") as response:
        found = json.loads(response.read().decode().partition(",")[2].rstrip()[:-1])
    left = [item["shown"] for item in found["items"] if item["shown"] not in found["answers"]]
    for shown in left[:number]:
        body = json.dumps({"item": shown, "answer": "yes"}).encode()
        headers = {"Origin": host, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{host}/explorer/index/judgements", body, headers)
        urllib.request.urlopen(request).close()
    return len(found["answers"])


def test_a_killed_server_loses_no_answer_and_the_same_command_goes_on(run: Run, copy_of_sample: Path) -> None:
    command = [sys.executable, "-m", "finpile_cli", "audit", str(copy_of_sample), "--per-source", "2"]
    for ending, answered, printed in ((signal.SIGKILL, 0, ""), (signal.SIGINT, 5, "10 of ")):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:
            assert process.stdout is not None
            line = next(line for line in process.stdout if line.startswith("open http"))
            assert judge(line.split()[1], 5) == answered
            process.send_signal(ending)
            assert printed in process.stdout.read()
    assert process.returncode == 0
    found = run("audit", copy_of_sample, "--results", "--json").json()
    assert found["judged"] == 10
    assert found["precision"][0]["right"] == found["precision"][0]["judged"] == 10
    assert found["precision"][0]["precision"]["high"] == 1
    assert "Precision" in (copy_of_sample / "audit" / "index.html").read_text()
    assert json.loads((copy_of_sample / "audit" / "audit.json").read_text())["rows"][0]["values"]["right"] == 10
    assert "every file is there" in run("verify", copy_of_sample).out


def test_results_of_no_answers_are_tables_without_shares(run: Run, copy_of_sample: Path) -> None:
    found = run("audit", copy_of_sample, "--results", "--pairs", "0", "--json").json()
    assert (found["judged"], found["missed"], found["note"]) == (0, [], "No pairs were looked for.")
    assert {row["precision"] for row in found["precision"]} == {None}
    assert not (copy_of_sample / "explorer").exists()


def test_options_that_do_not_belong_together_are_refused(run: Run, sample_build: Path) -> None:
    assert "leave out --results" in run("audit", sample_build, "--results", "--port", "8000").refusal()
    assert "is not on this machine" in run("audit", "memory://out").refusal()
