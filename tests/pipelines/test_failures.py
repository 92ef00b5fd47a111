"""A failure that a runner reports with its stack traces is one line."""

from __future__ import annotations

from finpile_pipelines.runner.failures import explain

_FRAMES = (
    "\n\tat org.apache.beam.runners.spark.SparkPipelineRunner.run(SparkPipelineRunner.java:113)"
    "\n\tat java.base/java.lang.Thread.run(Thread.java:840)\n\nDriver stacktrace:"
)
_PYTHON = (
    "Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in process\n    self.load()\n'
    "finpile.errors.StoreError: the store does not answer [while running 'Read/Task']\n"
)


def test_an_error_of_an_engine_ends_before_its_stack_trace() -> None:
    error = RuntimeError(f"Pipeline near failed in state FAILED: java.io.IOException: no buffers{_FRAMES}")
    assert str(explain("near", error)) == (
        "stage near failed: RuntimeError: Pipeline near failed in state FAILED: java.io.IOException: no buffers"
    )


def test_an_error_of_a_task_is_found_between_the_stack_traces_of_an_engine() -> None:
    """Java names the Python traceback in the middle of a line, and its own frames follow."""
    message = f"Pipeline near failed: java.lang.RuntimeException: Error received from SDK harness: {_PYTHON}{_FRAMES}"
    assert str(explain("near", RuntimeError(message))) == "stage near failed: StoreError: the store does not answer"
