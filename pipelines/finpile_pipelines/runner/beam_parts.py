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
from functools import cache
from importlib.metadata import version
from typing import Any

TESTED_VERSION = "2.77.0"
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
            source = inspect.getsource(_resolve(self.place))
        except (ImportError, AttributeError, OSError, TypeError):
            return None
        return hashlib.blake2b(source.encode(), digest_size=_DIGEST_BYTES).hexdigest()


_SLOWER = "small builds take longer"
_THREADS = "several workers are threads instead of processes"
_OWN_SERVER = "Beam starts and stops job servers: a killed launcher leaves them behind"
_FN_API, _JOBS = "apache_beam.runners.portability.fn_api_runner", "apache_beam.runners.portability"

VIEWS = Part(
    place="apache_beam.options.pipeline_options:PipelineOptions.view_as",
    source="2c0cc6e7907bb195",
    use="results are kept",
    without=_SLOWER,
)
SIGNATURES = Part(
    place="apache_beam.transforms.core:get_function_args_defaults",
    source="de1c436c7a2bbbc2",
    use="results are kept",
    without=_SLOWER,
)
SAMPLING = Part(
    place="apache_beam.runners.worker.statesampler:StateSampler.__init__",
    source="bef2dd26f9921a69",
    use="a default is replaced, so that bundles end sooner",
    without=_SLOWER,
)
SERVERS = Part(
    place=f"{_FN_API}.worker_handlers:GrpcServer.__init__",
    source="97b92b82feb94498",
    use="its servers get Unix sockets instead of ports of all interfaces",
    without=_THREADS,
)
WORKER_LOGS = Part(
    place=f"{_JOBS}.local_job_service:SubprocessSdkWorker.run",
    source="307427a308347a9a",
    use="its server gets a Unix socket instead of a port of all interfaces",
    without=_THREADS,
)
CHANNELS = Part(
    place="apache_beam.runners.worker.channel_factory:GRPCChannelFactory.insecure_channel",
    source="441c920d35ec0356",
    use="clients connect to Unix sockets",
    without=_THREADS,
)
WORKER_THREADS = Part(
    place=f"{_FN_API}.worker_handlers:SubprocessSdkWorkerHandler.start_worker",
    source="66cc4baf00f0ed9e",
    use="the name of its thread tells that a worker process has ended",
    without=_THREADS,
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

#: What worker processes need.
PROCESSES = (SERVERS, WORKER_LOGS, CHANNELS, WORKER_THREADS)


@cache
def is_tested(part: Part) -> bool:
    """Whether the installed part is the one that is tested."""
    return part.digest == part.source


def are_tested(parts: Iterable[Part]) -> bool:
    return all(map(is_tested, parts))


def is_tested_version() -> bool:
    """Whether the installed version of Beam is the tested one; Beam is not imported."""
    return version("apache-beam") == TESTED_VERSION


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
    return _resolve(part.place)


def _resolve(place: str) -> Any:
    module, _, name = place.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in name.split("."):
        found = getattr(found, attribute)
    return found
