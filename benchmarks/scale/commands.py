"""Time and peak memory of the commands on a build, as the corpus grows.

    python -m benchmarks.scale.commands DATA FOLDER [--sizes 40 160 640] [--commands append remove ...] [--workers 2]
        [--checkouts DIR ...] [--results FOLDER]

The documents are those of `benchmarks.scale.corpus`, a minute apart, 98% in files of 16 MB of text and twice 1% in a
file. A size is MB of text; `260-128` are 260 MB whose files of documents have 128 MiB of text, as those of sources
above 4 GB. The build deduplicates in order of time (exact, near, substring) and has a tokenizer of 8,192 entries that
is trained on 4 MB of other text of the same kind, token shards, and Delta tables. The first append makes the index of
keys. FOLDER keeps both for later runs.

Each command is a process of its own, from start to end, on a copy of that output by hard links: the second append,
`remove` of ten documents by their ids, `verify`, `as-of` of the day in the middle, `explore`, and `vacuum` after
`remove`. `--checkouts` runs them with the code of other checkouts too, in the environment of this one, and compares
their outputs byte for byte. Kernels and modules are compiled by a run on 8 MB that is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.common.checkouts import FINPILE, environment_of
from benchmarks.common.measure import PeerFailedError, TreeCost, run_tree
from benchmarks.common.report import RESULTS, ROOT, Report, say, table
from benchmarks.common.same_output import compare
from benchmarks.scale.append import FIRST_SECOND, write_parts
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.sentences import Material, read_material

_SEED, _NEW_SHARE, _FILE_BYTES, _TRAINING_BYTES, _WARM = 1, 0.01, 16_000_000, 4_000_000, "8"
_NUM_REMOVED = 10
_COMMANDS = ("append", "remove", "verify", "as-of", "explore", "vacuum")
_DEDUP = {"order": "time", "near": "fast", "substring": {}}
_TOKENIZER = {"vocab_size": 8192, "chunk_vocab_size": 8192, "train_on": ["Training"]}
_ABOUT = (
    "Generated text with planted duplicates. Memory is the highest sum over all processes of proportional set sizes, "
    "seen every .2 s. The largest shard is the largest file of `.work` with clean documents, and the largest file that "
    "of `documents/`: one worker holds one of them, or several, at a time."
)
#: A build whose files of documents have another size: of a small source they are an eighth of this.
_BUILD = """import sys
from finpile.config import load_config
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes
config, out, workers, part_bytes = sys.argv[1:]
build(load_config(config), out, Engine(num_workers=int(workers)), sizes=Sizes(part_bytes=int(part_bytes)))
"""


@dataclass(frozen=True, slots=True)
class _Cost:
    """What a command took."""

    tree: TreeCost
    grown_bytes: int
    """By which OUT is larger after it; a file with several names counts once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """The output of a size, and what its commands took."""

    documents: int
    day: str
    """In the middle."""
    checkout: str
    """Whose code made it."""
    costs: dict[str, _Cost]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", nargs="+", default=["40", "160", "640"])
    parser.add_argument("--commands", nargs="+", choices=_COMMANDS, default=_COMMANDS)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--checkouts", type=Path, nargs="+", default=[ROOT])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    checkouts = [path.absolute() for path in options.checkouts]
    costs: dict[str, dict[tuple[str, str], _Cost]] = {}
    sizes: list[list[str]] = []
    for number, size in enumerate((_WARM, *options.sizes)):
        folder = options.folder.absolute() / size
        made = _made(folder, options.data, checkouts[0], options.workers)
        costs[size] = {(name, made.checkout): cost for name, cost in made.costs.items()}
        for checkout in checkouts:
            found = _measure(folder, checkout, made.day, options.commands, options.workers)
            costs[size] |= {(name, checkout.name): cost for name, cost in found.items()}
        _compare(folder, checkouts)
        if number:
            sizes.append([size, f"{made.documents:,}", *_largest(folder / "out")])
            _report(options, {row[0]: costs[row[0]] for row in sizes}, sizes)


def _made(folder: Path, data: Path, checkout: Path, workers: int) -> _Made:
    """The output `out` in the folder of a size, which is made if it is not there."""
    facts = folder / "made.json"
    if not facts.exists():
        shutil.rmtree(folder, ignore_errors=True)
        megabytes, _, file_mib = folder.name.partition("-")
        documents, day = _write_inputs(folder, read_material(data), int(megabytes))
        config, out = folder / "corpus.yaml", folder / "out"
        costs = {"build": _run(folder, checkout, _BUILD, config, out, workers, int(file_mib or 16) << 23)}
        shutil.move(folder / "later/1.parquet", folder / "in/z1.parquet")
        arguments = ("append", out, config, "--workers", workers)
        costs["append, makes the index"] = _run(folder, checkout, FINPILE, *arguments)
        made = _Made(documents=documents, day=day, checkout=checkout.name, costs=costs)
        facts.write_text(json.dumps(asdict(made)))
    found = json.loads(facts.read_text())
    costs = {name: _Cost(TreeCost(**cost["tree"]), cost["grown_bytes"]) for name, cost in found["costs"].items()}
    return _Made(**{**found, "costs": costs})


def _write_inputs(folder: Path, material: Material, megabytes: int) -> tuple[int, str]:
    """Writes `corpus.yaml` with its inputs, and in `later` those of appends; returns the number of documents, and the
    day in the middle."""
    say(f"generating {megabytes} MB")
    write_corpus(folder / "generated", material, megabytes * 10**6, _SEED, _FILE_BYTES)
    files = sorted((folder / "generated/documents").glob("*.parquet"))
    total = sum(pq.read_metadata(file).num_rows for file in files)
    num_new = int(total * _NEW_SHARE)
    (folder / "in").mkdir()
    (folder / "later").mkdir()
    write_parts(files, folder, [0, total - 2 * num_new, total - num_new, total])
    shutil.rmtree(folder / "generated")
    write_corpus(folder / "training", material, _TRAINING_BYTES, _SEED + 1)
    for file in (folder / "training/documents").glob("*.parquet"):
        texts = pq.read_table(file, columns=["text"])
        before = pa.array([FIRST_SECOND - 1] * texts.num_rows, pa.timestamp("s", "UTC"))
        pq.write_table(texts.append_column("timestamp", before), file)
    settings = {"format": "parquet", "clean": {"html": "never"}}
    web = {"name": "Web", "dataset": "Generated", "paths": ["in/*.parquet"], **settings}
    training = {"name": "Web", "dataset": "Training", "paths": ["training/documents/*.parquet"], **settings}
    config = {"name": "commands", "sources": [web, training], "dedup": _DEDUP, "tokenizer": _TOKENIZER}
    (folder / "corpus.yaml").write_text(yaml.safe_dump(config))
    middle = datetime.fromtimestamp(FIRST_SECOND + 60 * (total // 2), UTC)
    return total, middle.date().isoformat()


def _measure(folder: Path, checkout: Path, day: str, commands: Collection[str], workers: int) -> dict[str, _Cost]:
    """The cost of each command, by name."""
    costs: dict[str, _Cost] = {}

    def copied(command: str) -> Path:
        copy = folder / f"{command}-{checkout.name}"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder / "out", copy, copy_function=os.link)
        return copy

    def run(*arguments: object) -> None:
        if (name := str(arguments[0])) in commands:
            costs[name] = _run(folder, checkout, FINPILE, *arguments)

    placed = ("--workers", workers)
    new = folder / "in/z2.parquet"
    new.unlink(missing_ok=True)
    os.link(folder / "later/2.parquet", new)
    run("append", copied("append"), folder / "corpus.yaml", *placed)
    new.unlink()
    removed = copied("remove")
    run("remove", removed, *_some_documents(removed), "--why", "asked for", *placed)
    run("verify", copied("verify"))
    shutil.rmtree(folder / f"day-{checkout.name}", ignore_errors=True)
    run("as-of", copied("as-of"), day, "-o", folder / f"day-{checkout.name}", *placed)
    run("explore", copied("explore"))
    run("vacuum", removed, *placed)
    return costs


def _run(folder: Path, checkout: Path, code: str, *arguments: object) -> _Cost:
    """Runs a command on the output that its first path names. Raises: SystemExit if it fails."""
    out = next(Path(one) for one in arguments if isinstance(one, Path) and one.suffix != ".yaml")
    log, before = folder / "log.txt", _size(out)
    try:
        command = [sys.executable, "-P", "-c", code, *map(str, arguments)]
        tree = run_tree(command, log, env=environment_of(checkout), folder=checkout)
    except PeerFailedError as error:
        raise SystemExit(f"{' '.join(map(str, arguments))}:\n{log.read_text()}") from error
    say(f"{folder.name}, {checkout.name}, {arguments[0]}: {tree.wall_seconds:.1f} s, {tree.peak_mib:.0f} MiB")
    return _Cost(tree, _size(out) - before)


def _size(out: Path) -> int:
    """Bytes of all files, those with several names once."""
    found = (path.stat() for path in out.rglob("*") if path.is_file())
    return sum({one.st_ino: one.st_size for one in found}.values())


def _some_documents(out: Path) -> list[str]:
    """Options that name ten documents of the build, evenly from its files."""
    files = sorted((out / "documents/dataset=Generated").rglob("*.parquet"))
    chosen = [files[number * len(files) // _NUM_REMOVED] for number in range(_NUM_REMOVED)]
    names = {pq.read_table(file, columns=["id"])["id"][at].as_py() for at, file in enumerate(chosen)}
    return [option for name in sorted(names) for option in ("--document", name)]


def _largest(out: Path) -> list[str]:
    """MB of the largest clean shard, and of the largest file of documents."""
    shards, files = (out / ".work/clean").rglob("documents/*.arrow"), (out / "documents").rglob("*.parquet")
    return [f"{max(path.stat().st_size for path in paths) / 1e6:.1f}" for paths in (shards, files)]


def _compare(folder: Path, checkouts: Sequence[Path]) -> None:
    """Deletes the outputs of commands. Raises: SystemExit if those of checkouts differ."""
    for kind in ("append", "remove", "day"):
        outs = [folder / f"{kind}-{checkout.name}" for checkout in checkouts]
        for other in outs[1:] if all(map(Path.exists, outs)) else ():
            if differences := compare(outs[0], other).differences:
                raise SystemExit("\n".join(differences))
    for kind in (*_COMMANDS, "day"):
        for checkout in checkouts:
            shutil.rmtree(folder / f"{kind}-{checkout.name}", ignore_errors=True)


def _report(
    options: argparse.Namespace,
    costs: dict[str, dict[tuple[str, str], _Cost]],
    sizes: Sequence[Sequence[str]],
) -> None:
    title = "Time and memory of commands as a corpus grows"
    report = Report(options.results, "memory_of_commands", title, ("apache-beam", "pyarrow", "numba"))
    report.add(f"{_ABOUT} {options.workers} workers. Load average at the end: {os.getloadavg()[0]:.1f}.")
    report.add(table(("text MB", "documents", "largest shard MB", "largest file MB"), sizes))
    for head, digits, value in (
        ("Peak MiB", 0, lambda cost: cost.tree.peak_mib),
        ("MB by which OUT grows", 1, lambda cost: cost.grown_bytes / 1e6),
        ("CPU s", 1, lambda cost: cost.tree.cpu_seconds),
        ("Wall s", 1, lambda cost: cost.tree.wall_seconds),
    ):
        rows = []
        for name, checkout in dict.fromkeys(key for found in costs.values() for key in found):
            values = [value(found[name, checkout]) if (name, checkout) in found else None for found in costs.values()]
            rows.append([name, checkout, *("" if one is None else f"{one:,.{digits}f}" for one in values)])
            last, first = values[-1], values[0]
            rows[-1].append(f"{last / first:.1f}" if last and first else "")
        report.add(f"## {head}", table(("command", "checkout", *costs, "last / first"), rows))


if __name__ == "__main__":
    main()
