"""One line for a failure that a runner reports with its stack traces."""

from __future__ import annotations

import re

from finpile.errors import RunError

#: The last line of a traceback, and what Beam appends to a message.
_RAISED = re.compile(r"[\w.]+(Error|Exception|Died|Exit|Interrupt)\b")
_WHILE = re.compile(r" \[while running '.*'\]$")
#: The same for a message that Python prints with quotation marks, as it does for `KeyError`.
_QUOTED_WHILE = re.compile(r"\"(.*) \[while running '.*'\]\"$")
#: The first frame of a stack trace of Java.
_JAVA_FRAME = re.compile(r"\s+at [\w$/]+(?:\.[\w$]+)+(?:\.<init>)?\(")
_TRACEBACK = "Traceback (most recent call last)"


def explain(label: str, error: BaseException) -> RunError:
    """The error that a task raised, in one line, from the runner's message; equal for any number of workers."""
    is_traced = isinstance(error, RuntimeError) and _TRACEBACK in str(error)
    text = _JAVA_FRAME.split(str(error).rpartition(_TRACEBACK)[2] if is_traced else str(error))[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if is_traced:
        cause = next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1])
    else:
        cause = f"{type(error).__name__}: {' '.join(lines)}"
    cause = _WHILE.sub("", _QUOTED_WHILE.sub(r"'\1'", cause))
    return RunError(f"stage {label} failed: {cause.removeprefix('finpile.errors.')}")
