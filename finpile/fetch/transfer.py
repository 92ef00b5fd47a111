"""Many files: downloaded by several threads, skipped where they are here, each failure reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from finpile.errors import FetchError
from finpile.fetch.client import Client
from finpile.fetch.download import Fetched, download, sha256_of
from finpile.fetch.failures import Blocked, Stopped
from finpile.fetch.fetched import FetchManifest
from finpile.fetch.targets import Target

State = Literal["fetched", "here", "failed"]
#: Files that wait for each thread; a list can name millions.
_NUM_WAITING = 4
#: Failures in a row after which a run ends: the server is down, or the list is wrong.
_NUM_FAILURES = 10


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What a run did."""

    num_fetched: int = 0
    num_here: int = 0
    """Files that were here before and are unchanged."""
    num_bytes: int = 0
    """Of the files that were fetched."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Path and message of each file that could not be fetched."""

    def add(self, other: Outcome) -> None:
        self.num_fetched += other.num_fetched
        self.num_here += other.num_here
        self.num_bytes += other.num_bytes
        self.failures += other.failures


def transfer(
    client: Client,
    targets: Iterable[Target],
    folder: Path,
    manifest: FetchManifest,
    *,
    num_connections: int = 1,
    check: bool = False,
    listener: Callable[[Target, State], None] | None = None,
) -> Outcome:
    """Downloads the files that are not in the folder yet.

    A file is here if the manifest has it and its size is equal; with `check`, its SHA-256, too. A file that fails does
    not stop the others.

    Raises: FetchError if the server refuses this client, or after 10 failures in a row.
    """
    outcome, num_in_row = Outcome(), 0
    with ThreadPoolExecutor(num_connections, thread_name_prefix="fetch") as threads:
        try:
            for target, future in _finished(threads, targets, lambda one: _fetch(client, one, folder, manifest, check)):
                state, num_in_row = _count(outcome, target, future, num_in_row)
                if listener is not None:
                    listener(target, state)
                if num_in_row >= _NUM_FAILURES:
                    raise FetchError(
                        f"{num_in_row} files in a row could not be fetched; the last one: {outcome.failures[-1][1]}"
                    )
        except BaseException:
            client.stop()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
    return outcome


def _finished(
    threads: ThreadPoolExecutor, targets: Iterable[Target], work: Callable[[Target], Fetched | None]
) -> Iterator[tuple[Target, Future[Fetched | None]]]:
    """Each target with its result, as they arrive; a bounded number waits."""
    waiting: dict[Future[Fetched | None], Target] = {}
    limit = threads._max_workers * _NUM_WAITING
    for target in targets:
        waiting[threads.submit(work, target)] = target
        if len(waiting) >= limit:
            yield from _first(waiting)
    while waiting:
        yield from _first(waiting)


def _first(waiting: dict[Future[Fetched | None], Target]) -> Iterator[tuple[Target, Future[Fetched | None]]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future


def _count(outcome: Outcome, target: Target, future: Future[Fetched | None], num_in_row: int) -> tuple[State, int]:
    try:
        fetched = future.result()
    except (Blocked, Stopped):
        raise
    except FetchError as error:
        outcome.failures.append((target.path, str(error)))
        return "failed", num_in_row + 1
    if fetched is None:
        outcome.num_here += 1
        return "here", num_in_row
    outcome.num_fetched += 1
    outcome.num_bytes += fetched.bytes
    return "fetched", 0


def _fetch(client: Client, target: Target, folder: Path, manifest: FetchManifest, check: bool) -> Fetched | None:
    """Downloads a file and adds it to the manifest; None if it is here."""
    client.check_running()
    known = manifest.get(target.path)
    if known is not None and not _is_here(known, target, folder, check):
        known = None
    if known is not None and not target.changes:
        return None
    fetched = download(client, target, folder, known)
    if fetched is not None:
        manifest.add(fetched)
    return fetched


def _is_here(known: Fetched, target: Target, folder: Path, check: bool) -> bool:
    path = folder / target.path
    if known.url != target.url or not path.is_file() or path.stat().st_size != known.bytes:
        return False
    return not check or sha256_of(path) == known.sha256
