"""An evaluation task of another package is one file: the command evaluates it beside those of FinPile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import finpile_trainer
import pytest
from click.testing import CliRunner
from finpile_cli import language_models
from finpile_cli.tasks import tasks_command
from finpile_trainer.evaluation.task import TASKS, in_order

from finpile.errors import ConfigError
from tests.support.byte_model import byte_model
from tests.support.packages import installed

#: Whether the model prefers the first of two words in a line.
TASK_FILE = """
from dataclasses import dataclass
from finpile.report.figures import count, name
from finpile.report.table import Column, Row, Table
from finpile_trainer.evaluation.outcomes import TaskItem, of_flags
from finpile_trainer.evaluation.task import Task, task_files


@dataclass(frozen=True)
class Words:
    lines: list

    @property
    def num_items(self):
        return len(self.lines)

    def evaluate(self, model, advance):
        flags = []
        for first, second in self.lines:
            one, other = model.log_likelihoods([("", first), ("", second)])
            flags.append(one.nats > other.nats)
            advance(1)
        items = [TaskItem("words", str(at), tuple(line)) for at, line in enumerate(self.lines)]
        return {"score": sum(flags) / len(flags), "num_right": sum(flags)}, of_flags("words", "accuracy", items, flags)


def read(folder, limit):
    (path,) = task_files(folder, "words.txt")
    return Words([line.split() for line in path.read_text().splitlines()[:limit]])


def table(results):
    columns = (Column(key="task", title="Task"), Column(key="right", title="Right words"))
    rows = tuple(Row(cells=(name("words"), count(result["num_right"]))) for result in results)
    return Table(name="words", title="Words", caption="", columns=columns, rows=rows)


TASK = Task(name="words", read=read, unit="lines", table=table)
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    """An installed package with the task, and one whose task cannot be loaded."""
    lines = "words = words_task:TASK\nlost = no_such_module:TASK"
    with installed(tmp_path / "site", {"words_task": TASK_FILE}, {TASKS: lines}):
        yield


def test_every_module_of_tasks_is_a_task_and_tables_have_the_order_of_the_paper() -> None:
    folder = Path(finpile_trainer.__file__).parent / "tasks"
    files = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    assert list(TASKS.built_in) == files
    ordered = [task.name for task in in_order(TASKS.built_in)]
    assert ordered == ["blimp", "clams", "fpb", "fiqa_sa", "headline", "ner", "convfinqa"]
    assert ", ".join(TASKS.built_in) in " ".join(CliRunner().invoke(tasks_command, ["--help"]).output.split())


@pytest.mark.usefixtures("package")
def test_task_of_another_package_is_evaluated_beside_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_models, "load_language_model", lambda *_: byte_model({"a": 20}))
    (tmp_path / "data/clams/en_evalset").mkdir(parents=True)
    (tmp_path / "data/clams/en_evalset/order.txt").write_text("True\taab\nFalse\tabb\n")
    (tmp_path / "data/words.txt").write_text("aab abb\nabb aab\naa ba\nx y\n")

    def run(folder: str, *more: str) -> str:
        arguments = ["run", "words,clams", "--data", f"{tmp_path}/data", "-o", f"{tmp_path}/{folder}"]
        result = CliRunner().invoke(tasks_command, [*arguments, "--limit", "3", *more], catch_exceptions=False)
        assert result.exit_code == 0
        return result.output

    run("out")
    report = json.loads((tmp_path / "out/tasks.json").read_text())["tasks"]
    assert report["words"] == {"score": 2 / 3, "num_right": 2}
    assert report["clams"]["all"]["accuracy"] == 1.0
    output = run("again", "--against", f"{tmp_path}/out")
    assert output.index("CLAMS") < output.index("Right words") < output.index("Models")
    assert "| words | 66.67 | 66.67 |" in (tmp_path / "again/tasks.md").read_text()


@pytest.mark.usefixtures("package")
def test_task_that_cannot_be_loaded_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"TASK: 'lost' \(no_such_module:TASK\) cannot be loaded"):
        CliRunner().invoke(tasks_command, ["run", "lost", "--data", str(tmp_path)], catch_exceptions=False)
