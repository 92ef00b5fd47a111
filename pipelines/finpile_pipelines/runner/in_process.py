"""Runs a pipeline in this process, without serialization: the local runner with one worker, or with threads.

An element is passed from step to step by reference, depth first, so that memory holds the elements of one task for each
thread, and what `GroupByKey`, combinations and side inputs collect.

Threads share the groups of a `GroupByKey`, which each pipeline of this package has after its list of tasks and in its
exchanges. They also share one object for each function of the pipeline, so functions must not keep state in it.

Keys are compared by `==`; Beam compares their encoded bytes. The order of groups and of their values is that of
arrival; Beam promises none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from finpile_pipelines import graph
from finpile_pipelines.exchange.held_tables import tables_held

Consumer = Callable[[Any], None]


def run(pipeline: graph.Pipeline, num_threads: int = 1) -> None:
    """Runs the pipeline to its end. With one thread, that is the calling one."""
    running = _Running(num_threads)
    for node in pipeline.nodes:
        running.add(node)
    with tables_held():
        for end in running.ends:
            end()


@dataclass(slots=True)
class _Running:
    """The steps in the order of the pipeline, and the consumers of each collection."""

    num_threads: int
    ends: list[Callable[[], None]] = field(default_factory=list)
    """What is done when all steps before have ended."""
    consumers: dict[graph.PCollection[Any], list[Consumer]] = field(default_factory=dict)

    def add(self, node: graph.Node) -> None:
        emit = self._emitter(node.output)
        match node.step:
            case graph.Impulse():
                self.ends.append(partial(emit, b""))
            case graph.Flatten():
                self._consume(node, emit)
            case graph.GroupByKey():
                group = _Group(emit, self.num_threads)
                self._consume(node, group.add)
                self.ends.append(group.end)
            case graph.CombinePerKey(function=function):
                combined = _Combination(emit, self.num_threads, function=function)
                self._consume(node, combined.add)
                self.ends.append(combined.end)
            case graph.FlatMap() | graph.Map() | graph.Filter():
                self._add_function(node, node.step, emit)
            case _:
                raise TypeError(f"{type(node.step).__name__} does not run in this process")

    def _add_function(self, node: graph.Node, step: graph.FlatMap | graph.Map | graph.Filter, emit: Consumer) -> None:
        sides = [argument for argument in step.arguments if isinstance(argument, graph.AsSingleton)]
        if not sides:
            self._consume(node, _applied(step, step.arguments, emit))
            return
        waiting = _Waiting(step, emit, {side.collection: [] for side in sides})
        for collection, values in waiting.values.items():
            self.consumers.setdefault(collection, []).append(values.append)
        self._consume(node, waiting.elements.append)
        self.ends.append(waiting.end)

    def _consume(self, node: graph.Node, consumer: Consumer) -> None:
        for source in node.inputs:
            self.consumers.setdefault(source, []).append(consumer)

    def _emitter(self, output: graph.PCollection[Any]) -> Consumer:
        consumers = self.consumers.setdefault(output, [])

        def emit(element: Any) -> None:
            for consumer in consumers:
                consumer(element)

        return emit


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


@dataclass(slots=True)
class _Group:
    """`GroupByKey`: collects values until all producers have ended. Then threads share the groups."""

    emit: Consumer
    num_threads: int = 1
    values: dict[Any, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, element: tuple[Any, Any]) -> None:
        key, value = element
        with self.lock:
            self.values.setdefault(key, []).append(value)

    def end(self) -> None:
        keys = list(self.values)
        in_threads((partial(self._emit_group, key) for key in keys), min(self.num_threads, len(keys)))

    def _emit_group(self, key: Any) -> None:
        with self.lock:
            values = self.values.pop(key)
        self.emit((key, self.result(values)))

    def result(self, values: Any) -> Any:
        """That of a key."""
        return values


@dataclass(slots=True, kw_only=True)
class _Combination(_Group):
    """`CombinePerKey`: holds an accumulator for each key."""

    function: graph.CombineFn

    def add(self, element: tuple[Any, Any]) -> None:
        key, value = element
        with self.lock:
            if key not in self.values:
                self.values[key] = self.function.create_accumulator()
            self.values[key] = self.function.add_input(self.values[key], value)

    def result(self, values: Any) -> Any:
        return self.function.extract_output(values)


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


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A step with side inputs: its elements wait until these are complete."""

    step: graph.FlatMap | graph.Map | graph.Filter
    emit: Consumer
    values: dict[graph.PCollection[Any], list[Any]]
    """Of the side inputs."""
    elements: list[Any] = field(default_factory=list)

    def end(self) -> None:
        """Called when all producers have ended."""
        if self.elements:
            process = _applied(self.step, map(self._argument, self.step.arguments), self.emit)
            for element in self.elements:
                process(element)

    def _argument(self, argument: Any) -> Any:
        if not isinstance(argument, graph.AsSingleton):
            return argument
        (value,) = self.values[argument.collection]
        return value
