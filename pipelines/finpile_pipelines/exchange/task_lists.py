"""Lists of tasks that travel by URL: an engine limits the size of a job request, and a list grows with the corpus.

Source: Google Cloud, Dataflow, "Quotas and limits": 20 MB for a job request, 10 MB for its graph.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from finpile import storage
from finpile.errors import IntegrityError
from finpile_pipelines.exchange.jobs import Job

#: Bytes of a pickled list up to which it is in the job request.
REQUEST_BYTES = 1 << 16
_FOLDER = "tasks"
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TaskList:
    """A list of tasks, here or in a file."""

    tasks: Sequence[Any] = ()
    url: str = ""
    digest: bytes = b""

    def read(self) -> Sequence[Any]:
        """Raises: IntegrityError if the file has other bytes than were written."""
        if not self.url:
            return self.tasks
        data = storage.read_bytes(self.url)
        if _digest(data) != self.digest:
            raise IntegrityError(f"{self.url} is damaged: run the same command again")
        found: Sequence[Any] = pickle.loads(data)
        return found


def task_list(tasks: Sequence[Any], job: Job | None) -> TaskList:
    """The tasks of a job: a long list is written to a file beside the one of the run's lease.

    Pipelines of the local runner hold the list itself.
    """
    if job is None or job.lease is None:
        return TaskList(tasks)
    data = pickle.dumps(tasks)
    if len(data) <= REQUEST_BYTES:
        return TaskList(tasks)
    digest = _digest(data)
    url = storage.join(_folder(job.lease.url), f"{digest.hex()}.pickle")
    storage.write_bytes(url, data)
    return TaskList(url=url, digest=digest)


def remove_task_lists(lease_url: str) -> None:
    """Removes the lists of a job that has ended."""
    storage.remove_tree(_folder(lease_url))


def _folder(lease_url: str) -> str:
    return storage.join(lease_url.rsplit("/", 1)[0], _FOLDER)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
