"""Properties of every command: help, `--json`, exit codes, one message per error, no early heavy imports."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from finpile_cli import main as entry
from finpile_cli.engine import heavy_imports

from finpile import __version__
from finpile.errors import ConfigError, FinpileError, InputError, IntegrityError, RunError, WorkerDied
from tests.support.command import leaves

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]


COMMANDS = dict(leaves(entry.finpile))
NAMES = [" ".join(path) for path in COMMANDS]


def finpile(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """The command as a process of its own."""
    paths = [str(ROOT / folder) for folder in ("", "pipelines", "tokenizer", "cli", "trainer")]
    return subprocess.Popen(
        [sys.executable, "-m", "finpile_cli", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        **{"stdout": subprocess.PIPE, **options},
    )


# --- help ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command(run: Run, flag: str) -> None:
    found = run(flag)
    assert (found.code, found.err) == (0, "")
    assert all(f"  {name} " in found.out for name in NAMES)


@pytest.mark.parametrize("name", [*NAMES, "tokenizer", "fetch", "model", "export"])
def test_help_of_every_command_shows_its_use(run: Run, name: str) -> None:
    found = run(*name.split(), "--help")
    assert (found.code, found.err) == (0, "")
    usage = found.out.splitlines()[0]
    assert usage.startswith("Usage: ")
    assert f"finpile {name} [OPTIONS]" in usage


GROUPS = ["", *dict.fromkeys(path[0] for path in COMMANDS if len(path) > 1)]


@pytest.mark.parametrize("name", [*GROUPS, *NAMES])
def test_help_fits_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*name.split(), "--help").out.splitlines()
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("path", COMMANDS, ids=NAMES)
def test_every_command_and_option_explains_itself(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    unexplained = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert unexplained == []


@pytest.mark.parametrize("path", COMMANDS, ids=NAMES)
def test_every_command_speaks_json(path: tuple[str, ...]) -> None:
    assert "--json" in [name for parameter in COMMANDS[path].params for name in parameter.opts]


def test_version_is_that_of_the_package(run: Run) -> None:
    found = run("--version")
    assert (found.code, found.out) == (0, f"finpile, version {__version__}\n")


# --- mistakes in the use of the command ------------------------------------------------------------------------------

MISUSES = [
    ["nosuchcommand"],
    ["--nosuchoption"],
    ["build"],
    ["build", "corpus.yaml"],
    ["build", "corpus.yaml", "-o"],
    ["build", "corpus.yaml", "-o", "out", "--workers", "many"],
    ["build", "corpus.yaml", "-o", "out", "--runner", "hadoop"],
    ["build", "corpus.yaml", "-o", "out", "--nosuchoption"],
    ["build", "corpus.yaml", "-o", "out", "--transport", "pigeon"],
    ["check"],
    ["check", "one.yaml", "two.yaml"],
    ["verify"],
    ["show", "out"],
    ["report"],
    ["tokenizer", "nosuchcommand"],
    ["tokenizer", "encode"],
    ["tokenizer", "compare", "one"],
    ["model", "train"],
    ["model", "evaluate", "out"],
]


@pytest.mark.parametrize("arguments", MISUSES, ids=" ".join)
def test_misuse_is_one_message_and_exit_2(
    run: Run, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(*arguments)
    assert (found.code, found.out) == (2, "")
    assert found.err.count("Error: ") == 1
    assert "Traceback" not in found.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["buld"], "No such command 'buld'; did you mean `build`?"),
        (["tokenizer", "trian"], "No such command 'trian'; did you mean `train`?"),
        (["fetch", "wikipedai"], "No such command 'wikipedai'; did you mean `wikipedia`?"),
        (["xyz"], "No such command 'xyz'; known: append, as-of, audit, build, "),
    ],
)
def test_unknown_command_names_the_nearest(run: Run, words: list[str], says: str) -> None:
    found = run(*words)
    assert (found.code, found.out) == (2, "")
    assert f"Error: {says}" in found.err


def test_unknown_option_names_the_nearest(run: Run) -> None:
    assert "--workers" in run("build", "corpus.yaml", "-o", "out", "--worker", "2").err


# --- errors of our own -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConfigError, InputError, RunError, WorkerDied, IntegrityError])
def test_error_is_one_message_and_its_exit_code(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: type[FinpileError], corpus: Path
) -> None:
    def fail(*_: object) -> None:
        raise kind("what, where, what was expected, how to mend it") from OSError("beneath")

    monkeypatch.setattr("finpile.config.load_config", fail)
    for flags in ([], ["--json"]):
        found = run("check", corpus, *flags)
        assert found.refusal(kind.exit_code) == "what, where, what was expected, how to mend it"
        assert found.out == ""


def test_interrupt_is_one_message_and_exit_130(run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("finpile.config.load_config", interrupt)
    found = run("check", corpus)
    assert found.code == 130
    assert found.err.strip() == "finpile: interrupted; run the same command again to resume"


# --- as a process ----------------------------------------------------------------------------------------------------

HEAVY = ("apache_beam", "pyarrow", "numba", "numpy", "torch", "fsspec")
WHAT_HELP_IMPORTS = f"""
import sys
sys.argv = ["finpile", "--help"]
from finpile_cli.engine import heavy_imports
from finpile_cli.main import main
try:
    main()
finally:
    print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def test_help_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WHAT_HELP_IMPORTS], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stderr.strip() == "[]"


def test_cycles_are_looked_for_again_after_heavy_imports() -> None:
    with pytest.raises(ImportError), heavy_imports():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_process_ends_with_the_code_and_the_message(tmp_path: Path) -> None:
    with finpile("check", tmp_path / "absent.yaml") as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err == (
        f"finpile: {tmp_path}/absent.yaml: cannot be read (No such file or directory); give the path of a YAML file\n"
    )


@pytest.mark.parametrize(
    "arguments", [["--help"], ["check", str(ROOT / "pipelines/configs/sample.yaml")]], ids=["help", "check"]
)
def test_reader_that_leaves_early_is_no_error(arguments: list[str]) -> None:
    """As in `finpile --help | true`, by Click, and in `finpile check CONFIG.yaml | true`, by rich."""
    read, write = os.pipe()
    os.close(read)
    with finpile(*arguments, stdout=write) as process:
        os.close(write)
        assert process.communicate()[1] == ""
    assert process.returncode == 0
