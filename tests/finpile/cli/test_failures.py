"""Errors that nobody raised on purpose are one line and an exit code, too."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/out/x"), 1, "/out/x: No space left on device: free space"),
        (PermissionError(errno.EACCES, "Permission denied", "/in/y"), 2, "/in/y: Permission denied: change the perm"),
        (OSError(errno.EROFS, "Read-only file system", "/out"), 2, "/out: Read-only file system: name a path"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "Cannot allocate memory: use fewer --workers"),
        (MemoryError(), 1, "out of memory: use fewer --workers"),
        (EOFError("ends early"), 1, "internal error: EOFError: ends early (test_failures.py:"),
        (KeyError("name"), 1, "internal error: KeyError: 'name' (test_failures.py:"),
        (ValueError("two\nlines"), 1, "internal error: ValueError: two lines (test_failures.py:"),
        (RecursionError(), 1, "internal error: RecursionError: no message (test_failures.py:"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_unexpected_error_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path, error: BaseException, code: int, message: str
) -> None:
    monkeypatch.setattr("finpile.config.load_config", failing(error))
    monkeypatch.delenv("FINPILE_TRACEBACK", raising=False)
    found = run("check", corpus)
    assert (found.code, found.out) == (code, "")
    (line,) = found.err.strip().splitlines()
    assert line.startswith(f"finpile: {message}")
    assert ("internal error" in line) == ("set FINPILE_TRACEBACK=1" in line)


def test_traceback_is_printed_where_it_is_wanted(run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    monkeypatch.setattr("finpile.config.load_config", failing(KeyError("name")))
    monkeypatch.setenv("FINPILE_TRACEBACK", "1")
    found = run("check", corpus)
    assert found.code == 1
    assert found.err.startswith("Traceback (most recent call last)")
    assert found.err.splitlines()[-1].startswith("finpile: internal error: KeyError: 'name'")


@pytest.mark.parametrize("length", [300, 5000])
@pytest.mark.parametrize("command", ["build", "check", "verify", "dedup"])
def test_path_that_is_too_long_is_one_short_message(run: Run, corpus: Path, command: str, length: int) -> None:
    path = "/tmp/" + "n" * length
    arguments = {
        "build": [corpus, "-o", path],
        "check": [path],
        "verify": [path],
        "dedup": [path, "-o", f"{path}-out"],
    }[command]
    message = run(command, *arguments).refusal()
    assert "File name too long" in message
    assert len(message) < 700
    assert not os.path.lexists("/tmp/n")
