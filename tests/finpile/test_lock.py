"""One run at a time in a folder: a second run is refused, and a dead process holds no lock."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.lock import hold

NUM_CONTENDERS = 300
PATIENCE_SECONDS = 30
StartPython = Callable[..., subprocess.Popen[str]]
Eventually = Callable[[Callable[[], Any]], Any]

#: Holds the lock of a folder again and again; prints how often it did, and how often somebody else held it too.
CONTENDER = """
import os, sys
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.lock import hold

out, rounds = sys.argv[1], int(sys.argv[2])
held = doubles = 0
sys.stdin.readline()
while held < rounds:
    try:
        with hold(Layout(out), "build"):
            held += 1
            try:
                os.close(os.open(out + "/inside", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                doubles += 1
            else:
                os.unlink(out + "/inside")
    except ConfigError:
        continue
print(held, doubles)
"""

HOLDER = """
import sys, time
from finpile.output.layout import Layout
from finpile.output.lock import hold

with hold(Layout(sys.argv[1]), "build"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_of_many_at_once_exactly_one_holds_the_lock(tmp_path: Path) -> None:
    """Also where a dead run left its lock: that race gave two holders once."""
    (tmp_path / ".work").mkdir()
    (tmp_path / ".work" / "lock").write_text(f"{socket.gethostname()} 999999999 build")
    begin, end = (threading.Barrier(NUM_CONTENDERS, timeout=PATIENCE_SECONDS) for _ in range(2))
    outcomes: list[str] = []

    def contend() -> None:
        begin.wait()
        try:
            with hold(Layout(str(tmp_path)), "build"):
                outcomes.append("held")
                end.wait()
        except ConfigError:
            outcomes.append("refused")
            end.wait()

    threads = [threading.Thread(target=contend) for _ in range(NUM_CONTENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["held", *["refused"] * (NUM_CONTENDERS - 1)]
    assert list(tmp_path.iterdir()) == []  # a folder of a training or of a download has no `.work`


def test_processes_that_take_turns_never_hold_the_lock_together(start_python: StartPython, tmp_path: Path) -> None:
    """The file and its folder are removed and made again all the time, while others open it."""
    contenders = [start_python("-c", CONTENDER, tmp_path, 100) for _ in range(4)]
    for contender in contenders:
        assert contender.stdin
        contender.stdin.write("\n")
        contender.stdin.flush()
    assert [contender.communicate()[0].split() for contender in contenders] == [["100", "0"]] * 4


def test_lock_of_a_killed_run_is_free_although_its_file_names_a_living_process(
    start_python: StartPython, tmp_path: Path
) -> None:
    holder = start_python("-c", HOLDER, tmp_path)
    assert holder.stdout and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(
            ConfigError,
            match=rf"another command is running, build \(process {holder.pid} on {socket.gethostname()}\): wait",
        ),
        hold(Layout(str(tmp_path)), "append"),
    ):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    lock = tmp_path / ".work" / "lock"
    lock.write_text(f"{socket.gethostname()} {os.getppid()} build")  # the number was given to another process since
    with hold(Layout(str(tmp_path)), "build"):
        assert lock.read_text() == f"{socket.gethostname()} {os.getpid()} build"
    assert not lock.exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"another-machine 17 build", b"x" * 100_000])
def test_content_of_the_lock_decides_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / ".work").mkdir()
    lock = tmp_path / ".work" / "lock"
    lock.write_bytes(content)
    with hold(Layout(str(tmp_path)), "build"):
        assert lock.read_text() == f"{socket.gethostname()} {os.getpid()} build"


def test_lock_of_a_file_system_without_locks_is_not_held(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Some network file systems have no locks: the run continues, as on object stores."""
    import errno

    def flock(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    with hold(Layout(str(tmp_path)), "build") as first, hold(Layout(str(tmp_path)), "build") as second:
        assert (first, second) == (True, True)
