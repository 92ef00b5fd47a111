"""Builds the same corpora with two checkouts and compares every published file byte for byte.

    python benchmarks/common/same_output.py A B [--root DATA] [--folder FOLDER] [--only NAME ...] [--config FILE]
    python benchmarks/common/same_output.py --outputs OUT_A OUT_B

A and B are checkouts, each with an environment of its own (A/.venv/bin/finpile). The sample corpus is built with both;
with `--root DATA` also pipelines/configs/open-finance.yaml over the archives in DATA. `--config FILE` builds FILE with
both instead of each checkout's own configuration. Builds stay in FOLDER for inspection, else in a temporary folder.

All files of OUT outside `.work` must be equal. Manifests, those of snapshots too, must be equal except for times,
memory, versions, the paths of the two checkouts, and fingerprints of settings.

Exit status: 0 if all are equal, 1 if anything differs, 2 if a build fails. Needs the standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
#: Those of OUT and of its snapshots.
_MANIFESTS = re.compile(r"manifest\.json|snapshots/\d+\.json")
WORK = ".work"

#: Entries of manifest.json that depend on the run, the machine, the version or the wording of settings.
NOT_COMPARED = frozenset(
    {
        "checksum",  # of the manifest itself
        "config.root",
        "config_hash",
        "finpile",
        "packages",
        "python",
        "snapshot.parent",  # the checksum of another manifest
        "version",
        "stages.cpu_seconds",
        "stages.fingerprint",
        "stages.peak_memory_bytes",
        "stages.wall_seconds",
    }
)
#: Differences listed for one pair of builds before the rest is only counted.
_MAX_LISTED = 40
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Differences between two outputs."""

    num_files: int
    """Files of either output, the manifest included."""
    num_bytes: int
    """Size of the first output's files."""
    differences: tuple[str, ...]
    """One line for each file or manifest entry that differs."""


class BuildFailedError(Exception):
    """`finpile build` ended with an error."""


def compare(first: Path, second: Path) -> Comparison:
    """Compares two outputs file by file.

    Raises:
        FileNotFoundError: one of them has no manifest, so it is not a finished build.
    """
    for out in (first, second):
        if not (out / MANIFEST).is_file():
            raise FileNotFoundError(f"{out} is not a finished build: it has no {MANIFEST}")
    sizes, others = _files(first), _files(second)
    differences = [f"only in {first}: {name}" for name in sorted(sizes.keys() - others.keys())]
    differences += [f"only in {second}: {name}" for name in sorted(others.keys() - sizes.keys())]
    for name in sorted(sizes.keys() & others.keys()):
        if _MANIFESTS.fullmatch(name):
            manifests = [json.loads((out / name).read_text()) for out in (first, second)]
            differences += [f"{name}: {line}" for line in manifest_differences(*manifests)]
        elif sizes[name] != others[name]:
            differences.append(f"different size: {name} ({sizes[name]:,} and {others[name]:,} bytes)")
        elif _digest(first / name) != _digest(second / name):
            differences.append(f"different bytes: {name}")
    return Comparison(
        num_files=len(sizes.keys() | others.keys()), num_bytes=sum(sizes.values()), differences=tuple(differences)
    )


def manifest_differences(first: Any, second: Any, place: str = "") -> Iterator[str]:
    """Entries that differ between two manifests, without those of `NOT_COMPARED`."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted(first.keys() | second.keys()):
            inner = f"{place}.{key}".lstrip(".")
            if key not in first or key not in second:
                yield f"{inner} is only in the {'second' if key not in first else 'first'}"
            elif re.sub(r"\[\d+\]", "", inner) not in NOT_COMPARED:
                yield from manifest_differences(first[key], second[key], inner)
    elif isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            yield f"{place} has {len(first)} and {len(second)} entries"
        for number, (one, other) in enumerate(zip(first, second, strict=False)):
            yield from manifest_differences(one, other, f"{place}[{number}]")
    elif first != second:
        yield f"{place} is {_shown(first)} and {_shown(second)}"


def build(checkout: Path, config: Path, out: Path, root: Path | None) -> None:
    """Builds `config` with a checkout's own environment.

    Raises:
        BuildFailedError: with the last lines that the build printed.
    """
    command: list[str | Path] = [checkout / ".venv/bin/finpile", "build", config, "-o", out, "--replace"]
    if root is not None:
        command += ["--root", root]
    print(" ".join(map(str, command)), file=sys.stderr, flush=True)
    try:
        done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildFailedError(str(error)) from error
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise BuildFailedError(f"exit status {done.returncode}:\n{last}")


def report(name: str, comparison: Comparison) -> str:
    """The lines that are printed for one pair of builds."""
    state = "differ" if comparison.differences else "are equal"
    lines = [f"{name}: outputs {state} ({comparison.num_files:,} files, {comparison.num_bytes:,} bytes)"]
    lines += [f"  {line}" for line in comparison.differences[:_MAX_LISTED]]
    if len(comparison.differences) > _MAX_LISTED:
        lines.append(f"  and {len(comparison.differences) - _MAX_LISTED:,} more")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _files(out: Path) -> dict[str, int]:
    """Sizes of the files outside `.work`, in bytes, by path below `out`."""
    sizes = {}
    for folder, folders, names in os.walk(out):
        if Path(folder) == out and WORK in folders:
            folders.remove(WORK)
        for name in names:
            path = Path(folder, name)
            sizes[path.relative_to(out).as_posix()] = path.stat().st_size
    return sizes


def _digest(path: Path) -> bytes:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.digest()


def _compare_checkouts(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Comparison]]:
    for name, root in (("sample", None), ("open-finance", arguments.root)):
        if (name == "open-finance" and root is None) or (arguments.only and name not in arguments.only):
            continue
        outs = []
        for label, checkout in zip("ab", arguments.checkouts, strict=True):
            outs.append(folder / f"{name}-{label}")
            build(checkout, arguments.config or checkout / f"pipelines/configs/{name}.yaml", outs[-1], root)
        yield name, compare(*outs)


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=lambda text: Path(text).resolve(), metavar="CHECKOUT")
    parser.add_argument("--outputs", nargs=2, type=Path, metavar="OUT", help="compare finished builds, build nothing")
    parser.add_argument("--root", type=lambda text: Path(text).resolve(), metavar="DATA", help="build open-finance too")
    parser.add_argument("--folder", type=lambda text: Path(text).resolve(), help="where builds are kept")
    parser.add_argument("--only", nargs="+", choices=["sample", "open-finance"], help="build these only")
    parser.add_argument("--config", type=lambda text: Path(text).resolve(), help="build this with both checkouts")
    arguments = parser.parse_args(given)
    if len(arguments.checkouts) != (0 if arguments.outputs else 2):
        parser.error("expected two checkouts, or --outputs and two finished builds")
    return arguments


def main(given: Sequence[str] | None = None) -> int:
    arguments = _arguments(given)
    equal = True
    with ExitStack() as stack:
        try:
            if arguments.outputs:
                pairs: Iterator[tuple[str, Comparison]] = iter([("outputs", compare(*arguments.outputs))])
            else:
                folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
                pairs = _compare_checkouts(arguments, folder)
            for name, comparison in pairs:
                print(report(name, comparison), flush=True)
                equal = equal and not comparison.differences
        except (BuildFailedError, FileNotFoundError) as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
