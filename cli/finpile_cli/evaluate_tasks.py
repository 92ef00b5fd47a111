"""`finpile model tasks`: tasks on a run or on a model of Hugging Face transformers."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finpile import storage
from finpile.errors import ConfigError, InputError
from finpile_cli.console import Console

if TYPE_CHECKING:
    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.evaluation.lm_eval import LmEvalTasks
    from finpile_trainer.evaluation.outcomes import Outcomes
    from finpile_trainer.evaluation.task import Task, TaskData

    from finpile.report.table import Table

TASKS_NAME, ITEMS_NAME = "tasks.json", "contamination.csv"


class _Tasks:
    """The chosen tasks with their data, read before the model is."""

    def __init__(self, names: list[str], data: str | None, limit: int | None, console: Console) -> None:
        """Raises: ConfigError if a task is not known, or the folder of the data is not given."""
        from finpile_trainer.evaluation.task import TASKS, in_order

        others = [name for name in names if name not in TASKS]
        if data is None and len(others) < len(names):
            raise ConfigError("name the folder with the files of the tasks with --data DIR")
        if others and importlib.util.find_spec("lm_eval") is None:
            ours = ", ".join(task.name for task in in_order(TASKS.names()))
            raise ConfigError(
                f"TASK {','.join(others)}: expected names of {ours}; for tasks of "
                'lm-evaluation-harness: pip install "finpile[eval]"'
            )
        self._kinds: dict[Any, dict[Task, TaskData]] = {}
        """Those of one table, by its function."""
        for task in in_order(name for name in names if name in TASKS):
            folder = Path(data or "", task.name)
            read = task.read(folder if folder.is_dir() else folder.parent, limit)
            self._kinds.setdefault(task.table, {})[task] = read
        self.scored = [task.name for tasks in self._kinds.values() for task in tasks]
        """Tasks with one score."""
        self.limit, self._console = limit, console
        self.outcomes: list[Outcomes] = []
        """Of the examples of all evaluated tasks."""
        self.lm_eval: LmEvalTasks | None = None
        if others:
            from finpile_trainer.evaluation.lm_eval import LmEvalTasks

            console.line(f"Loading {', '.join(others)} of lm-evaluation-harness")
            self.lm_eval = LmEvalTasks(others, data)

    def evaluate(self, model: LanguageModel, results: dict[str, Any]) -> Iterator[Table]:
        """Adds the results by task and the outcomes, and yields the tables of results."""
        from finpile.report.tasks import lm_eval_table

        for table, tasks in self._kinds.items():
            for task, data in tasks.items():
                with self._console.progress(task.name, total=data.num_items, unit=task.unit) as advance:
                    results[task.name], outcomes = data.evaluate(model, advance)
                self.outcomes.append(outcomes)
            yield table([results[task.name] for task in tasks])
        if self.lm_eval is not None:
            found = self.lm_eval.evaluate(model, self.limit, self._requests, self.outcomes)
            for entry in found:
                results.setdefault(entry["task"], []).append(entry)
            yield lm_eval_table(found)

    def _requests(self, kind: str, number: int) -> AbstractContextManager[Callable[[float], None]]:
        """The progress of the requests of one kind that lm-eval makes."""
        return self._console.progress(f"lm-evaluation-harness, {kind}", number, "requests")


def evaluate_tasks(
    load: Callable[[], LanguageModel],
    tasks: str,
    data: str | None,
    output: str,
    limit: int | None,
    console: Console,
    against: Sequence[str],
    contamination: str | None,
    model: str,
) -> None:
    """Evaluates a model on tasks and prints their tables; the last one compares it with the results in `against`.

    With `contamination`, a build, each item is looked for in its training documents; a table has the scores on those
    that are in them and those that are not, and DIR/contamination.csv has every item.

    Writes them to DIR/tasks.md and tasks.html, and the results, with the `model`, to DIR/tasks.json.

    Raises: ConfigError if a task is not known, or the folder of the data is not given; InputError if results of another
        model are not of the same tasks.
    """
    from finpile_trainer.evaluation.contamination import check_build

    from finpile.report.tasks import write_task_report
    from finpile.report.win_rates import model_table, task_scores, win_rates

    names = list(dict.fromkeys(name.strip() for name in tasks.split(",") if name.strip()))
    if not names:
        raise ConfigError("TASK is empty: expected names of tasks, separated by commas")
    chosen = _Tasks(names, data, limit, console)
    if model in against:
        raise ConfigError(f"--against {model}: is MODEL; expected the folder of another model's results")
    others = {folder: _scores_of(folder, chosen.scored, limit) for folder in against}
    if contamination is not None:
        check_build(contamination)
    loaded = load()
    report: dict[str, Any] = {"model": model, "step": loaded.step, "limit": limit, "tasks": {}}
    tables = []
    for table in chosen.evaluate(loaded, report["tasks"]):
        tables.append(table)
        console.report_table(table.title, table)
    if contamination is not None:
        table, report["contamination"] = _contamination(chosen.outcomes, contamination, output, console)
        tables.append(table)
        console.report_table(table.title, table)
    if others:
        scores = {model: task_scores(report), **others}
        report["models"] = {
            name: {"scores": scores[name], "win_rate": rate} for name, rate in win_rates(scores).items()
        }
        tables.append(model_table(scores))
        console.report_table(tables[-1].title, tables[-1])
    storage.write_json(storage.join(output, TASKS_NAME), report)
    write_task_report(output, loaded.name, tables)
    console.result(report)


def _contamination(
    outcomes: Sequence[Outcomes], build: str, output: str, console: Console
) -> tuple[Table, dict[str, Any]]:
    """The scores by whether the items are in training documents of a build; writes the list of items."""
    from finpile_trainer.evaluation.contamination import MIN_COVERAGE, find_items, scores_by_status

    from finpile.report.render import to_csv
    from finpile.report.tasks import contamination_table, items_table

    with console.progress(f"searching {build}", unit="B") as advance:
        findings = find_items((item for one in outcomes for item in one.items), build, on_bytes=advance)
    rows = [row for one in outcomes for row in scores_by_status(one, findings)]
    found = [
        {"task": item.task, "item": item.item, **finding._asdict(), "text": item.texts[0]}
        for item, finding in findings.items()
    ]
    storage.write_bytes(storage.join(output, ITEMS_NAME), to_csv(items_table(found)).encode())
    result = {"on": build, "min_coverage": MIN_COVERAGE, "scores": rows}
    return contamination_table(build, MIN_COVERAGE, rows), result


def _scores_of(folder: str, tasks: list[str], limit: int | None) -> dict[str, float]:
    """The scores of another model on `tasks`."""
    from finpile.report.win_rates import task_scores

    url = storage.join(folder, TASKS_NAME)
    try:
        report = storage.read_json(url)
        scores = task_scores(report)
    except FileNotFoundError as error:
        raise InputError(
            f"--against {folder}: holds no {TASKS_NAME}; expected a result of `finpile model tasks`"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{url}: is not a result of `finpile model tasks` ({type(error).__name__}: {error})"
        ) from error
    if not tasks:
        raise ConfigError(
            "--against compares tasks of FinPile; those of lm-evaluation-harness have several metrics each"
        )
    if absent := [task for task in tasks if task not in scores]:
        raise InputError(f"{url}: has no result of {', '.join(absent)}; evaluate that model on the same tasks")
    if report.get("limit") != limit:
        raise InputError(f"{url}: was evaluated with --limit {report.get('limit')}, not {limit}; use the same")
    return {task: scores[task] for task in tasks}
