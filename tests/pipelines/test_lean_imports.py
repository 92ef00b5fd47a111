"""Commands on the local runner, and those that read a build, do not import packages that only Beam's connectors,
pyarrow or Numba would look for, nor algorithms and formats that are off, and Arrow allocates from the C library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

OPTIONAL = ("pandas", "pymongo", "bson", "cffi", "scipy", "apache_beam.io.gcp.bigquery", "google.cloud.storage")
#: Modules of algorithms and formats that the run does not ask for, and what only they import.
OTHER_PLANS = (
    "finpile.sources.formats.wikipedia",
    "finpile.dedup.contamination.plan",
    "finpile.dedup.overlap.plan",
    "finpile.dedup.substring.plan",
    "finpile.dedup.templates.plan",
    "finpile_tokenizer.tokenizer",
)

_PROGRAM = """
import atexit, sys
names = sys.argv.pop(1).split(",")
def found():
    import pyarrow
    print([name for name in names if name in sys.modules], pyarrow.default_memory_pool().backend_name)
atexit.register(found)
from finpile_cli.main import main
main()
"""
_IMPORTED_LATER = """
import sys
from finpile_pipelines.runner.lean_imports import import_lean
import_lean()
import pandas, pyarrow
assert pyarrow.table({"a": [1, 2]}).to_pandas()["a"].tolist() == [1, 2]
assert pyarrow.table(pandas.DataFrame({"a": [1.0, None]}))["a"].null_count == 1
"""


_FIRST_CALL = """
import sys
from finpile_pipelines.runner.lean_imports import import_lean
import_lean()
import pyarrow
from finpile.dedup import find_near_duplicates
from finpile.dedup.near.minhash import FAST, band_keys
def imported():
    return [name for name in ("numba", "scipy", "cffi") if name in sys.modules]
before = imported()
assert band_keys(pyarrow.array(["gold rose"]), FAST).shape[0] == 1
print(before, imported())
"""


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_dedup_imports_no_optional_package_and_no_other_plan_in_any_of_its_steps(tmp_path: Path) -> None:
    documents = [{"text": f"Bank number {number % 30} lent gold to port {number % 30}."} for number in range(40)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    names = ",".join([*OPTIONAL, *OTHER_PLANS])
    printed = run("-c", _PROGRAM, names, "dedup", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out")
    assert printed.splitlines()[-1] == "[] system"


@pytest.mark.parametrize("command", ["verify", "ls"])
def test_commands_that_read_a_build_import_no_optional_package(sample_build: Path, command: str) -> None:
    printed = run("-c", _PROGRAM, ",".join(OPTIONAL), command, str(sample_build), "--json")
    assert printed.splitlines()[-1] == "[] system"


def test_exact_duplicates_alone_import_no_kernels(tmp_path: Path) -> None:
    documents = [{"text": f"Bank number {number % 30} lent gold."} for number in range(40)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    command = ("dedup", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out", "--near", "none")
    assert run("-c", _PROGRAM, "numba,resiliparse,rapidfuzz", *command).splitlines()[-1] == "[] system"


def test_a_check_of_a_build_without_tokens_calls_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "Gold rose."}\n{"text": "Gold rose."}\n')
    run("-m", "finpile_cli", "dedup", f"{tmp_path}/in.jsonl", "-o", f"{tmp_path}/out", "--near", "none")
    assert run("-c", _PROGRAM, "numba,resiliparse", "verify", f"{tmp_path}/out").splitlines()[-1].startswith("[] ")


def test_numba_is_imported_by_the_first_call_of_a_kernel_without_optional_packages() -> None:
    assert run("-c", _FIRST_CALL) == "[] ['numba']\n"


def test_data_frames_can_be_converted_after_lean_imports() -> None:
    run("-c", _IMPORTED_LATER)
