"""The in-process runner: equal results to those of the same steps on Beam's own local runner."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import After, Gather, Tasks, sum_of
from finpile_pipelines.process_folder import temporary_files_inside
from finpile_pipelines.runner import in_process
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.on_beam import add_steps
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage
from finpile.errors import RunError

Construct = Callable[[graph.Pipeline, str], None]


def words(pipeline: graph.Pipeline) -> graph.PCollection[tuple[str, int]]:
    return pipeline | "Words" >> Tasks([("oil", 3), ("gas", 5), ("oil", 4), ("gold", 1)])


def some(pipeline: graph.Pipeline, out: str) -> None:
    """A step with no, one and several outputs."""
    repeated = words(pipeline) | graph.FlatMap(lambda pair: [{"word": pair[0]}] * (pair[1] - 1))
    _ = repeated | Gather(out)


def groups(pipeline: graph.Pipeline, out: str) -> None:
    grouped = words(pipeline) | graph.GroupByKey()
    _ = grouped | graph.Map(lambda group: {"word": group[0], "sum": sum(group[1])}) | Gather(out)


def branches(pipeline: graph.Pipeline, out: str) -> None:
    """One collection with two consumers, and one that is joined with itself."""
    pairs = words(pipeline)
    small, large = pairs | "S" >> graph.Filter(lambda p: p[1] < 4), pairs | "L" >> graph.Filter(lambda p: p[1] >= 4)
    joined = (small, large, pairs, pairs) | graph.Flatten()
    _ = joined | graph.Map(lambda pair: {"word": pair[0], "value": pair[1]}) | Gather(out)


class Least:
    """The least value, and how many there are."""

    def create_accumulator(self) -> tuple[int, list[Any]]:
        return 0, []

    def add_input(self, found: tuple[int, list[Any]], value: Any) -> tuple[int, list[Any]]:
        return found[0] + 1, sorted([*found[1], value])[:1]

    def merge_accumulators(self, several: Iterable[tuple[int, list[Any]]]) -> tuple[int, list[Any]]:
        found = list(several)
        return sum(one[0] for one in found), sorted(value for one in found for value in one[1])[:1]

    def extract_output(self, found: tuple[int, list[Any]]) -> dict[str, Any]:
        return {"n": found[0], "least": found[1]}


def combined(pipeline: graph.Pipeline, out: str) -> None:
    pairs = words(pipeline)
    by_key = pairs | graph.CombinePerKey(Least()) | "K" >> graph.Map(lambda pair: {"of": pair[0], **pair[1]})
    whole = pairs | graph.CombineGlobally(Least())
    nothing = pairs | "None" >> graph.Filter(lambda pair: False) | "OfNone" >> graph.CombineGlobally(Least())
    _ = (by_key, whole, nothing) | graph.Flatten() | Gather(out)


def side_inputs(pipeline: graph.Pipeline, out: str) -> None:
    """Two side inputs, one of them of a step that waits itself, beside other arguments."""
    pairs = words(pipeline)
    least = pairs | "Least" >> graph.CombineGlobally(Least())
    with_least = least | graph.Map(lambda one, other: [one, other], graph.AsSingleton(least))

    def share(pair: tuple[str, int], given: str, first: dict[str, Any], both: list[Any]) -> dict[str, Any]:
        return {"word": pair, "given": given, "first": first, "both": both}

    _ = pairs | "S" >> graph.Map(share, "x", graph.AsSingleton(least), graph.AsSingleton(with_least)) | Gather(out)


def no_elements(pipeline: graph.Pipeline, out: str) -> None:
    _ = words(pipeline) | graph.FlatMap(lambda pair: None) | graph.GroupByKey() | Gather(out)


def passes(pipeline: graph.Pipeline, out: str) -> None:
    """A pass that reads the file of the pass before, one that is skipped, and one after that."""

    def read(number: int) -> dict[str, Any]:
        return {"number": number, "found": [row["of"] for row in storage.read_json(f"{out}.first")]}

    squares = pipeline | "First" >> Tasks([2, 1, 3]) | "Square" >> graph.Map(lambda number: {"of": number**2})
    first = squares | "GatherFirst" >> Gather(f"{out}.first", sum_of("of"))
    skipped = After(first, lambda total: total != 14)
    never = pipeline | "Never" >> Tasks([1], after=skipped) | "N" >> graph.Map(read)
    gathered = never | "GatherNever" >> Gather(f"{out}.never", after=skipped)
    last = pipeline | "Last" >> Tasks([1], after=After(gathered)) | "L" >> graph.Map(read)
    second = pipeline | "Second" >> Tasks([7, 8], after=After(first, lambda total: total == 14)) | graph.Map(read)
    _ = (second, last, never) | graph.Flatten() | Gather(out)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Construct], str]:
    """The outcomes of steps on Beam's own runner, which runs them once for all engines."""

    @cache
    def outcomes(construct: Construct) -> str:
        steps, out = graph.Pipeline(), tmp_path_factory.mktemp("beam") / "expected.json"
        construct(steps, str(out))
        with temporary_files_inside(), beam.Pipeline(runner=FnApiRunner()) as pipeline:
            add_steps(steps, pipeline)
        return out.read_text()

    return outcomes


@pytest.mark.parametrize("engine", [Engine(), Engine(num_workers=3, threads=True), Engine(num_workers=2)])
@pytest.mark.parametrize("construct", [some, groups, branches, combined, side_inputs, no_elements, passes])
def test_outcomes_equal_those_of_beams_runner(
    construct: Construct, engine: Engine, expected: Callable[[Construct], str], tmp_path: Path
) -> None:
    """In this process, in threads and in worker processes."""
    engine.run("found", lambda found: construct(found, str(tmp_path / "found.json")))
    assert (tmp_path / "found.json").read_text() == expected(construct)


def test_an_error_that_cannot_be_sent_is_reported_by_its_text(tmp_path: Path) -> None:
    def fail(task: int) -> dict[str, int]:
        class Unknown(Exception):
            def __reduce__(self) -> Any:
                raise TypeError("not to be pickled")

        raise Unknown(f"shelf {task} is bare")

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks([17]) | graph.Map(fail) | Gather(str(tmp_path / "out.json"))

    with pytest.raises(RunError, match=r"^stage shelves failed: .*Unknown: shelf 17 is bare$"):
        Engine(num_workers=2).run("shelves", construct)


def test_passes_run_in_order_or_not_at_all(tmp_path: Path) -> None:
    """As `passes` says; that this is so on Beam's runner is the test above."""
    pipeline, out = graph.Pipeline(), tmp_path / "out.json"
    passes(pipeline, str(out))
    in_process.run(pipeline)
    assert json.loads(out.read_text()) == [{"found": [1, 4, 9], "number": number} for number in (7, 8)]
    assert (tmp_path / "out.json.first").exists()
    assert not (tmp_path / "out.json.never").exists()


def test_tasks_run_in_as_many_threads_as_there_are_workers(tmp_path: Path) -> None:
    """Each task waits until three of them run."""
    together = threading.Barrier(3, timeout=60)

    def work(task: int) -> dict[str, int]:
        together.wait()
        return {"task": task, "thread": threading.get_ident()}

    pipeline = graph.Pipeline()
    _ = pipeline | Tasks(range(6)) | graph.Map(work) | Gather(str(tmp_path / "out"))
    in_process.run(pipeline, 3)
    rows = json.loads((tmp_path / "out").read_text())
    assert [row["task"] for row in rows] == list(range(6))
    assert len({row["thread"] for row in rows}) == 3


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
    groups = in_process._Groups(found.append)
    for pair in pairs:
        groups.add(-1, pair)
    for unit in groups.units():
        groups.do(unit)
    assert len(groups) == 0
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

    pipeline = graph.Pipeline()
    _ = pipeline | Tasks([1, 2]) | "A" >> graph.Map(note, "a") | "B" >> graph.Map(note, "b")
    in_process.run(pipeline)
    assert log.read_text() == "a1 b1 a2 b2 "


def on_beam(steps: graph.Pipeline) -> None:
    with temporary_files_inside():
        add_steps(steps, beam.Pipeline())


@pytest.mark.parametrize("run", [in_process.run, on_beam])
def test_a_step_of_another_kind_is_an_error(run: Callable[[graph.Pipeline], None]) -> None:
    class Reshuffle(graph.Step):
        pass

    pipeline = graph.Pipeline()
    _ = pipeline | Tasks([1, 2]) | Reshuffle()
    with pytest.raises(TypeError, match="Reshuffle"):
        run(pipeline)


def test_labels_are_unique_and_name_the_transforms_around_a_step() -> None:
    pipeline = graph.Pipeline()
    for _ in range(2):
        _ = pipeline | "Numbers" >> graph.Create([1]) | graph.Map(str)
    labels = [node.label for node in pipeline.nodes]
    assert labels[:3] == ["Numbers/Impulse", "Numbers/FlatMap", "Map"]
    assert len(set(labels)) == 6


def test_a_side_input_of_several_elements_is_an_error() -> None:
    pipeline = graph.Pipeline()
    numbers = pipeline | graph.Create([1, 2])
    _ = numbers | graph.Map(lambda one, other: one, graph.AsSingleton(numbers))
    with pytest.raises(ValueError, match="too many values"):
        in_process.run(pipeline)
