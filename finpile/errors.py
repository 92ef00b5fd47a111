"""Every error that FinPile raises on purpose.

    FinpileError                      what the command line turns into one message
    ├── ConfigError   (ValueError)    the corpus file or a flag is wrong            exit 2
    ├── InputError    (ValueError)    an input is missing or is not what it claims  exit 2
    ├── RunError      (RuntimeError)  the run itself failed                         exit 1
    │   └── WorkerDied                a worker process ended (killed, out of memory)
    └── IntegrityError (RuntimeError) a written artifact breaks one of its laws     exit 1

A message says what is wrong, where, what was expected, and how to mend it. Bad *documents* are no errors: they become
rows of the removal ledger (`finpile.ledger`), and the run goes on.
"""

from __future__ import annotations


class FinpileError(Exception):
    """Base of all errors raised on purpose; `exit_code` is what the command line ends with."""

    exit_code = 1


class ConfigError(FinpileError, ValueError):
    """The corpus file, or a flag, says something that cannot be meant."""

    exit_code = 2


class InputError(FinpileError, ValueError):
    """A file given as input is missing, unreadable as a whole, or of another kind than claimed."""

    exit_code = 2


class RunError(FinpileError, RuntimeError):
    """The run failed although its configuration was valid."""


class WorkerDied(RunError):
    """A worker process ended before its work was done."""


class IntegrityError(FinpileError, RuntimeError):
    """An artifact on disk is not what its manifest or its laws say."""
