"""Messages for unexpected errors: errors of the operating system, and internal errors of FinPile."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from finpile.errors import MACHINE_REMEDIES, MEMORY_REMEDY

#: If this variable is set to a non-empty string, the traceback of an internal error is printed too.
TRACEBACK_VARIABLE = "FINPILE_TRACEBACK"
_MISUSED = 2
_FAILED = 1
#: Remedies for errors about a path of the command line.
_PATH_REMEDIES = {
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "name a file",
    errno.ELOOP: "check the symbolic links",
    errno.EACCES: "change the permissions or name another path",
    errno.EPERM: "change the permissions or name another path",
    errno.EROFS: "name a path that can be written",
}


def explain(error: Exception) -> tuple[str, int]:
    """One line for an error that is not FinPile's own, and the exit code: 2 for an invalid path, else 1."""
    number = (error.errno or 0) if isinstance(error, OSError) else 0
    if isinstance(error, OSError) and error.strerror and (error.filename or number in MACHINE_REMEDIES):
        place = f"{_text(error.filename)}: " if error.filename else ""
        remedy = _PATH_REMEDIES.get(number) or MACHINE_REMEDIES.get(number)
        line = f"{place}{error.strerror}{f': {remedy}' if remedy else ''}"
        return line, _MISUSED if number in _PATH_REMEDIES else _FAILED
    if isinstance(error, MemoryError):
        return f"out of memory: {MEMORY_REMEDY}", _FAILED
    message = " ".join(str(error).split()) or "no message"
    hint = "" if _traceback_wanted() else f"; set {TRACEBACK_VARIABLE}=1 to see the traceback"
    return f"internal error: {type(error).__name__}: {message} ({_place(error)}){hint}", _FAILED


def print_traceback(error: Exception) -> None:
    """Prints the traceback to standard error if `FINPILE_TRACEBACK` is set."""
    if _traceback_wanted():
        traceback.print_exception(error)


def _traceback_wanted() -> bool:
    return bool(os.environ.get(TRACEBACK_VARIABLE))


def _place(error: Exception) -> str:
    """File and line where the error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "unknown place"


def _text(path: object) -> str:
    """The path, shortened in the middle to at most 200 characters."""
    text = os.fsdecode(path) if isinstance(path, (str, bytes)) else str(path)
    return text if len(text) <= 200 else f"{text[:160]}...{text[-37:]}"
