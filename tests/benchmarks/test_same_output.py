"""The comparison of two checkouts' outputs: which differences it reports, and which it leaves out."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def same_output(modules: None) -> ModuleType:
    return import_module("benchmarks.common.same_output")


def stage(**changes: Any) -> dict[str, Any]:
    files = [{"path": "documents/a.parquet", "checksum": "1"}]
    return {"stage": "clean", "wall_seconds": 1.0, "counts": {"documents": 3}, "files": files, **changes}


def write_out(folder: Path, manifest: dict[str, Any], **contents: str) -> Path:
    (folder / "documents").mkdir(parents=True)
    (folder / ".work").mkdir()
    (folder / ".work/scratch").write_text(str(folder))
    for name, text in {"a": "text", **contents}.items():
        (folder / "documents" / name).write_text(text)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"wall_seconds": 9.0}, []),
        ({"counts": {"documents": 4}}, ["stages[0].counts.documents is 3 and 4"]),
        ({"counts": {}}, ["stages[0].counts.documents is only in the first"]),
        (
            {"files": [{"path": "documents/a.parquet", "checksum": "3"}]},
            ['stages[0].files[0].checksum is "1" and "3"'],
        ),
        ({"files": []}, ["stages[0].files has 1 and 0 entries"]),
    ],
)
def test_manifests_are_equal_up_to_times(changes: dict[str, Any], lines: list[str], same_output: ModuleType) -> None:
    first = {"finpile": "1", "config": {"root": "/a", "name": "x", "contamination": None}, "stages": [stage()]}
    second = {
        "finpile": "2",
        "config": {"root": "/b", "name": "x", "contamination": None},
        "stages": [stage(**changes)],
    }
    assert list(same_output.manifest_differences(first, second)) == lines


def test_outputs_are_equal_if_their_published_files_are(tmp_path: Path, same_output: ModuleType) -> None:
    outs = [write_out(tmp_path / name, {"stages": [stage()]}) for name in "ab"]
    found = same_output.compare(*outs)
    assert (found.num_files, found.differences) == (2, ())
    assert same_output.main(["--outputs", *map(str, outs)]) == 0


def test_each_file_that_differs_is_listed(
    tmp_path: Path, same_output: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    first = write_out(tmp_path / "first", {"stages": []}, b="one", c="one", d="one")
    second = write_out(tmp_path / "second", {"stages": []}, b="two", c="three", e="one")
    assert same_output.main(["--outputs", str(first), str(second)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "outputs: outputs differ (6 files, 27 bytes)",
        f"  only in {first}: documents/d",
        f"  only in {second}: documents/e",
        "  different bytes: documents/b",
        "  different size: documents/c (3 and 5 bytes)",
    ]


def checkout(folder: Path, text: str) -> Path:
    """A checkout whose build writes one document."""
    program = folder / ".venv/bin/finpile"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "out = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        f"out.mkdir(parents=True); (out / 'document').write_text({text!r})\n"
        "(out / 'manifest.json').write_text('{}')\n"
        f"sys.exit('no such config' if {text!r} == 'fails' else 0)\n"
    )
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("text", "status"), [("one", 0), ("two", 1), ("fails", 2)])
def test_each_checkout_builds_with_its_own_program(
    tmp_path: Path, text: str, status: int, same_output: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = checkout(tmp_path / "first", "one"), checkout(tmp_path / "second", text)
    assert same_output.main([str(first), str(second), "--folder", str(tmp_path / "builds")]) == status
    printed = capsys.readouterr()
    assert str(first / "pipelines/configs/sample.yaml") in printed.err
    assert ("no such config" in printed.err) == (status == 2)
    assert ("different bytes: document" in printed.out) == (status == 1)


def test_an_output_without_a_manifest_is_an_error(tmp_path: Path, same_output: ModuleType) -> None:
    assert same_output.main(["--outputs", str(tmp_path), str(tmp_path)]) == 2
