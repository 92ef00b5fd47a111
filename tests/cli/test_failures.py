"""Errors that nobody raised on purpose are one line and an exit code, too."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/out/x"), 1, "/out/x: No space left on device: free space"),
        (PermissionError(errno.EACCES, "Permission denied", "/in/y"), 2, "/in/y: Permission denied: change the perm"),
        (OSError(errno.EROFS, "Read-only file system", "/out"), 2, "/out: Read-only file system: name a path"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 1, "Cannot allocate memory: use fewer --workers"),
        (MemoryError(), 1, "out of memory: use fewer --workers"),
        (EOFError("ends early"), 1, "internal error: EOFError: ends early (test_failures.py:"),
        (KeyError("name"), 1, "internal error: KeyError: 'name' (test_failures.py:"),
        (ValueError("two\nlines"), 1, "internal error: ValueError: two lines (test_failures.py:"),
        (RecursionError(), 1, "internal error: RecursionError: no message (test_failures.py:"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_unexpected_error_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path, error: BaseException, code: int, message: str
) -> None:
    monkeypatch.setattr("finpile.config.load_config", failing(error))
    monkeypatch.delenv("FINPILE_TRACEBACK", raising=False)
    found = run("check", corpus)
    assert (found.code, found.out) == (code, "")
    (line,) = found.err.strip().splitlines()
    assert line.startswith(f"finpile: {message}")
    assert ("internal error" in line) == ("set FINPILE_TRACEBACK=1" in line)


def test_traceback_is_printed_if_the_variable_is_set(run: Run, monkeypatch: pytest.MonkeyPatch, corpus: Path) -> None:
    monkeypatch.setattr("finpile.config.load_config", failing(KeyError("name")))
    monkeypatch.setenv("FINPILE_TRACEBACK", "1")
    found = run("check", corpus)
    assert found.code == 1
    assert found.err.startswith("Traceback (most recent call last)")
    assert found.err.splitlines()[-1].startswith("finpile: internal error: KeyError: 'name'")


@pytest.mark.parametrize("length", [300, 5000])
@pytest.mark.parametrize("command", ["build", "check", "verify", "dedup"])
def test_path_that_is_too_long_is_one_short_message(run: Run, corpus: Path, command: str, length: int) -> None:
    path = "/tmp/" + "n" * length
    arguments = {
        "build": [corpus, "-o", path],
        "check": [path],
        "verify": [path],
        "dedup": [path, "-o", f"{path}-out"],
    }[command]
    message = run(command, *arguments).refusal()
    assert "File name too long" in message
    assert len(message) < 700
    assert not os.path.lexists("/tmp/n")


def test_home_is_expanded_without_a_shell(
    run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `--output=~/x` a shell leaves the sign as it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run("check", "~/corpus.yaml").code == 0
    message = run("build", "~/corpus.yaml", "--output=~/news").refusal()  # holds files of another kind
    assert str(tmp_path / "news") in message
    assert run("verify", "~/nothing").refusal().startswith(str(tmp_path / "nothing"))
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "CORPUS", "-o", "foo://x/y"),
        ("build", "foo://x/corpus.yaml", "-o", "OUT"),
        ("verify", "foo://x"),
        ("dedup", "foo://x/a.jsonl", "-o", "OUT"),
        ("dedup", "CORPUS", "-o", "foo://x"),
        ("tokenizer", "train", "foo://x", "-o", "OUT"),
        ("verify", "simplecache::foo://x"),
    ],
    ids=" ".join,
)
def test_url_of_an_unknown_file_system_is_one_message(
    run: Run, corpus: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    named = {"CORPUS": str(corpus), "OUT": str(tmp_path / "out")}
    before = sorted(tmp_path.rglob("*"))
    message = run(*(named.get(argument, argument) for argument in arguments)).refusal()
    assert "unknown file system foo://" in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("entry", ["foo://x/a.jsonl", "/" + "n" * 5000])
def test_source_of_an_impossible_path_is_one_message(run: Run, corpus: Path, entry: str) -> None:
    corpus.write_text(corpus.read_text().replace("news/*.jsonl", entry))
    message = run("check", corpus).refusal()
    assert "foo" in message if "foo" in entry else "matches no file" in message or "File name too long" in message


def test_path_with_a_null_byte_is_one_message(run: Run, corpus: Path) -> None:
    assert "is not a path" in run("build", corpus, "-o", "a\0b").refusal()


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "[" * 50_000 + "]" * 50_000, "name: " + "[" * 50_000, "{a: " * 20_000, "- " * 50_000]
)
def test_yaml_nested_very_deep_is_one_message(run: Run, corpus: Path, text: str) -> None:
    corpus.write_text(text)
    message = run("check", corpus).refusal()
    assert message.startswith(str(corpus))
    assert "nested too deep" in message


@pytest.mark.parametrize(
    "command", [["model", "train", "train.yaml"], ["model", "evaluate", "out", "run"]], ids=" ".join
)
@pytest.mark.parametrize(
    "action",
    ["raise OSError('libcudart.so.12: cannot open shared object file')", "raise RuntimeError('two\\nlines')", "1 / 0"],
)
def test_torch_that_cannot_be_imported_is_one_message(tmp_path: Path, action: str, command: list[str]) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(action)
    paths = [str(tmp_path), str(ROOT), str(ROOT / "pipelines"), str(ROOT / "tokenizer")]
    done = subprocess.run(
        [sys.executable, "-m", "finpile_cli", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("finpile: this command needs PyTorch, which is installed but cannot be imported (")
    assert "finpile[train]" in line
