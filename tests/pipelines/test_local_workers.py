"""The local runner: dead workers are detected, failures are reported, no process or file is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from finpile_pipelines import graph
from finpile_pipelines.engines import local
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.process_folder import process_folder
from finpile_pipelines.progress import Progress
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.errors import FinpileError, InputError, RunError

PATIENCE_SECONDS = 120
_FORK_SERVER = "finpile_pipelines.runner.fork_server"
StartPython = Callable[..., subprocess.Popen[str]]
ClusterMembers = Callable[[int], list[psutil.Process]]
Eventually = Callable[[Callable[[], Any]], Any]

#: Runs four tasks in two workers; a worker performs the given action in the third. Prints the error class and message.
SCRIPT = """
import os, signal, sys, time
from finpile.config import load_config
from finpile.errors import FinpileError
from finpile_pipelines import graph
from finpile_pipelines.engines import local
from finpile_pipelines.build import build
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.runner.engine import Engine

launcher, action, folder = os.getpid(), sys.argv[1], sys.argv[2]

def work(task):
    if task == 2:
        assert os.getpid() != launcher
        open(os.path.join(folder, "reached"), "w").close()
        exec(action)
    return {"task": task}

def construct(pipeline):
    pipeline | Tasks(range(4)) | graph.Map(work) | Gather(os.path.join(folder, "out.json"))

try:
    Engine(num_workers=2).run("action", construct)
    print("done")
except FinpileError as error:
    print(type(error).__name__, error)
"""


def run_action(start_python: StartPython, action: str, folder: Path) -> tuple[subprocess.Popen[str], str, str]:
    """Runs the script; returns its process, standard output and standard error. Fails the test after a time limit."""
    process = start_python("-c", SCRIPT, action, folder)
    try:
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("the launcher hangs")
    assert (folder / "reached").exists()
    return process, out, err


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "WorkerDied"),
        pytest.param("import os; os._exit(3)", "WorkerDied", marks=pytest.mark.slow),
        ("import os; os._exit(0)", ("WorkerDied", "RunError")),
    ],
    ids=["killed", "exit 3", "exit 0"],
)
def test_lost_worker_ends_the_run_and_leaves_no_process(
    action: str,
    error: str | tuple[str, ...],
    start_python: StartPython,
    members: ClusterMembers,
    eventually: Eventually,
    tmp_path: Path,
) -> None:
    process, out, err = run_action(start_python, action, tmp_path)
    assert out.startswith(error), err
    assert "action" in out
    assert not (tmp_path / "out.json").exists()
    assert eventually(lambda: not members(process.pid))


def test_the_input_that_a_dead_worker_was_reading_is_named(start_python: StartPython, tmp_path: Path) -> None:
    action = """
from types import SimpleNamespace as Made
from finpile_pipelines.corpus import ingest
ingest.read_file = lambda *arguments: __import__('os').abort()
task = Made(source=None, size_bytes=2, files=[Made(locator="news/2.jsonl.gz"), Made(locator="news/3.jsonl.gz")])
list(ingest._read_all(task, Made(add=None)))
"""
    _, out, _ = run_action(start_python, action, tmp_path)
    assert out.startswith("WorkerDied") and " while it read news/2.jsonl.gz: " in out


def test_worker_killed_under_the_command_is_one_message_and_exit_code_1(
    start_python: StartPython,
    members: ClusterMembers,
    eventually: Eventually,
    write_corpus: Callable[..., Path],
    tmp_path: Path,
) -> None:
    command = ["-m", "finpile_cli", "build", write_corpus(tmp_path), "-o", tmp_path / "out", "--workers", "2"]
    process = start_python(*command)
    workers = eventually(lambda: [one for one in members(process.pid) if _FORK_SERVER in one.cmdline()])
    workers[0].kill()  # not a process that compiles kernels: a build continues without it
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert eventually(lambda: not members(process.pid))
    assert [line for line in err.splitlines() if line.startswith("finpile: stage ingest: a worker process ended")]
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("num_others", "moment"),
    [
        pytest.param(1, "fork server", marks=pytest.mark.slow),
        (3, "twice"),
        pytest.param(3, "clean", marks=pytest.mark.slow),
    ],
)
def test_interrupted_command_prints_one_line_and_leaves_no_process(
    num_others: int,
    moment: str,
    start_python: StartPython,
    members: ClusterMembers,
    eventually: Eventually,
    write_corpus: Callable[..., Path],
    tmp_path: Path,
) -> None:
    command = ["-m", "finpile_cli", "build", write_corpus(tmp_path), "-o", tmp_path / "out", "--workers", "2"]
    process = start_python(*command)
    assert eventually(lambda: len(members(process.pid)) >= num_others or process.poll() is not None)
    if moment == "clean":
        assert eventually(lambda: (tmp_path / "out" / ".work" / "clean" / "started.json").exists())
    # As a terminal does, whose user is impatient: all processes in the foreground get it, the launcher alone then.
    os.killpg(process.pid, signal.SIGINT)
    if moment == "twice":
        os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, err
    (line,) = err.strip().splitlines()
    assert line == "finpile: interrupted; run the same command again to resume"
    assert eventually(lambda: not members(process.pid))
    assert not (tmp_path / "out" / ".work" / "lock").exists()


def test_interrupted_launcher_does_not_wait_for_its_workers(
    start_python: StartPython, members: ClusterMembers, eventually: Eventually, tmp_path: Path
) -> None:
    """Ctrl-C may reach it alone, and a task last for hours."""
    process = start_python("-c", SCRIPT, "import time; time.sleep(600)", tmp_path)
    assert eventually(lambda: (tmp_path / "reached").exists())
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode not in (0, None)
    assert "KeyboardInterrupt" in err  # the script does not catch it; the command does
    assert err.count("Traceback") == 1
    assert eventually(lambda: not members(process.pid))


def test_killed_launcher_ends_its_workers_even_if_nobody_reaps_it(
    start_python: StartPython, members: ClusterMembers, eventually: Eventually, tmp_path: Path
) -> None:
    process = start_python("-c", SCRIPT, "import time; time.sleep(600)", tmp_path)
    try:
        assert eventually(lambda: (tmp_path / "reached").exists())
        assert len(members(process.pid)) >= 2
        os.kill(process.pid, signal.SIGKILL)  # not waited for: it stays a zombie, as below an init that reaps nothing
        assert eventually(lambda: not members(process.pid))
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_threads_of_one_process_work_at_once(eventually: Eventually, tmp_path: Path) -> None:
    """Each task waits until all three have started, which never happens if they run one after the other."""

    def work(task: int) -> dict[str, int]:
        (tmp_path / f"{task}.here").touch()
        met = eventually(lambda: len(list(tmp_path.glob("*.here"))) == 3)
        return {"task": task, "met": bool(met), "process": os.getpid()}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(3)) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    Engine(num_workers=3, threads=True).run("meeting", construct)
    expected = [{"task": task, "met": True, "process": os.getpid()} for task in range(3)]
    assert sorted(storage.read_json(str(tmp_path / "out.json")), key=lambda found: int(found["task"])) == expected


def test_an_error_ends_the_other_workers_and_is_the_one_that_is_reported(tmp_path: Path) -> None:
    """Their ends follow from it, though the launcher may see them first."""

    def work(task: int) -> dict[str, int]:
        (tmp_path / f"{task}.here").touch()
        while len(list(tmp_path.glob("*.here"))) < 3:
            time.sleep(0.01)
        if task == 1:
            raise ValueError("shelf 17 is bare")
        time.sleep(600)
        return {"task": task}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(3)) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    with pytest.raises(RunError, match=r"^stage shelves failed: ValueError: shelf 17 is bare$"):
        Engine(num_workers=3).run("shelves", construct)


def failure_of(kind: type[Exception], engine: Engine, folder: Path) -> FinpileError:
    """What a run raises one of whose tasks raises `kind`."""

    def work(task: int) -> dict[str, int]:
        if task == 2:
            raise kind("shelf 17 is bare")
        return {"task": task}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(4)) | graph.Map(work) | Gather(str(folder / "out.json"))

    with pytest.raises(FinpileError) as caught:
        engine.run("shelves", construct)
    assert not (folder / "out.json").exists()
    return caught.value


@pytest.mark.parametrize("kind", [ValueError, KeyError, InputError], ids=lambda kind: str(kind.__name__))
def test_failing_task_is_reported_in_one_line_for_any_number_of_workers(
    kind: type[Exception], eventually: Eventually, tmp_path: Path
) -> None:
    engines = Engine(), Engine(num_workers=2), Engine(num_workers=2, threads=True)
    errors = [failure_of(kind, engine, tmp_path) for engine in engines]
    assert len({str(error) for error in errors}) == 1
    for error in errors:
        assert isinstance(error, RunError if kind is not InputError else FinpileError)
        assert "shelf 17 is bare" in str(error)
        assert "\n" not in str(error)
        if kind is KeyError:
            assert "KeyError" in str(error)  # its own text is only the key
    # The fork server waits for the next pipeline.
    assert eventually(lambda: len(forked()) == 1), [(process, process.cmdline()) for process in forked()]


def forked() -> list[psutil.Process]:
    """The fork_server of this process, and its forks, which have its command line; not those of its other children."""
    return [process for server in servers() for process in (server, *living(server.children(recursive=True)))]


def servers() -> list[psutil.Process]:
    return [child for child in living(psutil.Process().children()) if _FORK_SERVER in child.cmdline()]


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [process for process in processes if process.status() != psutil.STATUS_ZOMBIE]


#: Runs two pipelines that return their workers' parent, kills it, and runs a third. Prints their results.
FORK_SERVER_SCRIPT = """
import json, os, sys, time
import psutil
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.runner.engine import Engine

out = sys.argv[1] + "/out.json"

def construct(pipeline):
    reported = pipeline | Tasks(range(4)) | graph.Map(lambda task: {"task": task, "parent": os.getppid()})
    _ = reported | Gather(out)

def parent():
    Engine(num_workers=2).run("asking", construct)
    (found,) = {row["parent"] for row in json.load(open(out))}
    return found

first, second = parent(), parent()
server = psutil.Process(first)
while psutil.Process().children(recursive=True) != [server]:  # forks and their stand-ins end after the pipeline
    time.sleep(0.05)
server.kill()
server.wait()
print(first == second, parent() != first)
"""


def test_fork_server_whose_launcher_was_killed_before_it_began_ends(
    start_python: StartPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its parent is another process by then; it held the output of the command open for ever."""
    dropped = start_python("-c", "")
    dropped.communicate(timeout=PATIENCE_SECONDS)
    monkeypatch.chdir(tmp_path)  # a socket's path has 108 bytes at most
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("fork-server")
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, "-m", "finpile_pipelines.runner.fork_server", str(number), str(dropped.pid)]
        with subprocess.Popen(command, pass_fds=(number,)) as fork_server:
            try:
                assert fork_server.wait(PATIENCE_SECONDS) == 0
            finally:
                fork_server.kill()


def test_pipelines_share_a_fork_server_and_a_new_one_follows_one_that_was_killed(
    start_python: StartPython, tmp_path: Path
) -> None:
    process = start_python("-c", FORK_SERVER_SCRIPT, tmp_path)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert out.split() == ["True", "True"], err


def test_a_fork_server_without_its_socket_ends_when_another_one_follows(tmp_path: Path) -> None:
    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(2)) | graph.Map(lambda task: {"task": task}) | Gather(str(tmp_path / "out.json"))

    Engine(num_workers=2).run("before", construct)
    (before,) = servers()
    (process_folder() / "fork-server").unlink()
    Engine(num_workers=2).run("after", construct)
    (after,) = servers()
    assert after != before


def test_workers_cpu_seconds_grow_by_the_use_of_tasks(tmp_path: Path) -> None:
    def work(task: int) -> dict[str, int]:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        return {"task": task}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(range(2)) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    Engine(num_workers=2).run("before", construct)
    before = local.workers_cpu_seconds()
    Engine(num_workers=2).run("measured", construct)
    assert local.workers_cpu_seconds() - before > 0.5


LIMITED = """
import resource, sys
from finpile_cli.main import main
from tests.support.work_folders import files_of_stage
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
main()
"""


@pytest.mark.parametrize("num_workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_failed_stage_is_one_message_of_the_command(
    num_workers: int, start_python: StartPython, write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """No file may grow beyond 2 kB, as on a disk that is full: the shards of ingest cannot be written."""
    arguments = ["build", write_corpus(tmp_path), "-o", tmp_path / "out", "--workers", num_workers]
    command = ["-c", LIMITED, *arguments]
    process = start_python(*command)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    (message,) = (line for line in err.splitlines() if line.startswith("finpile: "))
    assert message.startswith("finpile: stage ingest failed: ")
    assert "File too large" in message
    assert str(tmp_path / "out" / ".work" / "ingest") in message
    assert "Traceback" not in err


@pytest.mark.parametrize("num_workers", [1, 2])
def test_progress_reaches_the_watcher_while_tasks_run(num_workers: int, tmp_path: Path) -> None:
    """Every task waits until the watcher has seen what all of them reported."""
    seen: list[Progress] = []
    lock = threading.Lock()
    flag = str(tmp_path / "seen")

    def watch(label: str, progress: Progress) -> None:
        assert label == "counting"
        with lock:
            seen.append(progress)
        if (progress.num_documents, progress.size_bytes) == (6, 60):
            Path(flag).touch()

    def work(task: int) -> dict[str, int]:
        import time
        from pathlib import Path

        from finpile_pipelines.progress import report_progress

        report_progress(task, 10 * task)
        waits = 0
        while task == 3 and not Path(flag).exists() and waits < 3000:
            waits += 1
            time.sleep(0.01)
        return {"task": task, "waits": waits}

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks([1, 2, 3]) | graph.Map(work) | Gather(str(tmp_path / "out.json"))

    Engine(num_workers=num_workers, watch=watch).run("counting", construct)
    assert Path(flag).exists()
    assert [row["task"] for row in storage.read_json(str(tmp_path / "out.json"))] == [1, 2, 3]
    assert all(progress.memory_bytes > 0 for progress in seen)
    assert max(progress.num_documents for progress in seen) == 6


def test_files_of_the_working_directory_are_no_modules_for_processes(tmp_path: Path) -> None:
    """As for the program `finpile` itself: a folder of data may have files with the names of modules."""
    for name in ("random", "json", "numpy", "pyarrow", "finpile", "finpile_pipelines"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the working directory')")
    (tmp_path / "texts.jsonl").write_text("".join(f'{{"text": "Port number {n} had gold."}}\n' for n in range(40)))
    source = {"name": "Texts", "dataset": "D", "format": "jsonl", "paths": "*.jsonl"}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({"name": "c", "sources": [source]}))
    command = [sys.executable, "-P", "-m", "finpile_cli", "build", "corpus.yaml", "-o", "out", "--until", "split"]
    environment = {**os.environ, "FINPILE_SMALL_BYTES": "0"}
    build = [*command, "--workers", "2"]
    done = subprocess.run(build, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out/manifest.json").exists()


def test_processes_import_what_is_beside_the_program(tmp_path: Path) -> None:
    """Tasks of a module beside a program, which is run from another folder."""
    (tmp_path / "beside.py").write_text("def work(task):\n    return {'task': task}\n")
    (tmp_path / "program.py").write_text(
        "import os, sys, beside\n"
        "from finpile_pipelines import graph\nfrom finpile_pipelines.exchange.tasks import Gather, Tasks\n"
        "from finpile_pipelines.runner.engine import Engine\n"
        "def construct(pipeline):\n"
        "    pipeline | Tasks(range(4)) | graph.Map(beside.work) | Gather(sys.argv[1])\n"
        "if __name__ == '__main__':\n    Engine(num_workers=2).run('beside', construct)\n"
    )
    command = [sys.executable, tmp_path / "program.py", tmp_path / "out.json"]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(storage.read_json(str(tmp_path / "out.json"))) == 4
