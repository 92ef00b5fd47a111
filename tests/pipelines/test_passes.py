"""Passes of a pipeline that are skipped: no coder admits null and no step emits None, which Java engines refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.portability import common_urns
from finpile_pipelines import graph
from finpile_pipelines.build import build
from finpile_pipelines.exchange import coders
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, PlannedTasks, Tasks
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner import in_process
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.on_beam import add_steps
from finpile_pipelines.stage import Sizes

from finpile import storage
from finpile.config import load_config

_NULLABLE = common_urns.coders.NULLABLE.urn
#: Every stage that can skip a pass; no document of the small corpus has a template or a repeated passage so long.
_CUTS_NOTHING = {"near": "fast", "substring": {"min_length": 5000}, "templates": {"min_documents": 1000}}
_CUTS = {"near": "fast", "substring": {"min_length": 60}, "templates": {"min_documents": 2}}


_SOURCES = [
    {
        "name": name,
        "dataset": "FinPile",
        "format": "jsonl",
        "paths": f"{name}.jsonl",
        "fields": {"timestamp": "date"},
        "clean": {"filters": []},
        "template_group": "source",
    }
    for name in ("News", "Web")
]


@pytest.fixture
def constructed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The URNs of the coders of each pipeline that runs, by label; a step that emits None fails."""
    found: dict[str, list[str]] = {}
    run, emitter = Engine.run, in_process.Steps._emitter

    def note(engine: Engine, label: str, construct: Callable[[graph.Pipeline], None]) -> None:
        def noted(pipeline: graph.Pipeline) -> None:
            construct(pipeline)
            with temporary_files_inside():
                on_beam = beam.Pipeline(options=Options([]))
            add_steps(pipeline, on_beam)
            components = on_beam.to_runner_api().components
            found[label] = sorted({coder.spec.urn for coder in components.coders.values()})

        run(engine, label, noted)

    def without_none(running: Any, output: Any) -> Any:
        emit = emitter(running, output)

        def checked(element: Any) -> None:
            assert element is not None, f"None in {output}"
            emit(element)

        return checked

    monkeypatch.setattr(Engine, "run", note)
    monkeypatch.setattr(in_process.Steps, "_emitter", without_none)
    return found


@pytest.mark.parametrize(
    ("dedup", "limit"),
    [
        pytest.param(_CUTS, 0, id="run above limits"),
        pytest.param(_CUTS_NOTHING, None, id="skipped below limits"),
        pytest.param(_CUTS, None, id="run below limits", marks=pytest.mark.slow),
        pytest.param(_CUTS_NOTHING, 0, id="skipped above limits", marks=pytest.mark.slow),
    ],
)
def test_no_pipeline_has_a_null(
    dedup: dict[str, Any],
    limit: int | None,
    constructed: dict[str, list[str]],
    write_corpus: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(Engine, "runs_jobs", True)  # `ingest` also cleans
    config = load_config(write_corpus(tmp_path, dedup=dedup, sources=_SOURCES))
    sizes = Sizes() if limit is None else Sizes(pairs_in_memory=limit, shards_in_memory=limit)
    build(config, str(tmp_path / "out"), Engine(), sizes=sizes)
    assert {"ingest", "exact", "near", "substring", "templates", "split", "tokens"} <= set(constructed)
    assert ("near: groups" in constructed) == (limit == 0)
    assert {label: urns for label, urns in constructed.items() if _NULLABLE in urns} == {}


def _run(folder: Path, first: list[int], when: Callable[[Any], bool]) -> list[dict[str, Any]]:
    """Three passes; the second and the third are skipped unless `when` is true of the number of first outcomes."""
    urls = [str(folder / f"{number}.json") for number in range(3)]

    def construct(pipeline: graph.Pipeline) -> None:
        outcomes = pipeline | "First" >> Tasks(first) | "A" >> graph.Map(lambda task: {"task": task})
        gathered = outcomes | "GatherFirst" >> Gather(urls[0])
        after = After(gathered, when)
        planned = (
            pipeline | "Second" >> PlannedTasks(range, after=after) | "B" >> graph.Map(lambda task: {"task": task})
        )
        second = planned | "GatherSecond" >> Gather(urls[1], after=after)
        last = After(second)
        third = pipeline | "Third" >> Tasks([7], after=last) | "C" >> graph.Map(lambda task: {"task": task})
        passed = third | "GatherThird" >> Gather(urls[2], after=last)
        _ = passed | graph.Map(lambda end: storage.write_json(str(folder / "ran.json"), end.ran) or 0)

    Engine(transport="shuffle").run("passes", construct)
    return [storage.read_json(url) if Path(url).exists() else None for url in [*urls, str(folder / "ran.json")]]


def test_a_pass_after_a_skipped_pass_is_skipped(tmp_path: Path) -> None:
    assert _run(tmp_path, [3, 1, 2], lambda number: number > 3) == [[{"task": n} for n in (1, 2, 3)], None, None, False]


def test_a_pass_without_outcomes_is_not_skipped(tmp_path: Path) -> None:
    assert _run(tmp_path, [], lambda number: True) == [[], [], [{"task": 7}], True]


@pytest.mark.parametrize("summary", [None, 0, [], {"a": None}])
def test_the_end_of_a_pass_is_never_empty_or_null(summary: Any) -> None:
    coder = coders.PassedCoder()
    assert type(beam.coders.registry.get_coder(Passed)) is coders.PassedCoder
    for passed in (Passed(True, summary), Passed(False)):
        encoded = coder.encode(passed)
        assert encoded and coder.decode(encoded) == passed
