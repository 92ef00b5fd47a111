"""Runs a Beam pipeline in this process, without serialization: the local runner with one worker, or with threads.

Beam's `FnApiRunner` translates each pipeline to protocol buffers, pickles its functions and encodes its elements. On a
small corpus that takes longer than the work. Here an element is passed from step to step by reference, depth first, so
that memory holds the elements of one task for each thread, and what `GroupByKey` and side inputs collect.

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

import apache_beam as beam
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor
from apache_beam.pvalue import AsSideInput, PCollection
from apache_beam.transforms.core import DoFn

from finpile_pipelines.exchange.held_tables import tables_held
from finpile_pipelines.runner.beam_parts import ARGUMENTS, IN_PROCESS, PARAMETERS, are_tested, part_of

Consumer = Callable[[Any], None]
#: Methods of a `DoFn` that are called around bundles, of which this runner has none.
_BUNDLE_METHODS = ("start_bundle", "finish_bundle", "process_batch")


def prepare(pipeline: beam.Pipeline, num_threads: int = 1) -> Callable[[], None] | None:
    """A function that runs the pipeline to its end; None if the pipeline has steps that this runner does not support.

    None, too, if the parts of Beam that it uses are not the tested ones.

    With one thread, that is the calling one.

    Supported are `Impulse`, `GroupByKey`, `Flatten`, and `ParDo` with side inputs but without tagged outputs, bundle
    methods and parameters such as `DoFn.TimestampParam`. So all windows are the global one.
    """
    if not are_tested(IN_PROCESS):
        return None
    graph = _Graph(num_threads)
    pipeline.visit(graph)
    return graph.run if graph.is_supported else None


@dataclass(slots=True)
class _Graph(PipelineVisitor):
    """The primitive steps in topological order, and the consumers of each collection."""

    num_threads: int
    is_supported: bool = True
    steps: list[Callable[[], None]] = field(default_factory=list)
    """What is done when all steps before have ended."""
    consumers: dict[PCollection[Any], list[Consumer]] = field(default_factory=dict)

    def run(self) -> None:
        with tables_held():
            for step in self.steps:
                step()

    def visit_transform(self, node: AppliedPTransform) -> None:
        """Called by Beam for each primitive step, producers before consumers."""
        if len(node.outputs) > 1:
            self.is_supported = False
            return
        emit = self._emitter(next(iter(node.outputs.values()), None))
        match node.transform:
            case beam.Impulse():
                self.steps.append(lambda: emit(b""))
            case beam.Flatten():
                self._consume(node, emit)
            case beam.GroupByKey():
                group = _Group(emit, self.num_threads)
                self._consume(node, group.add)
                self.steps.append(group.end)
            case beam.ParDo() if _is_plain(node.transform.fn):
                self._add_pardo(node, emit)
            case _:
                self.is_supported = False

    def _add_pardo(self, node: AppliedPTransform, emit: Consumer) -> None:
        step = _ParDo(node.transform, emit, [_SideInput(view) for view in node.side_inputs])
        for side_input in step.side_inputs:
            self.consumers.setdefault(side_input.view.pvalue, []).append(side_input.values.append)
        self._consume(node, step.waiting.append if step.side_inputs else step.process)
        self.steps.append(step.end)

    def _consume(self, node: AppliedPTransform, consumer: Consumer) -> None:
        for source in node.main_inputs.values():
            self.consumers.setdefault(source, []).append(consumer)

    def _emitter(self, output: PCollection[Any] | None) -> Consumer:
        consumers = self.consumers.setdefault(output, [])

        def emit(element: Any) -> None:
            for consumer in consumers:
                consumer(element)

        return emit


@dataclass(slots=True)
class _Group:
    """`GroupByKey`: collects values until all producers have ended. Then threads share the groups."""

    emit: Consumer
    num_threads: int = 1
    values: dict[Any, list[Any]] = field(default_factory=dict)
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
        self.emit((key, values))


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


@dataclass(slots=True)
class _SideInput:
    view: AsSideInput
    values: list[Any] = field(default_factory=list)

    def read(self) -> Any:
        return self.view._from_runtime_iterable(self.values, self.view._view_options())


class _ParDo:
    """`ParDo`: with side inputs, its elements wait until these are complete."""

    def __init__(self, transform: beam.ParDo, emit: Consumer, side_inputs: list[_SideInput]) -> None:
        self._emit, self.side_inputs = emit, side_inputs
        self._fn: DoFn = transform.fn
        self._args, self._kwargs = transform.args, transform.kwargs
        self._is_set_up = False
        self._lock = threading.Lock()
        self.waiting: list[Any] = []

    def process(self, element: Any) -> None:
        if not self._is_set_up:
            with self._lock:
                self._set_up()
        outputs: Iterable[Any] | None = self._fn.process(element, *self._args, **self._kwargs)
        for output in outputs or ():
            self._emit(output)
            del output  # before the next one is computed

    def _set_up(self) -> None:
        if not self._is_set_up:
            self._fn.setup()
            self._is_set_up = True

    def end(self) -> None:
        """Called when all producers have ended."""
        if self.waiting:
            values = [side_input.read() for side_input in self.side_inputs]
            self._args, self._kwargs = part_of(ARGUMENTS)(self._args, self._kwargs, values)
            for element in self.waiting:
                self.process(element)
        if self._is_set_up:
            self._fn.teardown()


def _is_plain(fn: DoFn) -> bool:
    """Whether the function needs no bundles and none of Beam's parameters."""
    if any(getattr(type(fn), name) is not getattr(DoFn, name) for name in _BUNDLE_METHODS):
        return False
    _, defaults = fn.get_function_arguments("process")
    return not any(isinstance(default, part_of(PARAMETERS)) for default in defaults)
