"""The in-process runner: equal results to Beam's own local runner, and which pipelines it runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.combiners import CountCombineFn
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner import in_process
from finpile_pipelines.runner.engine import Engine
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage

Construct = Callable[[beam.Pipeline, str], None]


@pytest.fixture(autouse=True)
def _pipelines_that_beam_does_not_run() -> Iterator[None]:
    """Beam removes the folder that it makes for a pipeline when it has run it."""
    with temporary_files_inside():
        yield


def words(pipeline: beam.Pipeline) -> beam.PCollection[tuple[str, int]]:
    return pipeline | "Words" >> Tasks([("oil", 3), ("gas", 5), ("oil", 4), ("gold", 1)])


def some(pipeline: beam.Pipeline, out: str) -> None:
    """A step with no, one and several outputs."""
    repeated = words(pipeline) | beam.FlatMap(lambda pair: [{"word": pair[0]}] * (pair[1] - 1))
    _ = repeated | Gather(out)


def groups(pipeline: beam.Pipeline, out: str) -> None:
    grouped = words(pipeline) | beam.GroupByKey()
    _ = grouped | beam.Map(lambda group: {"word": group[0], "sum": sum(group[1])}) | Gather(out)


def branches(pipeline: beam.Pipeline, out: str) -> None:
    """One collection with two consumers, and one that is joined with itself."""
    pairs = words(pipeline)
    small, large = pairs | "S" >> beam.Filter(lambda p: p[1] < 4), pairs | "L" >> beam.Filter(lambda p: p[1] >= 4)
    joined = (small, large, pairs, pairs) | beam.Flatten()
    _ = joined | beam.Map(lambda pair: {"word": pair[0], "value": pair[1]}) | Gather(out)


def combined(pipeline: beam.Pipeline, out: str) -> None:
    pairs = words(pipeline)
    by_key = pairs | beam.CombinePerKey(sum) | "K" >> beam.Map(lambda pair: {"of": pair[0], "is": pair[1]})
    count = pairs | beam.CombineGlobally(CountCombineFn()).without_defaults() | "C" >> beam.Map(lambda n: {"n": n})
    _ = (by_key, count) | beam.Flatten() | Gather(out)


def side_inputs(pipeline: beam.Pipeline, out: str) -> None:
    """Side inputs as a dictionary, as a list and as a default of an empty collection, one of them grouped before."""
    pairs = words(pipeline)
    sums = pairs | beam.CombinePerKey(sum)
    nothing = pairs | "None" >> beam.Filter(lambda pair: False) | beam.CombineGlobally(CountCombineFn())

    def share(pair: tuple[str, int], of: dict[str, int], all_of: Iterable[Any], none: list[int]) -> dict[str, Any]:
        return {"word": pair[0], "of": of[pair[0]], "all": sorted(all_of), "none": none}

    views = beam.pvalue.AsDict(sums), beam.pvalue.AsIter(pairs), beam.pvalue.AsList(nothing)
    _ = pairs | "Share" >> beam.Map(share, views[0], none=views[2], all_of=views[1]) | Gather(out)


def no_elements(pipeline: beam.Pipeline, out: str) -> None:
    _ = words(pipeline) | beam.FlatMap(lambda pair: None) | beam.GroupByKey() | Gather(out)


def passes(pipeline: beam.Pipeline, out: str) -> None:
    """A pass that reads the file of the pass before, one that is skipped, and one after that."""

    def read(number: int) -> dict[str, Any]:
        return {"number": number, "found": [row["of"] for row in storage.read_json(f"{out}.first")]}

    squares = pipeline | "First" >> Tasks([2, 1, 3]) | "Square" >> beam.Map(lambda number: {"of": number**2})
    first = squares | "GatherFirst" >> Gather(f"{out}.first", sum_of("of"))
    skipped = After(first, lambda total: total != 14)
    never = pipeline | "Never" >> Tasks([1], after=skipped) | "N" >> beam.Map(read)
    gathered = never | "GatherNever" >> Gather(f"{out}.never", after=skipped)
    last = pipeline | "Last" >> Tasks([1], after=After(gathered)) | "L" >> beam.Map(read)
    second = pipeline | "Second" >> Tasks([7, 8], after=After(first, lambda total: total == 14)) | beam.Map(read)
    _ = (second, last, never) | beam.Flatten() | Gather(out)


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("construct", [some, groups, branches, combined, side_inputs, no_elements, passes])
def test_outcomes_equal_those_of_beams_runner(construct: Construct, num_threads: int, tmp_path: Path) -> None:
    pipeline = beam.Pipeline(runner=FnApiRunner())
    construct(pipeline, str(tmp_path / "expected.json"))
    pipeline.run().wait_until_finish()
    pipeline = beam.Pipeline()
    construct(pipeline, str(tmp_path / "found.json"))
    run = in_process.prepare(pipeline, num_threads)
    assert run is not None
    run()
    assert (tmp_path / "found.json").read_text() == (tmp_path / "expected.json").read_text()


def test_passes_run_in_order_or_not_at_all(tmp_path: Path) -> None:
    """As `passes` says; that this is so on Beam's runner is the test above."""
    pipeline, out = beam.Pipeline(), tmp_path / "out.json"
    passes(pipeline, str(out))
    run = in_process.prepare(pipeline)
    assert run is not None
    run()
    assert json.loads(out.read_text()) == [{"found": [1, 4, 9], "number": number} for number in (7, 8)]
    assert (tmp_path / "out.json.first").exists()
    assert not (tmp_path / "out.json.never").exists()


def test_tasks_run_in_as_many_threads_as_there_are_workers(tmp_path: Path) -> None:
    """Each task waits until three of them run; one object serves all threads, and is set up once."""
    together, setups = threading.Barrier(3, timeout=60), tmp_path / "setups"

    class Work(beam.DoFn):
        def setup(self) -> None:
            with setups.open("a") as stream:  # Beam copies the object
                stream.write("x")

        def process(self, element: int) -> Iterator[dict[str, int]]:
            together.wait()
            yield {"task": element, "thread": threading.get_ident()}

    pipeline = beam.Pipeline()
    _ = pipeline | Tasks(range(6)) | beam.ParDo(Work()) | Gather(str(tmp_path / "out"))
    run = in_process.prepare(pipeline, 3)
    assert run is not None
    run()
    rows = json.loads((tmp_path / "out").read_text())
    assert [row["task"] for row in rows] == list(range(6))
    assert len({row["thread"] for row in rows}) == 3
    assert setups.read_text() == "x"


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_first_error_ends_a_run_and_begins_no_further_call(num_threads: int) -> None:
    begun: list[int] = []

    def call(number: int) -> None:
        begun.append(number)
        if number == 3:
            raise ValueError("broken")
        while number > 3 and threading.current_thread() is not threading.main_thread() and not ended.is_set():
            ended.wait(0.01)  # those that began beside it end after it

    ended = threading.Event()
    timer = threading.Timer(0.2, ended.set)
    timer.start()
    with pytest.raises(ValueError, match="broken"):
        in_process.in_threads((partial(call, number) for number in range(100)), num_threads)
    timer.cancel()
    assert begun[:3] == [0, 1, 2]
    assert 3 in begun
    assert len(begun) <= 4 + num_threads - 1


@given(st.lists(st.tuples(st.one_of(st.integers(), st.text(), st.none(), st.tuples(st.text())), st.integers())))
def test_groups_hold_every_value_once(pairs: list[tuple[Any, int]]) -> None:
    found: list[tuple[Any, list[int]]] = []
    group = in_process._Group(found.append)
    for pair in pairs:
        group.add(pair)
    group.end()
    expected: dict[Any, list[int]] = {}
    for key, value in pairs:
        expected.setdefault(key, []).append(value)
    assert found == list(expected.items())


def test_an_element_passes_all_steps_before_the_next_one(tmp_path: Path) -> None:
    """So memory holds the elements of one task."""
    log = tmp_path / "log"

    def note(number: int, step: str) -> int:
        with log.open("a") as stream:
            stream.write(f"{step}{number} ")
        return number

    pipeline = beam.Pipeline()
    _ = pipeline | Tasks([1, 2]) | "A" >> beam.Map(note, "a") | "B" >> beam.Map(note, "b")
    run = in_process.prepare(pipeline)
    assert run is not None
    run()
    assert log.read_text() == "a1 b1 a2 b2 "


class WithBundles(beam.DoFn):
    def process(self, element: Any) -> Iterator[Any]:
        yield element

    def finish_bundle(self) -> None:
        return None


def timestamped(element: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Any:
    return element


@pytest.mark.parametrize(
    "step",
    [
        beam.ParDo(WithBundles()),
        beam.Map(timestamped),
        beam.Reshuffle(),
        beam.WindowInto(beam.window.FixedWindows(60)),
        beam.Partition(lambda element, count: 0, 2),
    ],
    ids=["bundles", "timestamp", "reshuffle", "window", "tagged outputs"],
)
def test_other_pipelines_are_left_to_beams_runner(step: Any) -> None:
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    _ = pipeline | Tasks([("a", 1)]) | step
    assert in_process.prepare(pipeline) is None


def test_pipelines_that_it_does_not_support_still_run(tmp_path: Path) -> None:
    def construct(pipeline: beam.Pipeline) -> None:
        _ = pipeline | Tasks([1, 2]) | beam.Reshuffle() | beam.Map(lambda n: {"n": n}) | Gather(str(tmp_path / "out"))

    Engine(num_workers=1).run("reshuffled", construct)
    assert json.loads((tmp_path / "out").read_text()) == [{"n": 1}, {"n": 2}]
