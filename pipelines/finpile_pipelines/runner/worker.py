"""A worker process of the local runner: Beam's own worker without its log, which exits if the launcher ends.

Forked by `finpile_pipelines.runner.fork_server`.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

LAUNCHER_VARIABLE = "FINPILE_LAUNCHER_PID"
_POLL_SECONDS = 0.5
_SAMPLING_MS = 5


def main() -> None:
    """Serves until the pipeline ends, or until the launcher ends."""
    launcher = int(os.environ[LAUNCHER_VARIABLE])
    threading.Thread(target=_end_with, args=(launcher,), daemon=True).start()
    from apache_beam.runners.worker import sdk_worker_main

    # Beam prints each failed task's traceback here, several times; the launcher reports the failure once.
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until the process ends)
    sdk_worker_main.main(sys.argv)


def end_bundles_soon() -> None:
    """Makes Beam sample a bundle's state every 5 ms: a bundle ends at the next sample, by default up to 200 ms later.

    Beam has no option for it.
    """
    from finpile_pipelines.runner.beam_parts import SAMPLING, is_tested, part_of

    if is_tested(SAMPLING):
        part_of(SAMPLING).__defaults__ = (_SAMPLING_MS,)


def _end_with(launcher: int) -> None:
    """A killed launcher cannot end its workers, which would then write into the folder of the next run."""
    while os.getppid() == launcher:  # an orphan gets another parent, even if its dead launcher is still a zombie
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)
