"""The steps of a pipeline and the collections between them, whatever runs it.

Stages are written with these classes. The local runner follows them in its own process (`runner.in_process`); for
worker processes and engines they become a Beam pipeline (`runner.on_beam`). They have the names of their counterparts
in Beam, and of these only what a stage needs: bounded collections, one output for each step, and side inputs of one
element. So a small build neither imports Beam nor builds its pipelines, which took most of the build's time.

    from finpile_pipelines import graph

    words = pipeline | "Words" >> graph.Create(["oil", "gas"])
    sizes = words | graph.Map(len)

Decision: docs/decisions/0098-steps-of-our-own.md.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, Self, TypeVar

Element = TypeVar("Element")


@dataclass(frozen=True, slots=True, eq=False)
class PCollection(Generic[Element]):
    """The elements that a step makes. Steps are applied to it with `|`."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Node:
    """A primitive step of a pipeline."""

    label: str
    """Unique in the pipeline; the labels of the transforms that it is part of come first, as in `Outer/Inner`."""
    step: Step
    inputs: tuple[PCollection[Any], ...]
    output: PCollection[Any]


@dataclass(slots=True, eq=False)
class Pipeline:
    """The steps so far. Transforms that begin with elements of their own are applied to it with `|`."""

    nodes: list[Node] = field(default_factory=list)
    """Producers come before consumers."""
    _labels: dict[str, int] = field(default_factory=dict)
    _outer: list[str] = field(default_factory=list)

    @property
    def pipeline(self) -> Self:
        """Itself, as a collection has its pipeline."""
        return self

    def apply(self, transform: PTransform, inputs: Any) -> PCollection[Any]:
        """Adds what the transform consists of; returns its output."""
        label = "/".join([*self._outer, transform.label or type(transform).__name__])
        number = self._labels[label] = self._labels.get(label, 0) + 1
        if number > 1:
            label = f"{label}_{number}"
        if isinstance(transform, Step):
            output: PCollection[Any] = PCollection(self)
            collections = inputs if isinstance(inputs, tuple) else () if inputs is self else (inputs,)
            self.nodes.append(Node(label, transform, collections, output))
            return output
        self._outer.append(label.rpartition("/")[2])
        try:
            return transform.expand(inputs)
        finally:
            self._outer.pop()


class PTransform:
    """A step, or several. `"Label" >> transform` names it; `inputs | transform` applies it."""

    label: str | None = None

    def __init__(self, label: str | None = None) -> None:
        self.label = label

    def expand(self, inputs: Any) -> PCollection[Any]:
        """Applies the steps that it consists of to a pipeline, a collection or several; returns the last output."""
        raise NotImplementedError

    def __rrshift__(self, label: str) -> Self:
        named = copy.copy(self)
        named.label = label
        return named

    def __ror__(self, inputs: Any) -> PCollection[Any]:
        pipeline: Pipeline = (inputs[0] if isinstance(inputs, tuple) else inputs).pipeline
        return pipeline.apply(self, inputs)


class Step(PTransform):
    """A primitive step."""

    output_type: Any = None
    """From which Beam takes a coder, if annotations do not tell."""

    def with_output_types(self, output_type: Any) -> Self:
        """The step, whose elements have this type."""
        typed = copy.copy(self)
        typed.output_type = output_type
        return typed


class Impulse(Step):
    """One element, `b""`."""


class Flatten(Step):
    """The elements of several collections."""


class GroupByKey(Step):
    """Pairs `(key, value)` to `(key, values)`, in no order."""


@dataclass(frozen=True, slots=True)
class AsSingleton:
    """The only element of a collection, as an argument of a function that waits for it."""

    collection: PCollection[Any]


class _OfFunction(Step):
    """`function(element, *arguments)` for each element; an argument may be `AsSingleton`."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__()
        self.function = function
        self.arguments = arguments


class FlatMap(_OfFunction):
    """All results that the function yields; None if there are none."""


class Map(_OfFunction):
    """The result of the function."""


class Filter(_OfFunction):
    """The elements for which the function is true."""


def item(number: int, output_type: Any) -> Map:
    """The step from tuples to one of their items, which has this type."""
    return Map(lambda values: values[number]).with_output_types(output_type)


class CombineFn(Protocol):
    """How values are combined; the result must not depend on the order or on which accumulators are merged."""

    def create_accumulator(self) -> Any: ...
    def add_input(self, accumulator: Any, value: Any, /) -> Any: ...
    def merge_accumulators(self, accumulators: Iterable[Any], /) -> Any: ...
    def extract_output(self, accumulator: Any, /) -> Any: ...


class CombinePerKey(Step):
    """Pairs `(key, value)` to `(key, combined values)`."""

    def __init__(self, function: CombineFn) -> None:
        super().__init__()
        self.function = function


class CombineGlobally(PTransform):
    """All values combined to one element; no element if there are none."""

    def __init__(self, function: CombineFn) -> None:
        super().__init__()
        self._function = function

    def expand(self, values: PCollection[Any]) -> PCollection[Any]:
        return values | "Key" >> Map(_with_one_key) | CombinePerKey(self._function) | "Value" >> item(1, Any)


class Create(PTransform):
    """Given elements."""

    def __init__(self, elements: Sequence[Any]) -> None:
        super().__init__()
        self._elements = tuple(elements)

    def expand(self, pipeline: Pipeline) -> PCollection[Any]:
        return pipeline | Impulse() | FlatMap(_elements, self._elements)


def _with_one_key(value: Any) -> tuple[int, Any]:
    return 0, value


def _elements(_: bytes, elements: tuple[Any, ...]) -> tuple[Any, ...]:
    return elements
