"""Mutation score of the tests of six modules: how many small changes of the code make a test fail.

    python benchmarks/suite/mutation_score.py [--checkout FOLDER] [--num 40] [--only NAME] [--results FOLDER]

One change at a time is made to a copy of the checkout: a comparison or an arithmetic operator is exchanged, an integer
moved by one, `and` exchanged with `or`, a condition negated, a constant flipped, a return value replaced by None. Then
the nearest tests of the module run until one fails. Mutants are drawn by a digest of their place and change, not by
chance: the same code gives the same mutants. A mutant that runs longer than the time limit counts as killed.

The processes that run the tests are forks of one that has NumPy, PyArrow, Numba and pytest; the sample corpus is built
once, by the unchanged code.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Modules (files, or folders of files) and the tests nearest to each, as patterns.
TARGETS: dict[str, tuple[list[str], list[str]]] = {
    "ledger": (["finpile/documents/ledger.py"], ["tests/finpile/test_ledger.py"]),
    "merge": (
        ["tokenizer/finpile_tokenizer/merge.py", "tokenizer/finpile_tokenizer/training/merge.py"],
        ["tests/tokenizer/**/test_tokenizer_training.py", "tests/tokenizer/**/test_merge*.py"],
    ),
    "split": (["finpile/documents/split.py"], ["tests/finpile/test_split.py"]),
    "verify": (["finpile/verify/*.py"], ["tests/finpile/test_verify*.py", "tests/finpile/verify/test_*.py"]),
    "timestamps": (
        ["finpile/timestamps/*.py"],
        ["tests/finpile/test_timestamps.py", "tests/finpile/test_date_fields.py", "tests/finpile/timestamps/test_*.py"],
    ),
    "c4": (["finpile/clean/c4.py", "finpile/clean/filters/c4.py"], ["tests/finpile/clean/test_c4*.py"]),
    "table1": (
        ["finpile/report/table1.py"],
        ["tests/finpile/report/test_paper_tables.py", "tests/finpile/report/test_render.py"],
    ),
}
#: Longer than any of the tests take on the unchanged code, by far.
_LIMIT_SECONDS = 300
_FOLDERS = ("finpile", "cli", "pipelines", "tokenizer", "tests", "data_samples", "benchmarks", "schemas")
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    function: str
    change: str
    repetition: int
    """How many equal changes come before it in its function."""
    source: str
    """The whole file with the change."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Whether the nearest tests failed for a mutant."""

    mutant: Mutant
    is_killed: bool


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Every mutant of one file."""
    tree = ast.parse(source)
    seen: Counter[tuple[str, str]] = Counter()
    for index, (node, kind) in enumerate(_sites(tree)):
        changed = copy.deepcopy(tree)
        found, _ = _sites(changed)[index]
        before = ast.unparse(node)
        change = f"{_short(before)} -> {_short(ast.unparse(_changed(found, kind)))}"
        function = _function_at(tree, node.lineno)
        yield Mutant(
            path=path,
            line=node.lineno,
            function=function,
            change=change,
            repetition=seen[function, change],
            source=ast.unparse(changed) + "\n",
        )
        seen[function, change] += 1


def _function_at(tree: ast.AST, line: int) -> str:
    """The name of the innermost function or class around a line."""
    names = [
        (node.lineno, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(names)[1] if names else ""


def _sites(tree: ast.AST) -> list[tuple[Any, str]]:
    """The nodes that can be changed, and how, in the order of the file; no annotations, docstrings or `__all__`."""
    sites: list[tuple[Any, str]] = []
    for node in _walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
            sites.append((node, "compare"))
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            sites.append((node, "arithmetic"))
        elif isinstance(node, ast.BoolOp):
            sites.append((node, "and/or"))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            sites.append((node, "not"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            sites.append((node, "flip"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            sites += [(node, "+1"), (node, "-1")]
        elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
            sites.append((node, "return None"))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            sites.append((node, "negate"))
    return sites


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _walk(child)


def _changed(node: Any, change: str) -> Any:
    """Changes the node in place."""
    match change:
        case "compare":
            node.ops[0] = _COMPARISONS[type(node.ops[0])]()
        case "arithmetic":
            node.op = _ARITHMETIC[type(node.op)]()
        case "and/or":
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case "not":
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
        case "flip":
            node.value = not node.value
        case "+1" | "-1":
            node.value += int(change)
        case "return None":
            node.value = ast.Constant(None)
        case "negate":
            node.test = ast.UnaryOp(ast.Not(), node.test)
    return ast.fix_missing_locations(node)


def _short(code: str) -> str:
    line = code.splitlines()[0]
    return line if len(line) <= 60 else line[:57] + "..."


def draw(every: list[Mutant], num: int) -> list[Mutant]:
    """`num` mutants whose digests are the smallest, in the order of their files. Other lines of a file do not count."""

    def digest(mutant: Mutant) -> bytes:
        key = (Path(mutant.path).name, mutant.function, mutant.change, mutant.repetition)
        return hashlib.blake2b(repr(key).encode(), digest_size=8).digest()

    return sorted(sorted(every, key=digest)[:num], key=lambda mutant: (mutant.path, mutant.line, mutant.change))


class Runner:
    """Runs tests in forks of this process."""

    def __init__(self, root: Path, sample_build: Path) -> None:
        self._root = root
        self._sample_build = sample_build

    def passes(self, tests: list[str], log: Path) -> bool:
        """Whether all tests pass, within the time limit."""
        pid = os.fork()
        if pid == 0:
            self._test(tests, log)
        end = time.monotonic() + _LIMIT_SECONDS
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status) == 0
            if time.monotonic() > end:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                return False
            time.sleep(0.02)

    def _test(self, tests: list[str], log: Path) -> None:
        import pytest

        code = 3
        try:
            os.setsid()
            os.chdir(self._root)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(descriptor, 1)
            os.dup2(descriptor, 2)
            sample = self._sample_build

            class Plugin:
                """Gives tests the sample build of the unchanged code."""

                @pytest.hookimpl(tryfirst=True)
                def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Any:
                    if fixturedef.argname != "sample_build":
                        return None
                    fixturedef.cached_result = (sample, fixturedef.cache_key(request), None)
                    return sample

            options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist"]
            code = pytest.main([*options, f"--basetemp={log}.tmp", *tests], plugins=[Plugin()])
        finally:
            os._exit(int(code))


def _files(root: Path, patterns: list[str]) -> list[str]:
    return sorted({path.relative_to(root).as_posix() for pattern in patterns for path in root.glob(pattern)})


def score(target: str, root: Path, num: int, runner: Runner, log: Path) -> tuple[int, list[Outcome]]:
    """The number of all mutants of a target, and what became of those that were drawn."""
    sources, tests = (_files(root, patterns) for patterns in TARGETS[target])
    if not sources or not tests:
        raise SystemExit(f"{target}: no module or no test in {root}")
    if not runner.passes(tests, log):
        raise SystemExit(f"{target}: a test fails on the unchanged code: {log}")
    every = [mutant for path in sources for mutant in mutants(path, (root / path).read_text())]
    outcomes = []
    for mutant in draw(every, num):
        path = root / mutant.path
        original, times = path.read_text(), path.stat()
        path.write_text(mutant.source)
        try:
            outcomes.append(Outcome(mutant=mutant, is_killed=not runner.passes(tests, log)))
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        _say(f"  {'killed  ' if outcomes[-1].is_killed else 'SURVIVED'} {mutant.path}:{mutant.line} {mutant.change}")
    return len(every), outcomes


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _copy(checkout: Path, folder: Path) -> Path:
    """The code and tests of a checkout, with the kernels that it has compiled."""
    for name in _FOLDERS:
        if (checkout / name).exists():
            shutil.copytree(checkout / name, folder / name, symlinks=True)
    for path in checkout.glob("*.*"):
        if path.is_file():
            shutil.copy2(path, folder)
    return folder


def _sample_build(root: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "finpile_cli", "build", "pipelines/configs/sample.yaml", "-o", str(out)]
    subprocess.run(command, cwd=root, check=True, stdout=subprocess.DEVNULL)
    return out


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, default=ROOT)
    parser.add_argument("--num", type=int, default=40, help="mutants of each module, at most")
    parser.add_argument("--only", action="append", choices=list(TARGETS))
    parser.add_argument("--results", type=Path, help="a JSON file")
    parser.add_argument("--sample", type=Path, help="a finished build of the sample corpus; built if not given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = _copy(arguments.checkout.resolve(), Path(scratch) / "checkout")
        paths = [str(root / name) for name in ("", "cli", "pipelines", "tokenizer")]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        sys.path[:0] = paths
        sys.dont_write_bytecode = True
        sample = arguments.sample or _sample_build(root, Path(scratch) / "sample")
        import numba  # noqa: F401  what every fork would import
        import pyarrow.compute
        import pyarrow.parquet  # noqa: F401
        import pytest  # noqa: F401

        runner = Runner(root, sample)
        rows: list[dict[str, Any]] = []
        for target in arguments.only or TARGETS:
            _say(target)
            every, outcomes = score(target, root, arguments.num, runner, Path(scratch) / f"{target}.log")
            killed = sum(outcome.is_killed for outcome in outcomes)
            survivors = [
                f"{one.mutant.path}:{one.mutant.line} {one.mutant.change}" for one in outcomes if not one.is_killed
            ]
            rows.append(
                {"module": target, "mutants": every, "tried": len(outcomes), "killed": killed, "survivors": survivors}
            )
            _say(f"{target}: {killed} of {len(outcomes)} killed, of {every} mutants")
            if arguments.results:
                arguments.results.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
