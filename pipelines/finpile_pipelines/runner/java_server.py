"""Runs a job server, which ends when the launcher ends: `python -S java_server.py LAUNCHER COMMAND...`.

A launcher that is killed cannot stop the job server that it started. This process starts it, watches the launcher, and
ends the job server with it, or when it receives SIGINT, with which Beam stops job servers. It imports almost nothing.
"""

import os
import signal
import subprocess
import sys
import time

_POLL_SECONDS = 0.5
#: Beam kills this process 5 s after its first SIGINT.
_PATIENCE_SECONDS = 3.0


def main() -> int:
    """Returns the exit code of the job server."""
    launcher = int(sys.argv[1])
    # Also where a shell started the launcher in the background: such processes inherit that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    server = subprocess.Popen(sys.argv[2:])
    try:
        while os.getppid() == launcher and server.poll() is None:
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        pass
    server.terminate()
    try:
        return server.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        return server.wait()


if __name__ == "__main__":
    sys.exit(main())
