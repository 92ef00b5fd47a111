"""The exceptions of FinPile.

    FinpileError                      the command line prints one message
    ├── ConfigError   (ValueError)    the corpus file or a flag is wrong            exit 2
    ├── InputError    (ValueError)    an input is missing or is not what it claims  exit 2
    ├── RunError      (RuntimeError)  the run itself failed                         exit 1
    │   ├── WorkerDied                a worker process ended (killed, out of memory)
    │   ├── StoreError                an object store does not answer, or does not let this user in
    │   └── FetchError                a server does not deliver a file
    └── IntegrityError (RuntimeError) an output file is damaged or inconsistent     exit 1

A message has the defect, its place, the expectation and the remedy. Invalid *documents* are not errors: they become
rows of the ledger (`finpile.documents.ledger`), and the run continues.
"""

from __future__ import annotations

import difflib
import errno
import shlex
from collections.abc import Iterable

#: Remedies for errors of the operating system about the machine, by number.
MACHINE_REMEDIES = {
    errno.ENOSPC: "free space there and run the same command again: it resumes",
    errno.EDQUOT: "free space there and run the same command again: it resumes",
    errno.EIO: "check the disk and run the same command again: it resumes",
    errno.ESTALE: "check the mount and run the same command again: it resumes",
    errno.EMFILE: "raise the limit of open files (ulimit -n) or use fewer --workers",
    errno.ENOMEM: "use fewer --workers",
}
MEMORY_REMEDY = "use fewer --workers, or a machine with more memory, and run the same command again"


class FinpileError(Exception):
    """Base class; `exit_code` is the exit code of the command line."""

    exit_code = 1


class ConfigError(FinpileError, ValueError):
    """The corpus file or an option is invalid. A message about a key begins with its path, as in `dedup.near`."""

    exit_code = 2


class InputError(FinpileError, ValueError):
    """An input file is missing, unreadable as a whole, or of another format than declared."""

    exit_code = 2


class RunError(FinpileError, RuntimeError):
    """The run failed although its configuration was valid."""


class WorkerDied(RunError):
    """A worker process ended before its work was complete."""


class StoreError(RunError):
    """A request to an object store failed, also when it was repeated."""


class FetchError(RunError):
    """A server does not deliver a file, also when the request was repeated."""


class IntegrityError(FinpileError, RuntimeError):
    """An output file is missing, damaged, or inconsistent with the manifest."""


def command_line(*words: str) -> str:
    """A command of FinPile for a message, as a shell reads it: words are quoted where they need it.

    >>> command_line("verify", "my corpus")
    "finpile verify 'my corpus'"
    """
    return shlex.join(["finpile", *words])


def count_of(number: int, what: str) -> str:
    """A number of things, of which `what` is one.

    >>> count_of(1, "input file"), count_of(2_000, "row of the ledger")
    ('1 input file', '2,000 rows of the ledger')
    """
    noun, of, rest = what.partition(" of ")
    return f"{number:,} {what}" if number == 1 else f"{number:,} {noun}s{of}{rest}"


def closest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name that lists the known ones; empty if none of them is similar."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean `{found[0]}`?" if found else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name; empty if nothing is known."""
    names = list(known)
    return closest(name, names) or (f"; known: {', '.join(sorted(names))}" if names else "")
