"""What makes kernels slow to compile is in none of their modules: see `finpile_tokenizer.arrays.jit`."""

from __future__ import annotations

import ast
from pathlib import Path

import finpile_tokenizer
import pytest

import finpile

MODULES = [path for package in (finpile, finpile_tokenizer) for path in Path(package.__path__[0]).rglob("_*kernels.py")]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_kernels_assign_no_slices_and_have_the_common_decorators(path: Path) -> None:
    tree = ast.parse(path.read_text())
    compiled = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    decorators = {ast.unparse(decorator) for node in compiled for decorator in node.decorator_list}
    assert decorators <= {"kernel", "inner", "inlined"}
    slices = [f"{path.name}:{node.lineno}" for function in compiled for node in ast.walk(function) if is_stored(node)]
    assert not slices


def is_stored(node: ast.AST) -> bool:
    """Whether a node is a slice of an array that is assigned to."""
    stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    return stored and any(isinstance(part, ast.Slice) for part in ast.walk(node.slice))


def test_modules_are_found() -> None:
    assert len(MODULES) > 25
    assert is_stored(ast.parse("a[1:, 0] = 0").body[0].targets[0])
