"""Tasks of lm-evaluation-harness on any `LanguageModel`: that library has the data, the prompts and the metrics."""

from __future__ import annotations

import contextlib
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from finpile.errors import ConfigError, InputError
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Indices, Outcomes, TaskItem, of_flags, of_score

#: Tokens of a generated answer if the task does not say; that of lm-eval.
MAX_TOKENS = 256
#: Names of the longest answer in the settings of a task.
_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
#: A context that shows a kind and a number of requests, and is called with the number of answers.
RequestProgress: TypeAlias = Callable[[str, int], contextlib.AbstractContextManager[Callable[[float], None]]]
#: Requests that are sorted by length together.
_AT_ONCE = 512
#: Resamplings for the standard error of metrics that are not means; lm-eval's 100,000 take minutes.
_BOOTSTRAP = 1_000


class LmEvalTasks:
    """Tasks with their data, ready to be evaluated."""

    def __init__(self, names: Sequence[str], folder: str | None = None) -> None:
        """Tasks, groups or tags of lm-eval; `folder` may have YAML files of further tasks.

        Raises: ConfigError if lm-eval is not installed or does not know a name; InputError if the data of a task cannot
            be loaded, because it is neither on this machine nor can be downloaded.
        """
        try:
            from lm_eval.tasks import TaskManager
        except ImportError as error:
            raise ConfigError(
                f'TASK {",".join(names)}: tasks of lm-evaluation-harness need it: pip install "finpile[eval]"'
            ) from error
        logging.getLogger("lm_eval").setLevel(logging.ERROR)
        self._manager = TaskManager(include_path=folder)
        if unknown := [name for name in names if name not in self._manager.task_index]:
            raise ConfigError(
                f"TASK {','.join(unknown)}: neither tasks of FinPile nor of lm-eval; `lm_eval ls tasks` lists those"
            )
        self._tasks = [task for name in names for task in self._load(name)]

    def _load(self, name: str) -> list[Any]:
        try:
            found = self._manager.load([name])
        except Exception as error:  # any of datasets, huggingface_hub, or the code of a task
            what = " ".join(str(error).split()) or type(error).__name__
            raise InputError(
                f"TASK {name}: lm-eval cannot load its data ({what}). They come from the Hugging Face hub: run the "
                "command once where that can be reached, and copy the folder of its cache (HF_HOME, by default "
                "~/.cache/huggingface); then HF_HUB_OFFLINE=1 reads only the cache"
            ) from error
        return [found["groups"][name]] if name in found["groups"] else [*found["tasks"].values()]

    def evaluate(
        self,
        model: LanguageModel,
        limit: int | None = None,
        progress: RequestProgress | None = None,
        outcomes: list[Outcomes] | None = None,
    ) -> list[dict[str, Any]]:
        """The metrics of each task and group, by lm-eval's defaults; `limit` items of each task.

        Each task has the number of its items that are longer than the model reads, which lose their beginning.
        `progress` shows the requests of one kind. If `outcomes` is given, those of the items are appended, in the
        metrics that are means over items.
        """
        from lm_eval import simple_evaluate

        cut: dict[str, set[Any]] = {}
        with contextlib.redirect_stdout(sys.stderr):  # it prints what it does
            results = simple_evaluate(
                model=_adapter(model, cut, progress or _no_progress),
                tasks=self._tasks,
                task_manager=self._manager,
                limit=limit,
                bootstrap_iters=_BOOTSTRAP,
                log_samples=outcomes is not None,
            )
        if outcomes is not None:
            for task, samples in results["samples"].items():
                outcomes += _outcomes(task, samples, results["results"][task])
        return [
            {**entry, "num_truncated": None if task in results.get("groups", ()) else len(cut.get(task, ()))}
            for task, values in results["results"].items()
            for entry in _metrics(task, values, results["n-shot"])
        ]


@contextlib.contextmanager
def _no_progress(kind: str, number: int) -> Iterator[Callable[[float], None]]:
    del kind, number
    yield lambda amount: None


def _metrics(task: str, values: dict[str, Any], shots: dict[str, int]) -> list[dict[str, Any]]:
    """A row for each metric: in lm-eval's result, `acc,none` has `acc_stderr,none` beside it."""
    rows = []
    for key, value in values.items():
        metric, comma, kind = key.partition(",")
        if not comma or metric.endswith("_stderr") or not isinstance(value, int | float):
            continue
        error = values.get(f"{metric}_stderr,{kind}")
        rows.append(
            {
                "task": task,
                "metric": metric,
                "filter": kind,
                "num_shots": shots.get(task),
                "value": float(value),
                "standard_error": float(error) if isinstance(error, int | float) else None,
            }
        )
    return rows


def _outcomes(task: str, samples: Sequence[Mapping[str, Any]], results: Mapping[str, Any]) -> Iterator[Outcomes]:
    """Those of a task, for each metric whose result is the mean of its values of items."""
    for key, expected in results.items():
        metric, comma, kind = key.partition(",")
        chosen = [sample for sample in samples if sample.get("filter") == kind and metric in sample]
        values = [sample[metric] for sample in chosen]
        if not comma or not values or not all(isinstance(value, int | float) for value in values):
            continue
        numbers = np.array(values, np.float64)
        if not math.isclose(numbers.mean(), expected, rel_tol=1e-9, abs_tol=1e-9):
            continue
        items = [TaskItem(task, str(sample["doc_id"]), tuple(strings_of(sample["doc"]))) for sample in chosen]
        if set(values) <= {0, 1}:
            yield of_flags(task, metric, items, [bool(value) for value in values])
        else:
            yield of_score(task, metric, items, _mean_of(numbers))


def _mean_of(numbers: npt.NDArray[np.float64]) -> Callable[[Indices], float]:
    return lambda chosen: float(numbers[chosen].mean())


def strings_of(value: Any) -> Iterator[str]:
    """The strings of an item's record, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from strings_of(part)


def _adapter(model: LanguageModel, cut: dict[str, set[Any]], progress: RequestProgress) -> Any:
    """The model as lm-eval's `LM`; adds the numbers of the items that are cut to `cut`, by task."""
    from lm_eval.api.model import LM

    def note(request: Any, is_cut: bool) -> None:
        if is_cut:
            cut.setdefault(request.task_name, set()).add(request.doc_id)

    class Adapter(LM):
        """Answers requests with a `LanguageModel`."""

        def loglikelihood(self, requests: list[Any]) -> list[tuple[float, bool]]:
            answers = []
            with progress("likelihoods", len(requests)) as advance:
                for start in range(0, len(requests), _AT_ONCE):
                    chosen = requests[start : start + _AT_ONCE]
                    found = model.log_likelihoods([request.args for request in chosen])
                    for request, one in zip(chosen, found, strict=True):
                        note(request, one.is_cut)
                        answers.append((one.nats, one.is_greedy))
                    advance(len(chosen))
            return answers

        def loglikelihood_rolling(self, requests: list[Any]) -> list[float]:
            answers = []
            with progress("documents", len(requests)) as advance:
                for request in requests:
                    answers.append(model.document_likelihood(request.args[0]).nats)
                    advance(1)
            return answers

        def generate_until(self, requests: list[Any]) -> list[str]:
            answers = []
            with progress("generated answers", len(requests)) as advance:
                for request in requests:
                    prompt, settings = request.args
                    num_answer = _answer_tokens(model, settings)
                    note(request, model.num_tokens(prompt) > model.max_length - num_answer)
                    answers.append(_generate(model, prompt, settings, num_answer))
                    advance(1)
            return answers

    return Adapter()


def _answer_tokens(model: LanguageModel, settings: dict[str, Any]) -> int:
    """The longest answer: that of the task, and at most half of what the model reads."""
    limit = next((settings[name] for name in _LIMITS if settings.get(name)), MAX_TOKENS)
    return min(int(limit), model.max_length // 2)


def _generate(model: LanguageModel, prompt: str, settings: dict[str, Any], max_tokens: int) -> str:
    if settings.get("do_sample") and settings.get("temperature", 1.0):
        raise ConfigError("the task samples its answers (do_sample); FinPile generates the likeliest token only")
    until = settings.get("until") or []
    stop = [until] if isinstance(until, str) else [text for text in until if text]
    return model.generate(prompt, stop=stop, max_tokens=max_tokens)
