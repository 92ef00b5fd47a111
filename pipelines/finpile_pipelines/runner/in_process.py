"""Runs a pipeline in this process, without serialization: the local runner with one worker, or with threads.

An element is passed from step to step by reference, depth first, so that memory holds the elements of one task for each
thread, and what `GroupByKey`, combinations and side inputs collect. These are where the work is divided: a group, or an
element that waited for side inputs, is a unit of work, which passes all steps up to the next such place.

Threads share the units of a place. They also share one object for each function of the pipeline, so functions must not
keep state in it.

Keys are compared by `==`; Beam compares their encoded bytes. The order of groups and of their values is that of
arrival; Beam promises none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from finpile_pipelines import graph
from finpile_pipelines.exchange.held_tables import tables_held

Consumer = Callable[[Any], None]
Place = tuple[int, int]
"""Where an element waits: the number of its step, and the number of the side input, or -1 for the step's own input."""
_INPUT = -1


def run(pipeline: graph.Pipeline, num_threads: int = 1) -> None:
    """Runs the pipeline to its end. With one thread, that is the calling one."""
    steps = Steps(pipeline.nodes)

    def spread(number: int, units: Iterator[Any], size: int) -> None:
        in_threads(map(partial(partial, steps.do, number), units), min(num_threads, size))

    with tables_held():
        steps.run(spread)


class Steps:
    """The steps of a pipeline, each with its consumers.

    Elements that reach a place where they wait are kept there, or given to `collect` if it is not None.
    """

    def __init__(self, nodes: Sequence[graph.Node], collect: Callable[[Place, Any], None] | None = None) -> None:
        self._collect = collect
        self._consumers: dict[graph.PCollection[Any], list[Consumer]] = {}
        self._ends: list[Callable[[Spread], None]] = []
        self._waiting: dict[int, _Waiting] = {}
        for number, node in enumerate(nodes):
            self._add(number, node)

    def run(self, spread: Spread) -> None:
        """Does all work; `spread` does the units of a place, in any order."""
        for end in self._ends:
            end(spread)

    def do(self, number: int, unit: Any) -> None:
        """Does a unit of the place with the number of this step."""
        self._waiting[number].do(unit)

    def take(self, place: Place, element: Any) -> None:
        """Keeps an element that was collected elsewhere."""
        self._waiting[place[0]].add(place[1], element)

    def _add(self, number: int, node: graph.Node) -> None:
        emit = self._emitter(node.output)
        match node.step:
            case graph.Impulse():
                self._ends.append(lambda _: emit(b""))
            case graph.Flatten():
                self._consume(node, emit)
            case graph.GroupByKey():
                self._wait(number, node, _Groups(emit))
            case graph.CombinePerKey(function=function):
                self._wait(number, node, _Combinations(emit, function))
            case graph.FlatMap() | graph.Map() | graph.Filter():
                if any(isinstance(argument, graph.AsSingleton) for argument in node.step.arguments):
                    self._wait(number, node, _Delayed(emit, node.step))
                else:
                    self._consume(node, _applied(node.step, node.step.arguments, emit))
            case _:
                raise TypeError(f"{type(node.step).__name__} does not run in this process")

    def _wait(self, number: int, node: graph.Node, waiting: _Waiting) -> None:
        self._waiting[number] = waiting
        for side, collection in enumerate(waiting.sides):
            self._consumers.setdefault(collection, []).append(self._keeper((number, side)))
        self._consume(node, self._keeper((number, _INPUT)))
        self._ends.append(lambda spread: spread(number, waiting.units(), len(waiting)))

    def _keeper(self, place: Place) -> Consumer:
        return partial(self._collect or self.take, place)

    def _consume(self, node: graph.Node, consumer: Consumer) -> None:
        for source in node.inputs:
            self._consumers.setdefault(source, []).append(consumer)

    def _emitter(self, output: graph.PCollection[Any]) -> Consumer:
        consumers = self._consumers.setdefault(output, [])

        def emit(element: Any) -> None:
            for consumer in consumers:
                consumer(element)

        return emit


Spread = Callable[[int, Iterator[Any], int], None]
"""Does the units of a step, of which there are so many."""


def _applied(step: graph.FlatMap | graph.Map | graph.Filter, arguments: Iterable[Any], emit: Consumer) -> Consumer:
    """The function of a step, as a consumer of its elements."""
    given = tuple(arguments)
    function = partial(_with_arguments, step.function, given) if given else step.function

    def each(element: Any) -> None:
        for output in function(element) or ():
            emit(output)
            del output  # before the next one is computed

    def one(element: Any) -> None:
        emit(function(element))

    def some(element: Any) -> None:
        if function(element):
            emit(element)

    match step:
        case graph.FlatMap():
            return each
        case graph.Map():
            return one
        case graph.Filter():
            return some


def _with_arguments(function: Callable[..., Any], arguments: tuple[Any, ...], element: Any) -> Any:
    return function(element, *arguments)


class _Waiting:
    """Elements that wait until all producers have ended."""

    def __init__(self, emit: Consumer) -> None:
        self.emit = emit
        self.sides: tuple[graph.PCollection[Any], ...] = ()
        """The side inputs."""
        self._lock = threading.Lock()

    def add(self, side: int, element: Any) -> None:
        with self._lock:
            self._keep(side, element)

    def _keep(self, side: int, element: Any) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def units(self) -> Iterator[Any]:
        """The units of work, each of which is kept no longer."""
        raise NotImplementedError

    def do(self, unit: Any) -> None:
        raise NotImplementedError


class _Groups(_Waiting):
    """`GroupByKey`: a unit is a group."""

    def __init__(self, emit: Consumer) -> None:
        super().__init__(emit)
        self._values: dict[Any, Any] = {}

    def _keep(self, side: int, element: tuple[Any, Any]) -> None:
        self._values.setdefault(element[0], []).append(element[1])

    def __len__(self) -> int:
        return len(self._values)

    def units(self) -> Iterator[tuple[Any, Any]]:
        for key in list(self._values):
            yield key, self._values.pop(key)

    def do(self, unit: tuple[Any, Any]) -> None:
        self.emit(unit)


class _Combinations(_Groups):
    """`CombinePerKey`: holds an accumulator for each key."""

    def __init__(self, emit: Consumer, function: graph.CombineFn) -> None:
        super().__init__(emit)
        self._function = function

    def _keep(self, side: int, element: tuple[Any, Any]) -> None:
        key, value = element
        found = self._values[key] if key in self._values else self._function.create_accumulator()
        self._values[key] = self._function.add_input(found, value)

    def do(self, unit: tuple[Any, Any]) -> None:
        self.emit((unit[0], self._function.extract_output(unit[1])))


class _Delayed(_Waiting):
    """A step with side inputs: a unit is an element with the values of these."""

    def __init__(self, emit: Consumer, step: graph.FlatMap | graph.Map | graph.Filter) -> None:
        super().__init__(emit)
        self._step = step
        self.sides = tuple(one.collection for one in step.arguments if isinstance(one, graph.AsSingleton))
        self._values: list[list[Any]] = [[] for _ in self.sides]
        self._elements: deque[Any] = deque()

    def _keep(self, side: int, element: Any) -> None:
        (self._elements if side == _INPUT else self._values[side]).append(element)

    def __len__(self) -> int:
        return len(self._elements)

    def units(self) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        if self._elements:
            values = tuple(_only(found) for found in self._values)
            while self._elements:
                yield self._elements.popleft(), values

    def do(self, unit: tuple[Any, tuple[Any, ...]]) -> None:
        element, values = unit
        left = iter(values)
        arguments = (next(left) if isinstance(one, graph.AsSingleton) else one for one in self._step.arguments)
        _applied(self._step, arguments, self.emit)(element)


def _only(found: list[Any]) -> Any:
    (value,) = found
    return value


def in_threads(calls: Iterable[Callable[[], None]], num_threads: int) -> None:
    """Makes all calls, in order, each by the next free thread; by the calling thread if `num_threads` is 1 or less.

    After an error no further call begins. Raises: the first error, when all calls that had begun have ended.
    """
    if num_threads <= 1:
        for call in calls:
            call()
        return
    errors: list[BaseException] = []
    waiting, lock = iter(calls), threading.Lock()

    def taken() -> Iterator[Callable[[], None]]:
        while not errors:
            with lock:
                call = next(waiting, None)
            if call is None:
                return
            yield call

    def work() -> None:
        try:
            for call in taken():
                call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, name=f"worker-{number}", daemon=True) for number in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
