"""What the steps of a job on an engine know of its run: whether it still owns OUT, and where the launcher is.

A launcher that is killed leaves its job running. The next run takes OUT over (`runner.owner`); from then on, tasks of
the old job refuse to write, and the job ends with an error.

Workers report their CPU time and memory as metrics of Beam, which engines add up.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from finpile import storage
from finpile.errors import RunError
from finpile.storage.write_guard import guarded
from finpile_pipelines import graph
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.versions import CompareVersions, versions_here

#: The namespace of the metrics, and their names: CPU time of all workers, and the largest memory of one.
METRICS, CPU_MILLISECONDS, PEAK_BYTES = "finpile", "cpu_ms", "peak_bytes"
#: A worker asks at most so often who owns OUT. A run that takes it over waits longer before it writes.
FRESH_SECONDS = 0.5
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024

Element = TypeVar("Element")


@dataclass(frozen=True, slots=True)
class Lease:
    """A run's right to write into OUT, until another run takes it over."""

    url: str
    """The file that names the run that owns OUT."""
    run: str

    def check(self) -> None:
        """Raises: RunError if another run has taken OUT over."""
        now = time.monotonic()
        if now - _CHECKED.get(self, -FRESH_SECONDS) < FRESH_SECONDS:
            return
        try:
            owner = storage.read_json(self.url)["run"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            owner = None
        if owner != self.run:
            raise RunError(f"{self.url}: another run has taken over, and this one writes no more")
        _CHECKED[self] = now


_CHECKED: dict[Lease, float] = {}


@dataclass(frozen=True, slots=True)
class Job:
    """A job that is being constructed; it is pickled with its steps."""

    lease: Lease | None
    launcher: str
    """The process that constructs it."""

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around a task: what is written is checked first, and the worker's use of CPU and memory is reported."""
        try:
            if self.lease is None:
                yield
            else:
                self.lease.check()
                with guarded(self.lease.check):
                    yield
        finally:
            if self.launcher != this_process():
                _report_usage()


def this_process() -> str:
    """A name that no other process has, on this machine or another."""
    return f"{socket.gethostname()}:{os.getpid()}"


def working(job: Job | None, elements: Iterable[Element]) -> Iterator[Element]:
    """The elements of a task, which steps fused with it process, as work of the job."""
    if job is None:
        yield from elements
        return
    with job.working():
        yield from elements


@dataclass(slots=True)
class _Constructed:
    job: Job | None = None
    compared: graph.PCollection[Passed] | None = None


_CONSTRUCTED = _Constructed()


@contextmanager
def job_of(lease: Lease | None, pipeline: graph.Pipeline, *, compares: bool) -> Iterator[None]:
    """Steps that are added to the pipeline meanwhile are those of a job of the run.

    If it `compares`, its tasks wait until a worker has compared its versions with those of this process.
    """
    compared = None
    if compares:
        comparison = graph.FlatMap(CompareVersions(versions_here()).compare).with_output_types(Passed)
        compared = pipeline | "Start" >> graph.Impulse() | "CompareVersions" >> comparison
    _CONSTRUCTED.job, _CONSTRUCTED.compared = Job(lease, this_process()), compared
    try:
        yield
    finally:
        _CONSTRUCTED.job = _CONSTRUCTED.compared = None


def current_job() -> Job | None:
    """The job that is being constructed; None on the local runner."""
    return _CONSTRUCTED.job


def compared_versions() -> graph.PCollection[Passed] | None:
    """That for which the first tasks of the job wait."""
    return _CONSTRUCTED.compared


class _Usage:
    """What this process has reported."""

    cpu_milliseconds = 0
    lock = threading.Lock()


def _report_usage() -> None:
    from apache_beam.metrics import Metrics  # a run in the launcher's process has no job

    with _Usage.lock:
        used = int(time.process_time() * 1000)
        more, _Usage.cpu_milliseconds = used - _Usage.cpu_milliseconds, used
    Metrics.counter(METRICS, CPU_MILLISECONDS).inc(more)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT
    Metrics.distribution(METRICS, PEAK_BYTES).update(peak)
