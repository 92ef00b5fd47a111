"""An engine of another package is one file: `--runner` names it, and its jobs publish the bytes of a local build."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.plugins.engine import ENGINES
from finpile.storage import write_json
from tests.support.packages import installed

#: Beam's runner that keeps all data in this process. Its jobs are counted, and those of killed launchers are ended.
ENGINE_FILE = """
import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile.errors import ConfigError
from finpile.plugins.engine import EngineType

JOBS = []


class Here(EngineType):
    def check(self, beam_args):
        if "--broken" in beam_args:
            raise ConfigError("--runner here: --broken is not an option")

    def run(self, run):
        JOBS.append(run.job_name)
        pipeline = beam.Pipeline(FnApiRunner(), PipelineOptions([*run.beam_args], job_name=run.job_name))
        run.construct(pipeline)
        result = pipeline.run()
        result.wait_until_finish()
        return result

    def endpoint(self, beam_args):
        return "here:1"

    def end_jobs(self, endpoint, run, beam_args):
        return [f"{endpoint}/{run}"], []


ENGINE = Here(name="here")
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    with installed(tmp_path / "site", {"here_engine": ENGINE_FILE}, {ENGINES: "here = here_engine:ENGINE"}):
        yield


def test_every_module_of_engines_is_an_engine() -> None:
    folder = Path(sys.modules["finpile_pipelines"].__path__[0], "engines")
    assert list(ENGINES.built_in) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert [ENGINES.get(name).name for name in ENGINES.built_in] == list(ENGINES.built_in)
    assert [name for name in ENGINES.built_in if ENGINES.get(name).is_local] == ["local"]


@pytest.mark.usefixtures("package")
def test_build_on_an_engine_of_another_package_has_the_bytes_of_a_local_build(
    small_build: Path, snapshot: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    earlier = {"run": "0123456789ab", "runner": "here", "endpoint": "there:2"}
    write_json(f"{out}/.work/run.json", earlier)
    told: list[StageEvent] = []
    engine = Engine(runner="here")
    assert (engine.runs_jobs, engine.exchange_transport) == (True, "shuffle")
    build(load_config(small_build / "corpus.yaml"), str(out), engine, listen=told.append, until="split")
    folders = ("documents/", "removed/", "inputs/")
    found, expected = (
        {path: data for path, data in snapshot(folder).items() if path.startswith(folders)}
        for folder in (out, small_build / "out")
    )
    assert len(expected) > 3
    assert found == expected
    jobs = sys.modules["here_engine"].JOBS
    assert [job.split("-")[1] for job in jobs] == ["ingest", "exact", "near", "split"]
    assert len({job.rpartition("-")[2] for job in jobs}) == 1, "the name of a job ends with that of the run"
    message = "ended job there:2/0123456789ab of an earlier run, whose launcher was killed"
    assert [event.detail for event in told if event.state == "note"] == [message]
    assert not Path(Layout(str(out)).root, ".work", "run.json").exists()


@pytest.mark.usefixtures("package")
def test_the_command_lists_the_engine_and_reports_its_errors(
    write_corpus: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("finpile_cli.engine", "finpile_cli.build"):
        monkeypatch.delitem(sys.modules, module, raising=False)  # engines are listed once in a process
    runner = CliRunner()
    assert "[dataflow|flink|here|local|spark]" in runner.invoke(finpile, ["build", "--help"]).output
    arguments = [
        "build",
        str(write_corpus(tmp_path)),
        "-o",
        str(tmp_path / "out"),
        "--runner",
        "here",
        "--",
        "--broken",
    ]
    with pytest.raises(ConfigError, match=r"^--runner here: --broken is not an option$"):
        runner.invoke(finpile, list(map(str, arguments)), catch_exceptions=False)


def test_an_engine_that_is_not_installed_is_an_error_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--runner: 'here' is not known; known: dataflow, flink, local, spark$"):
        Engine(runner="here")
