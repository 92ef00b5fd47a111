"""The exception tree: one base, exit codes for the command line, a builtin beside each class."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import finpile_cli
import finpile_pipelines
import pytest

import finpile
from finpile import errors
from finpile.errors import (
    ConfigError,
    FetchError,
    FinpileError,
    InputError,
    IntegrityError,
    RunError,
    StoreError,
    WorkerDied,
)

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]

TREE = [
    (ConfigError, ValueError, 2),
    (InputError, ValueError, 2),
    (RunError, RuntimeError, 1),
    (WorkerDied, RunError, 1),
    (StoreError, RunError, 1),
    (FetchError, RunError, 1),
    (IntegrityError, RuntimeError, 1),
]


@pytest.mark.parametrize(("kind", "builtin", "code"), TREE)
def test_error_is_ours_and_a_builtin(kind: type[FinpileError], builtin: type[Exception], code: int) -> None:
    with pytest.raises(builtin) as caught:
        raise kind("what, where, what was expected, how to mend it")
    assert isinstance(caught.value, FinpileError)
    assert caught.value.exit_code == code


def test_tree_above_is_whole_and_drawn_in_the_docstring() -> None:
    assert {kind for kind, _, _ in TREE} | {FinpileError} == set(CLASSES)
    drawing = inspect.getdoc(errors) or ""
    assert all(kind.__name__ in drawing for kind in CLASSES)
    assert all(kind.__doc__ for kind in CLASSES)


@pytest.mark.parametrize("kind", [kind for kind, _, _ in TREE])
def test_error_survives_the_way_from_a_worker_process(kind: type[FinpileError]) -> None:
    found = pickle.loads(pickle.dumps(kind("the message")))
    assert (type(found), str(found), found.exit_code) == (kind, "the message", kind.exit_code)


@pytest.mark.parametrize("package", [finpile, finpile_cli, finpile_pipelines])
def test_commands_in_messages_are_quoted_for_a_shell(package: object) -> None:
    """A path in a command is a word of `command_line`."""
    written = re.compile(r"\bfinpile (?:[a-z-]+ )+(?:[A-Z][\w.]* )*(?:-+[a-z-]+ )?\{")
    files = sorted(Path(package.__path__[0]).rglob("*.py"))  # type: ignore[attr-defined]
    found = [f"{path}: {line}" for path in files for line in path.read_text().splitlines() if written.search(line)]
    assert files and [line for line in found if not re.search(r"of `finpile [a-z ]+`", line)] == []
