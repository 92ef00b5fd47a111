"""A worker process of the local runner: does units of a pipeline's work that the launcher sends.

Forked by `runner.fork_server`. The first message has the steps of the pipeline, each further one a unit of work
(`runner.in_process`). The answer has what the unit brought to places where elements wait, or its error. An empty
message is the end of the pipeline; the answer is the CPU seconds of this process.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle

from finpile_pipelines.runner.child_processes import end_with
from finpile_pipelines.runner.in_process import Place, Steps

Answer = tuple[list[tuple[Place, Any]], BaseException | None]


def main(launcher: Connection) -> None:
    """Serves until the pipeline ends, or until the fork server ends, which ends with the launcher."""
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends; the launcher reports failures)
    found: list[tuple[Place, Any]] = []
    launcher.send_bytes(str(os.getpid()).encode())
    steps = Steps(pickle.loads(launcher.recv_bytes()), lambda place, element: found.append((place, element)))
    while message := launcher.recv_bytes():
        error: BaseException | None = None
        try:
            steps.do(*pickle.loads(message))
        except Exception as raised:
            error = _portable(raised)
        launcher.send_bytes(cloudpickle.dumps((found, error) if error is None else ([], error)))
        found.clear()
    launcher.send_bytes(repr(time.process_time()).encode())


def _portable(error: Exception) -> BaseException:
    """The error, or one with the text of its traceback if it cannot be sent."""
    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
