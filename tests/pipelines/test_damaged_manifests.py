"""A manifest or a list of a snapshot that is damaged or altered is named by every command that reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile

from finpile import open_documents
from finpile.errors import IntegrityError
from finpile.output.manifest import CHECKSUM, checksum_of
from finpile.verify import verify

#: What can happen to a file of JSON.
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "a list": lambda data: b"[]",
    "null": lambda data: b"null",
    "without stages": lambda data: b'{"version": 2}',
    "altered": lambda data: data.replace(b'"documents": ', b'"documents": 1', 1),
    "of another snapshot": lambda data: _renumbered(json.loads(data)),
}
COMMANDS = {
    "verify": "verify {out}",
    "trace": "trace {out} --document {id}",
    "vacuum": "vacuum {out}",
    "vacuum, dry run": "vacuum {out} --dry-run",
    "report": "report {out}",
    "export tokens": "export tokens {out} -o {out}-exported --format npy",
}


def _renumbered(manifest: dict[str, object]) -> bytes:
    changed = {**manifest, "snapshot": {"number": 7, "rewritten": {}, "added": [], "tokens": None}}
    return json.dumps({**changed, CHECKSUM: checksum_of(changed)}).encode()


@pytest.fixture
def out(snapshots_build: Path, tmp_path: Path) -> Path:
    """A build with snapshots 0, 1 and 2."""
    return Path(shutil.copytree(snapshots_build / "out", tmp_path / "out"))


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damaged_manifest_of_a_snapshot_is_named(
    snapshots_build: Path,
    out: Path,
    damage: Callable[[bytes], bytes],
) -> None:
    path = out / "snapshots" / "000000.json"
    data = path.read_bytes()
    path.write_bytes(damage(data))
    assert path.read_bytes() != data
    identifier = (snapshots_build / "traced").read_text()
    for name, line in COMMANDS.items():
        result = CliRunner().invoke(finpile, line.format(out=out, id=identifier).split())
        said = f"{result.output} {result.exception}"
        assert "snapshots/000000.json is damaged" in said or "snapshots/000000.json is altered" in said, (name, said)
        assert result.exit_code == 1
    with pytest.raises(IntegrityError, match=r"snapshots/000000.json is (damaged|altered).*restore it"):
        open_documents(str(out), 0)
    assert open_documents(str(out)).count_rows() == open_documents(str(out), 2).count_rows()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_every_altered_manifest_is_a_failed_check(out: Path, number: int) -> None:
    path = out / "snapshots" / f"{number:06d}.json"
    manifest = json.loads(path.read_text())
    manifest["python"] = "3.0"
    if number == 2:  # with a checksum of its own: it differs from manifest.json alone
        manifest[CHECKSUM] = checksum_of(manifest)
    path.write_text(json.dumps(manifest))
    (check,) = verify(str(out))
    assert not check.ok and check.name == "every snapshot has its manifest, unaltered"
    assert check.detail.startswith(f"snapshots/{number:06d}.json")


def test_missing_copy_of_the_current_manifest_is_a_failed_check(out: Path) -> None:
    (out / "snapshots" / "000002.json").unlink()
    (check,) = verify(str(out))
    assert not check.ok and check.detail == "snapshots/000002.json is missing"


@pytest.mark.parametrize("name", ["000002-copies.parquet", "000002-takedowns.parquet"])
@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
def test_damaged_lists_are_named(out: Path, name: str, damage: Callable[[Path], object]) -> None:
    damage(out / "snapshots" / name)
    assert [check.ok for check in verify(str(out))] == [True, False]
    commands = {"000002-copies.parquet": "show {out} {id}", "000002-takedowns.parquet": "vacuum {out}"}
    identifier = open_documents(str(out)).to_table(columns=["id"])["id"][0].as_py()
    result = CliRunner().invoke(finpile, commands[name].format(out=out, id=identifier).split())
    assert isinstance(result.exception, IntegrityError) and name in str(result.exception)
