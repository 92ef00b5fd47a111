"""A failure that a runner reports with its stack traces is one line."""

from __future__ import annotations

import errno

import pytest
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


@pytest.mark.parametrize("is_traced", [False, True], ids=["in process", "of a worker"])
@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/out/x"),
            ": free space there and run the same command again",
        ),
        (OSError(errno.EMFILE, "Too many open files"), ": raise the limit of open files (ulimit -n) or use fewer"),
        (MemoryError(), ": use fewer --workers, or a machine with more memory"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/x"), None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_of_the_machine_in_a_task_has_its_remedy(
    error: BaseException, remedy: str | None, is_traced: bool
) -> None:
    kind = type(error).__name__
    last = f"{kind}: {error}" if str(error) else kind
    raised = RuntimeError(_PYTHON.replace("finpile.errors.StoreError: the store does not answer", last))
    message = str(explain("near", raised if is_traced else error))
    assert message.startswith(f"stage near failed: {kind}") and str(error) in message
    assert remedy in message if remedy else message.endswith(f"{error}")
    assert ": :" not in message
