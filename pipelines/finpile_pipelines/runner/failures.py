"""One line for a failure that a runner reports with its stack traces."""

from __future__ import annotations

import re

from finpile.errors import MACHINE_REMEDIES, MEMORY_REMEDY, RunError

#: The last line of a traceback, and what Beam appends to a message.
_RAISED = re.compile(r"[\w.]+(Error|Exception|Died|Exit|Interrupt)\b")
_WHILE = re.compile(r" \[while running '.*'\]$")
#: The same for a message that Python prints with quotation marks, as it does for `KeyError`.
_QUOTED_WHILE = re.compile(r"\"(.*) \[while running '.*'\]\"$")
#: The first frame of a stack trace of Java.
_JAVA_FRAME = re.compile(r"\s+at [\w$/]+(?:\.[\w$]+)+(?:\.<init>)?\(")
#: Errors of the machine.
_NUMBERED = re.compile(r"[\w.]+: \[Errno (\d+)\] ")
_MEMORY = re.compile(r"[\w.]*MemoryError\b")
_TRACEBACK = "Traceback (most recent call last)"


def explain(label: str, error: BaseException) -> RunError:
    """The error that a task raised, in one line, from the runner's message; equal for any number of workers.

    An error of the machine, such as a full disk, has its remedy.
    """
    is_traced = isinstance(error, RuntimeError) and _TRACEBACK in str(error)
    text = _JAVA_FRAME.split(str(error).rpartition(_TRACEBACK)[2] if is_traced else str(error))[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if is_traced:
        cause = next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1])
    else:
        cause = f"{type(error).__name__}: {' '.join(lines)}"
    cause = _WHILE.sub("", _QUOTED_WHILE.sub(r"'\1'", cause)).removesuffix(": ")
    remedy = _remedy(cause)
    return RunError(f"stage {label} failed: {cause.removeprefix('finpile.errors.')}{f': {remedy}' if remedy else ''}")


def _remedy(cause: str) -> str | None:
    if numbered := _NUMBERED.match(cause):
        return MACHINE_REMEDIES.get(int(numbered[1]))
    return MEMORY_REMEDY if _MEMORY.match(cause) else None
