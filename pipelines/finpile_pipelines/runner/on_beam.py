"""The steps of a pipeline as those of a Beam pipeline: for worker processes and engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam

import finpile_pipelines.exchange.coders  # noqa: F401  (registers the coders of elements)
from finpile_pipelines import graph

_OF_FUNCTIONS = {graph.FlatMap: beam.FlatMap, graph.Map: beam.Map, graph.Filter: beam.Filter}
_Collections = dict[graph.PCollection[Any], beam.PCollection]


def add_steps(steps: graph.Pipeline, pipeline: beam.Pipeline) -> None:
    """Adds all steps to an empty pipeline, under their labels."""
    made: _Collections = {}
    for node in steps.nodes:
        inputs = tuple(made[collection] for collection in node.inputs)
        source = inputs if isinstance(node.step, graph.Flatten) else inputs[0] if inputs else pipeline
        made[node.output] = source | node.label >> _transform(node.step, made)


def _transform(step: graph.Step, made: _Collections) -> beam.PTransform:
    transform: beam.PTransform
    match step:
        case graph.Impulse():
            transform = beam.Impulse()
        case graph.Flatten():
            transform = beam.Flatten()
        case graph.GroupByKey():
            transform = beam.GroupByKey()
        case graph.CombinePerKey():
            transform = beam.CombinePerKey(_Combining(step.function))
        case graph.FlatMap() | graph.Map() | graph.Filter():
            arguments = [
                beam.pvalue.AsSingleton(made[argument.collection])
                if isinstance(argument, graph.AsSingleton)
                else argument
                for argument in step.arguments
            ]
            transform = _OF_FUNCTIONS[type(step)](step.function, *arguments)
        case _:
            raise TypeError(f"{type(step).__name__} has no counterpart in Beam")
    return transform if step.output_type is None else transform.with_output_types(step.output_type)


class _Combining(beam.CombineFn):
    """It is pickled for the workers."""

    def __init__(self, function: graph.CombineFn) -> None:
        self._function = function

    def create_accumulator(self) -> Any:
        return self._function.create_accumulator()

    def add_input(self, accumulator: Any, value: Any) -> Any:
        return self._function.add_input(accumulator, value)

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        return self._function.merge_accumulators(accumulators)

    def extract_output(self, accumulator: Any) -> Any:
        return self._function.extract_output(accumulator)
