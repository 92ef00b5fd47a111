"""The import graph of the four packages: no circles between modules or folders, no arrow against the layers.

    python tests/test_import_graph.py [CHECKOUT]

prints each package's files, lines and arrows, and the counts that the tests check, of this checkout by default.

An arrow is an import of one of our modules by another, wherever it is written: at the top of the file, below
`TYPE_CHECKING`, in a function, or as `import_module("name")`. Between folders, each package is looked at by itself: its
modules and subpackages are the nodes, and an arrow joins two of them if any module below the one imports any module
below the other. The four packages together are looked at in the same way. The layers are
those of import-linter in pyproject.toml, which checks indirect imports besides.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal

import pytest

from finpile.plugins import stages

ROOT = Path(__file__).resolve().parents[1]
#: Top to bottom.
PACKAGES = {
    "finpile_cli": "cli/finpile_cli",
    "finpile_pipelines": "pipelines/finpile_pipelines",
    "finpile": "finpile",
    "finpile_tokenizer": "tokenizer/finpile_tokenizer",
    "finpile_trainer": "trainer/finpile_trainer",
}
Place = Literal["top", "typing", "function", "literal"]
Graph = Mapping[str, Iterable[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrow:
    """One import of a module of ours by another."""

    source: str
    target: str
    place: Place
    """Where the import is written: at the top, below `TYPE_CHECKING`, in a function, or as `import_module("name")`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    path: Path
    num_lines: int
    tree: ast.Module


def read_modules(root: Path, packages: Mapping[str, str] = PACKAGES) -> dict[str, Module]:
    """All modules of `packages` (name: folder below `root`), by dotted name."""
    modules = {}
    for package, folder in packages.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = (package, *path.relative_to(root / folder).with_suffix("").parts)
            text = path.read_text()
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            modules[name] = Module(path=path, num_lines=len(text.splitlines()), tree=ast.parse(text))
    return modules


def arrows(modules: Mapping[str, Module]) -> list[Arrow]:
    """Every import of one module by another; of several between the same two, the first."""
    found: dict[tuple[str, str], Arrow] = {}
    for name, module in modules.items():
        for target, place in _imports(module.tree, "top"):
            while target and target not in modules:  # `from module import name`
                target = target.rpartition(".")[0]
            if target and target != name:
                found.setdefault((name, target), Arrow(source=name, target=target, place=place))
    return list(found.values())


def sibling_graphs(modules: Mapping[str, Module], found: Iterable[Arrow]) -> dict[str, dict[str, set[str]]]:
    """For each package, its direct children and the children that each imports; `__init__` is a child, too.

    The empty name is that of the folder above all packages.
    """
    packages = ["", *(name for name, module in modules.items() if module.path.name == "__init__.py")]
    graphs: dict[str, dict[str, set[str]]] = {package: {} for package in packages}
    for package, graph in graphs.items():
        for name in modules:
            if _is_below(name, package):
                graph.setdefault(_child(name, package), set())
    for arrow in found:
        for package, graph in graphs.items():
            if _is_below(arrow.source, package) and _is_below(arrow.target, package):
                source, target = _child(arrow.source, package), _child(arrow.target, package)
                if source != target:
                    graph[source].add(target)
    return graphs


def circle(graph: Graph) -> list[str]:
    """A circle of the graph, its first node repeated at the end; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def upward(found: Iterable[Arrow], contracts: Iterable[Mapping[str, Any]]) -> list[Arrow]:
    """Arrows from a lower layer to a higher one, or between two of one layer that are declared independent."""
    wrong = []
    levels = [_levels(contract) for contract in contracts if contract["type"] == "layers"]
    for arrow in found:
        for level_of in levels:
            source, target = _layer(arrow.source, level_of), _layer(arrow.target, level_of)
            if source and target and source != target and level_of[source] >= level_of[target]:
                wrong.append(arrow)
    return wrong


def listing(root: Path) -> Iterator[str]:
    """The packages with their files, lines and imports of other packages, then the totals."""
    modules = read_modules(root)
    found = arrows(modules)
    graphs = sibling_graphs(modules, found)
    for package in filter(None, graphs):
        inside = [name for name in modules if _is_below(name, package)]
        yield f"{package}: {len(inside)} files, {_num_lines(modules, inside):,} lines"
        direct = [name for name in inside if _folder(name, modules) == package]
        yield "    " + ", ".join(f"{modules[name].path.stem} {modules[name].num_lines}" for name in direct)
        targets = Counter(_folder(arrow.target, modules) for arrow in found if arrow.source in direct)
        outside = [f"{name} ({number})" for name, number in sorted(targets.items()) if name != package]
        yield f"    imports {', '.join(outside) or 'no other package'}"
    places = Counter(arrow.place for arrow in found)
    folders = {(_folder(arrow.source, modules), _folder(arrow.target, modules)) for arrow in found}
    yield ""
    yield f"files: {len(modules)}; lines: {_num_lines(modules, modules):,}; folders: {len(graphs) - 1}"
    yield f"arrows between modules: {len(found)} ({', '.join(f'{place} {n}' for place, n in sorted(places.items()))})"
    yield f"arrows between folders: {sum(source != target for source, target in folders)}"
    yield f"arrows upward: {len(upward(found, _contracts(root)))}"
    yield f"circles between modules: {_num_circles(_by_source(found))}"
    yield f"circles between the children of a package: {sum(map(_num_circles, graphs.values()))}"


def _num_lines(modules: Mapping[str, Module], names: Iterable[str]) -> int:
    return sum(modules[name].num_lines for name in names)


def _num_circles(graph: Graph) -> int:
    """Circles that share no node: each one found is taken out before the next is looked for."""
    left, number = {node: set(targets) for node, targets in graph.items()}, 0
    while nodes := set(circle(left)):
        left = {node: targets - nodes for node, targets in left.items() if node not in nodes}
        number += 1
    return number


def _imports(node: ast.AST, place: Place) -> Iterator[tuple[str, Place]]:
    for child in ast.iter_child_nodes(node):
        inner = place
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = "function"
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            inner = "typing"
        if isinstance(child, ast.Import):
            yield from ((alias.name, place) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from ((f"{child.module}.{alias.name}", place) for alias in child.names)
        elif name := _literal_import(child):
            yield name, "literal"
        else:
            yield from _imports(child, inner)


def _literal_import(node: ast.AST) -> str:
    """The module that `import_module("name")` or `__import__("name")` imports; empty for all else."""
    if not isinstance(node, ast.Call) or not node.args:
        return ""
    function = ast.unparse(node.func).rpartition(".")[2]
    name = node.args[0]
    if function in ("import_module", "__import__") and isinstance(name, ast.Constant):
        return str(name.value)
    return ""


def _is_below(name: str, package: str) -> bool:
    return package in ("", name) or name.startswith(f"{package}.")


def _child(name: str, package: str) -> str:
    return name.removeprefix(package).lstrip(".").partition(".")[0] or "__init__"


def _folder(name: str, modules: Mapping[str, Module]) -> str:
    return name if modules[name].path.name == "__init__.py" else name.rpartition(".")[0]


def _by_source(found: Iterable[Arrow]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for arrow in found:
        graph.setdefault(arrow.source, set()).add(arrow.target)
    return graph


def _contracts(root: Path = ROOT) -> list[dict[str, Any]]:
    settings: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())
    contracts: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return contracts


def _levels(contract: Mapping[str, Any]) -> dict[str, int]:
    """The level of each module that a contract names; 0 is the top."""
    containers = [f"{container}." for container in contract.get("containers", [])] or [""]
    return {
        container + name.strip("() "): level
        for container in containers
        for level, layer in enumerate(contract["layers"])
        for name in layer.split("|")
    }


def _layer(name: str, level_of: Mapping[str, int]) -> str:
    """The module or package named by a contract that `name` is in; the innermost. Empty if it is in none."""
    while name and name not in level_of:
        name = name.rpartition(".")[0]
    return name


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_modules(ROOT)


@pytest.fixture(scope="module")
def found(modules: dict[str, Module]) -> list[Arrow]:
    return arrows(modules)


def test_modules_form_no_circle(found: list[Arrow]) -> None:
    assert len(found) > 500
    assert circle(_by_source(found)) == []


def test_children_of_a_package_form_no_circle(modules: dict[str, Module], found: list[Arrow]) -> None:
    graphs = sibling_graphs(modules, found)
    assert len(graphs) > 20
    assert {package: circle(graph) for package, graph in graphs.items() if circle(graph)} == {}


def test_no_import_goes_up_the_layers(found: list[Arrow]) -> None:
    assert upward(found, _contracts()) == []


def test_no_module_imports_another_one_by_a_literal_name(found: list[Arrow]) -> None:
    """Such an import has an arrow that no reader expects; module names in tables are data."""
    assert [arrow for arrow in found if arrow.place == "literal"] == []


def test_table_of_stages_adds_no_circle(found: list[Arrow]) -> None:
    """`build` loads the modules that the table names."""
    graph = _by_source(found)
    graph["finpile_pipelines.build"] |= {info.module for info in stages.table()}
    assert circle(graph) == []


def test_every_package_of_the_wheel_is_in_the_graph() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(PACKAGES.values()) == set(settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert set(PACKAGES) == set(settings["tool"]["importlinter"]["root_packages"])


def test_every_module_of_the_library_has_a_layer(modules: dict[str, Module]) -> None:
    """A new module without a layer would be checked by no contract."""
    levels = [_levels(contract) for contract in _contracts() if contract["type"] == "layers"]
    without = [
        name
        for name, module in modules.items()
        if name not in PACKAGES and name.startswith(("finpile.", "finpile_pipelines."))
        if not any(_layer(name, level_of) for level_of in levels)
        if module.num_lines > 1
    ]
    assert without == []


@pytest.fixture
def write_package(tmp_path: Path) -> Path:
    """A package with an import at each place: c -> inner.a -> b -> c, and d -> c."""
    (tmp_path / "p/inner").mkdir(parents=True)
    files = {
        "__init__.py": "",
        "inner/__init__.py": "",
        "inner/a.py": "def f():\n    from p.b import g\n    return g",
        "b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import c\n",
        "c.py": "import p.inner.a\nimport os\n",
        "d.py": "import importlib\nvalue = importlib.import_module('p.c').value\n",
    }
    for name, text in files.items():
        (tmp_path / "p" / name).write_text(text)
    return tmp_path


def test_imports_are_found_wherever_they_are_written(write_package: Path) -> None:
    found = arrows(read_modules(write_package, {"p": "p"}))
    assert {(arrow.source, arrow.target, arrow.place) for arrow in found} == {
        ("p.inner.a", "p.b", "function"),
        ("p.b", "p.c", "typing"),
        ("p.c", "p.inner.a", "top"),
        ("p.d", "p.c", "literal"),
    }


def test_circles_between_modules_and_between_folders_are_found(write_package: Path) -> None:
    modules = read_modules(write_package, {"p": "p"})
    found = arrows(modules)
    assert set(circle(_by_source(found))) == {"p.inner.a", "p.b", "p.c"}
    assert set(circle(sibling_graphs(modules, found)["p"])) == {"inner", "b", "c"}
    assert circle(sibling_graphs(modules, found)["p.inner"]) == []


@pytest.mark.parametrize(
    ("layers", "num_upward"),
    [
        (["p.c", "p.inner", "p.b"], 1),  # b imports c
        (["p.b", "p.inner", "p.c"], 2),
        (["p.c", "p.inner | p.b"], 2),  # inner imports its neighbour
        (["p.c"], 0),
    ],
)
def test_arrows_up_the_layers_are_counted(layers: list[str], num_upward: int, write_package: Path) -> None:
    found = arrows(read_modules(write_package, {"p": "p"}))
    assert len(upward(found, [{"type": "layers", "layers": layers}])) == num_upward


if __name__ == "__main__":
    print("\n".join(listing(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT)))  # noqa: T201
