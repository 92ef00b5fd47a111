"""What the processor counted while an encoder ran, by Linux's `perf stat` attached to this process."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

EVENTS = ("cycles", "instructions", "branch-misses", "cache-misses", "L1-dcache-load-misses", "dTLB-load-misses")
_SECONDS_TO_ATTACH = 0.5


def counted(run: Callable[[], Any]) -> dict[str, int]:
    """The events during `run`, without those that this machine cannot count; none where perf is not installed."""
    perf = shutil.which("perf")
    if perf is None:
        return {}
    command = [perf, "stat", "-x", ",", "-e", ",".join(EVENTS), "-p", str(os.getpid())]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    time.sleep(_SECONDS_TO_ATTACH)
    run()
    process.send_signal(signal.SIGINT)
    return parse(process.communicate()[1])


def parse(output: str) -> dict[str, int]:
    """The counts in what `perf stat -x ,` prints: `value,unit,event,...` a line, or a word in place of the value."""
    fields = [line.split(",") for line in output.splitlines()]
    return {each[2].partition(":")[0]: int(each[0]) for each in fields if len(each) > 2 and each[0].isdigit()}
