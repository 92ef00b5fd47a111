"""Private parts of Beam: the installed ones are tested, replaced ones give the same, and without them builds work."""

from __future__ import annotations

import importlib
import inspect
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options import pipeline_options
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core
from finpile_pipelines import graph
from finpile_pipelines.build import build
from finpile_pipelines.engines import local
from finpile_pipelines.exchange.tasks import Gather
from finpile_pipelines.runner import beam_parts
from finpile_pipelines.runner.beam_caches import install_caches
from finpile_pipelines.runner.beam_parts import Part, changed, is_tested
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.portable import PortableEngine
from finpile_pipelines.stage import Sizes

from finpile import storage
from finpile.config import load_config
from finpile.plugins.engine import ENGINES

_ALL = sorted({part for name in ENGINES.built_in for part in ENGINES.get(name).parts}, key=lambda part: part.place)
_FLAGS = [
    [],
    ["--direct_num_workers=3", "--experiments=a", "--experiments=b"],
    ["--job_name=x", "--environment_type=EXTERNAL", "--sdk_worker_parallelism=2", "--flink_master=h:1"],
]


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes parts look changed."""

    def hide(*parts: Part) -> None:
        monkeypatch.setattr(Part, "digest", property(lambda part: "other" if part in parts else part.source))
        is_tested.cache_clear()

    yield hide
    monkeypatch.undo()
    is_tested.cache_clear()


@pytest.mark.parametrize("part", _ALL, ids=lambda part: part.place)
def test_the_installed_part_is_the_tested_one(part: Part) -> None:
    """If it is not, read what has changed, run the tests that it names, and write the new digest."""
    if "dataflow" in part.place:
        pytest.importorskip("google.cloud.dataflow_v1beta3", reason="needs apache-beam[gcp] (0.6 GB)")
    install_caches()
    assert part.digest == part.source


@pytest.mark.parametrize("place", ["apache_beam.no:module", "apache_beam.pvalue:Nothing", "apache_beam.pvalue:logging"])
def test_a_missing_part_is_not_used(place: str) -> None:
    part = Part(place=place, source="ab", use="", without="it is slower")
    assert not is_tested(part)
    (message,) = changed([part])
    assert message.startswith("apache-beam 2.77") and message.endswith("so it is slower")


def _originals() -> tuple[Any, Any]:
    install_caches()
    return inspect.unwrap(PipelineOptions.view_as), inspect.unwrap(core.get_function_args_defaults)


def _views() -> list[type[PipelineOptions]]:
    found = [kind for _, kind in inspect.getmembers(pipeline_options, inspect.isclass)]
    return [kind for kind in found if issubclass(kind, PipelineOptions) and kind is not PipelineOptions]


@pytest.mark.parametrize("flags", _FLAGS, ids=len)
def test_kept_views_are_those_of_beam(flags: list[str]) -> None:
    """Every view, in the order and with the changes by which one view affects others."""
    original, _ = _originals()

    def values(view_as: Callable[[PipelineOptions, type[PipelineOptions]], Any]) -> list[Any]:
        options, found = PipelineOptions(flags), []
        for kind in _views():
            view = view_as(options, kind)
            if kind is pipeline_options.DebugOptions:
                view.add_experiment("mine")
            if kind is pipeline_options.PortableOptions:
                view.environment_type = "LOOPBACK"
            found.append({name: getattr(view, name, None) for name in sorted(view._visible_option_list())})
        return [*found, options.get_all_options(), [vars(view_as(options, kind)._visible_options) for kind in _views()]]

    first, second = values(PipelineOptions.view_as), values(PipelineOptions.view_as)  # computed, and kept
    assert first == second == values(original)
    assert isinstance(PipelineOptions(flags).view_as(pipeline_options.DebugOptions)._visible_options, Namespace)


def test_kept_signatures_are_those_of_beam() -> None:
    _, original = _originals()
    functions = [
        kind for module in ("core", "util", "combiners") for kind in _do_fns(f"apache_beam.transforms.{module}")
    ]
    methods = [getattr(fn, name) for fn in functions for name in ("process", "setup", "start_bundle", "finish_bundle")]
    assert len(methods) > 20
    for method in methods:
        for _ in range(2):
            arguments, defaults = core.get_function_args_defaults(method)
            assert (arguments, defaults) == original(method)
            arguments.append("changed by the caller")


def _do_fns(module: str) -> list[Any]:
    found = [kind for _, kind in inspect.getmembers(importlib.import_module(module), inspect.isclass)]
    made = []
    for kind in found:
        if (
            issubclass(kind, beam.DoFn)
            and isinstance(kind.__dict__.get("process"), FunctionType)
            and ("__getattribute__" not in vars(kind))
        ):
            made.append(object.__new__(kind))
    return made


def _sums(pipeline: graph.Pipeline, url: str) -> None:
    """Groups, a side input and a file."""
    numbers = pipeline | graph.Create(range(50))
    total = numbers | Gather(f"{url}.numbers", sum)
    keyed = numbers | graph.Map(lambda number, whole: (number % 3, (number, whole.summary)), graph.AsSingleton(total))
    listed = keyed | graph.GroupByKey() | graph.Map(lambda group: {str(group[0]): sorted(map(list, group[1]))})
    _ = listed | "List" >> Gather(url)


@pytest.mark.parametrize("part", ENGINES.get("local").parts, ids=lambda part: part.place.partition(":")[2])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_pipeline_gives_the_same_without_each_part(
    part: Part, workers: int, without: Callable[..., None], tmp_path: Path
) -> None:
    expected, found = str(tmp_path / "expected.json"), str(tmp_path / "found.json")
    Engine(num_workers=workers).run("sums", lambda pipeline: _sums(pipeline, expected))
    without(part)
    Engine(num_workers=workers).run("sums", lambda pipeline: _sums(pipeline, found))
    assert storage.read_json(found) == storage.read_json(expected)


def test_a_build_without_any_part_has_the_same_bytes(
    without: Callable[..., None],
    small_build: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    without(*_ALL)
    monkeypatch.setattr(local, "_worker_command", lambda: pytest.fail("a worker process was started"))
    config = load_config(small_build / "corpus.yaml")
    build(config, str(tmp_path / "out"), Engine(num_workers=2), sizes=Sizes(small_bytes=0))
    assert snapshot(tmp_path / "out") == snapshot(small_build / "out")


@pytest.mark.parametrize("runner", ["spark", "flink"])
def test_job_servers_are_those_of_beam_if_a_part_has_changed(runner: str, without: Callable[..., None]) -> None:
    engine = ENGINES.get(runner)
    assert isinstance(engine, PortableEngine)
    assert type(engine.runner_here()).__module__ == f"finpile_pipelines.engines.{runner}"
    without(beam_parts.JAVA_COMMAND)
    assert type(engine.runner_here()).__module__.startswith("apache_beam.")
