"""The parts of Beam that are replaced or used although they are private, and the version of each that is tested.

A part is in use if its source is the one that is tested. If it is missing or changed, Beam's own way is used, which
gives the same results: `Part.without` says what it costs.

Decision: docs/decisions/0076-private-parts-of-beam.md.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, reduce
from importlib.metadata import version
from typing import Any

_DIGEST_BYTES = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A function or class of Beam."""

    place: str
    """`module:name`."""
    source: str
    """The digest of its source."""
    use: str
    """What FinPile does with it."""
    without: str
    """What happens if it is missing or changed."""

    @property
    def digest(self) -> str | None:
        """That of the installed part; None if it is missing, or its source is. A wrapper has that of what it wraps."""
        try:
            source = inspect.getsource(part_of(self))
        except (ImportError, AttributeError, OSError, TypeError):
            return None
        return hashlib.blake2b(source.encode(), digest_size=_DIGEST_BYTES).hexdigest()


_OWN_SERVER = "Beam starts and stops job servers: a killed launcher leaves them behind"
_JOBS = "apache_beam.runners.portability"

SAMPLING = Part(
    place="apache_beam.runners.worker.statesampler:StateSampler.__init__",
    source="bef2dd26f9921a69",
    use="a default is replaced, so that bundles end sooner",
    without="each pipeline of an engine takes longer",
)
SPARK_SERVER = Part(
    place=f"{_JOBS}.spark_runner:SparkRunner.default_job_server",
    source="ccfd494712485918",
    use="job servers end with the launcher, and keep temporary files in its folder",
    without=_OWN_SERVER,
)
FLINK_SERVER = Part(
    place=f"{_JOBS}.flink_runner:FlinkRunner.default_job_server",
    source="f224de6db247009b",
    use="one job server for all pipelines, which ends with the launcher",
    without=_OWN_SERVER,
)
JAVA_COMMAND = Part(
    place=f"{_JOBS}.job_server:JavaJarJobServer.subprocess_cmd_and_endpoint",
    source="5efc04656330036c",
    use="the command that starts Java is watched",
    without=_OWN_SERVER,
)

DATAFLOW_JOBS = Part(
    place="apache_beam.runners.dataflow.internal.apiclient:DataflowApplicationClient.job_id_for_name",
    source="4971752ff53c2975",
    use="its client of Google Cloud lists jobs",
    without="a command is refused while a job of a killed launcher may be running",
)


@cache
def is_tested(part: Part) -> bool:
    """Whether the installed part is the one that is tested."""
    return part.digest == part.source


def are_tested(parts: Iterable[Part]) -> bool:
    return all(map(is_tested, parts))


def changed(parts: Iterable[Part]) -> list[str]:
    """A message for each part that is not used."""
    installed = version("apache-beam")
    return [
        f"apache-beam {installed} is not the tested version: {part.place.replace(':', '.')} is missing or has changed, "
        f"so {part.without}"
        for part in parts
        if not is_tested(part)
    ]


def part_of(part: Part) -> Any:
    """The part itself. Raises: ImportError or AttributeError if it is missing."""
    module, _, name = part.place.partition(":")
    return reduce(getattr, name.split("."), importlib.import_module(module))
