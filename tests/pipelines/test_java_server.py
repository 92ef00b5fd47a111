"""The process that starts a job server ends it when it is interrupted, however the launcher was started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from finpile_pipelines.runner import java_server

_SERVER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"


@contextmanager
def started(interrupts: signal.Handlers) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process, which inherits what to do at SIGINT, and the number of its server."""
    command = [sys.executable, "-S", "-E", java_server.__file__, str(os.getpid()), sys.executable, "-c", _SERVER]
    inherit = lambda: signal.signal(signal.SIGINT, interrupts)  # noqa: E731
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=inherit) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        try:
            yield process, server
        finally:
            for number in (process.pid, server):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


@pytest.mark.parametrize("interrupts", [signal.SIG_DFL, signal.SIG_IGN])
def test_an_interrupt_ends_the_server(interrupts: signal.Handlers) -> None:
    """Processes that a shell starts in the background inherit that SIGINT is ignored."""
    with started(interrupts) as (process, server):
        process.send_signal(signal.SIGINT)
        process.wait(60)
        with pytest.raises(ProcessLookupError):
            os.kill(server, 0)
