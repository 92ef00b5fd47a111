"""The programs of the scoreboard: how each is run on two cores, and which documents it keeps.

Inputs are folders of compressed JSON Lines with `id`, a number, and `text`. Programs in Rust are built with cargo in
clones that the caller has (`CLONES`); those in Python have an environment each (`benchmarks.dedup.venvs`).
"""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from benchmarks.common.measure import last_line
from benchmarks.common.report import say
from benchmarks.dedup.venvs import SCRIPTS

WORKERS = 2
#: Of each program in Rust the commit, and its binary below `target/release`.
CLONES = {
    "duplodocus": ("02cf2f7", "duplodocus"),
    "bff": ("c89bb5e", "bff"),
    "deduplicate-text-datasets": ("4e9888a", "dedup_dataset"),
}
VENVS = ("datatrove", "text-dedup", "py-data-juicer", "dolma")
_ID = re.compile(rb'"id": ?"?(\d+)')

Command = list[str | Path]


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs are; those that could not be installed are absent."""

    python: Path
    """Ours."""
    peers: Mapping[str, Path]
    """A binary in Rust, or the interpreter of an environment."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """One program with one setting."""

    name: str
    kind: str
    """exact, near or substring."""
    command: Callable[[Programs, Path, Path], Command]
    """From the folder of inputs and the folder to write."""
    kept: Callable[[Path], Iterator[int]] | None = None
    """The numbers of the documents that it keeps; None if it cuts texts."""
    cut_bytes: Callable[[Path], int] | None = None
    """The bytes that it cuts."""
    peer: str = ""
    """The program; ours if empty."""
    suffix: str = ".zst"
    """Of its inputs: how they are compressed."""
    most_gb: float = 1e9
    """It is not run on more text: what it takes would be hours, or more memory than the machine has."""


def built(clones: Path, name: str) -> Path:
    """The binary of a clone, compiled if it is not there.

    Raises: OSError without a clone or without cargo; RuntimeError if it does not compile.
    """
    commit, binary = CLONES[name]
    folder = clones / name
    found = folder / "target/release" / binary
    if not found.exists():
        say(f"compiling {name}, expected at {commit}")
        done = subprocess.run(["cargo", "build", "--release"], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(last_line(done.stdout + done.stderr))
    return found


def finpile_command(*options: str) -> Callable[[Programs, Path, Path], Command]:
    """`finpile dedup` with these options."""

    def command(programs: Programs, inputs: Path, out: Path) -> Command:
        run: Command = [programs.python, "-m", "finpile_cli", "dedup", inputs, "-o", out, "--workers", str(WORKERS)]
        return [*run, *options]

    return command


def _ours_as(ngram: int, bands: int, rows: int) -> Callable[[Programs, Path, Path], Command]:
    """FinPile with the MinHash of another program, by a corpus file; candidates are compared all the same."""

    def command(programs: Programs, inputs: Path, out: Path) -> Command:
        near = {"ngram": ngram, "bands": bands, "rows": rows}
        source = {"name": "Web", "dataset": "A", "format": "jsonl", "paths": ["*.zst"], "clean": {"html": "never"}}
        config = out.with_suffix(".yaml")
        config.write_text(json.dumps({"name": "a", "root": str(inputs), "sources": [source], "dedup": {"near": near}}))
        run: Command = [programs.python, "-m", "finpile_cli", "build", config, "-o", out, "--until", "split"]
        return [*run, "--no-delta", "--workers", str(WORKERS)]

    return command


def _duplodocus(*options: str) -> Callable[[Programs, Path, Path], Command]:
    def command(programs: Programs, inputs: Path, out: Path) -> Command:
        run: Command = [programs.peers["duplodocus"], "--threads", str(WORKERS), options[0]]
        storage: Command = [] if options[0].startswith("exact") else ["--storage-dir", out / "storage"]
        return [*run, "--input-dir", inputs, *storage, "--output-dir", out / "kept", *options[1:]]

    return command


def _bff(programs: Programs, inputs: Path, out: Path) -> Command:
    (out / "kept").mkdir()
    grams = sum(file.stat().st_size for file in inputs.iterdir())  # about as many words as compressed bytes, at most
    options: Command = ["--bloom-filter-file", out / "filter.bff", "--bloom-filter-size", str(4 * grams)]
    options += ["--expected-ngram-count", str(grams), "--output-directory", out / "kept", "--threads", str(WORKERS)]
    return [programs.peers["bff"], *options, *sorted(inputs.iterdir())]


def _script(script: str, peer: str) -> Callable[[Programs, Path, Path], Command]:
    def command(programs: Programs, inputs: Path, out: Path) -> Command:
        return [programs.peers[peer], SCRIPTS / script, inputs, out, str(WORKERS)]

    return command


def _substring_script(programs: Programs, inputs: Path, out: Path) -> Command:
    binary = programs.peers["deduplicate-text-datasets"]
    return [programs.python, SCRIPTS / "deduplicate_text_datasets.py", binary, inputs, out, str(WORKERS)]


# --- what was kept ---------------------------------------------------------------------------------------------------


def _kept_by_us(out: Path) -> Iterator[int]:
    for file in sorted((out / "documents").rglob("*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(columns=["meta"]):
            found = pc.extract_regex(batch["meta"], r'"id": ?"?(?P<id>\d+)').field("id")
            yield from map(int, found.to_pylist())


def _kept_lines(folder: str) -> Callable[[Path], Iterator[int]]:
    """Of JSON Lines in a folder of the output; a line whose text is empty is not kept."""

    def kept(out: Path) -> Iterator[int]:
        for file in sorted(path for path in (out / folder).rglob("*") if ".json" in path.name):
            with _opened(file) as lines:
                for line in lines:
                    found = _ID.search(line)
                    if found and b'"text":""' not in line and b'"text": ""' not in line:
                        yield int(found[1])

    return kept


def _kept_arrow(out: Path) -> Iterator[int]:
    """Of a saved data set: Arrow streams."""
    for file in sorted((out / "kept").glob("*.arrow")):
        with pa.ipc.open_stream(file) as stream:
            for batch in stream:
                yield from map(int, batch["id"].to_pylist())


def _opened(file: Path) -> io.BufferedIOBase:
    if file.suffix == ".zst":
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file.open("rb"), read_across_frames=True))
    return io.BufferedReader(gzip.open(file)) if file.suffix == ".gz" else file.open("rb")  # type: ignore[arg-type]


def _cut_by_us(out: Path) -> int:
    """Of equal documents the copies, too: other programs cut their text."""
    stages = {stage["stage"]: stage["counts"] for stage in json.loads((out / "manifest.json").read_text())["stages"]}
    read, left = stages["clean"]["sources"], stages["split"]["documents"]
    return sum(row["text_bytes"] for row in read) - sum(row["text_bytes"] for row in left)


def _cut_as_written(out: Path) -> int:
    return int((out / "cut_bytes").read_text())


#: Words of Unicode: the name of duplodocus's default tokenizer is none that it knows.
_WORDS = ("--ngram-size", "5", "--tokenizer", "uniseg", "--remove-duplicates", "true")
_SUBSTRING = ("--near", "none", "--substring-min-length", "200")
_AS_LEE = (*_SUBSTRING, "--substring-keep", "none", "--substring-snap", "none")

#: By kind, ours first. Settings of others are those of their documentation.
CONTENDERS: Sequence[Contender] = (
    Contender(name="FinPile", kind="exact", command=finpile_command("--near", "none"), kept=_kept_by_us),
    Contender(
        name="duplodocus",
        kind="exact",
        peer="duplodocus",
        command=_duplodocus("exact-dedup-memory"),
        kept=_kept_lines("kept"),
    ),
    Contender(name="FinPile", kind="near", command=finpile_command(), kept=_kept_by_us),
    Contender(
        name="FinPile, 5 words, 26 x 11", kind="near", command=_ours_as(5, 26, 11), kept=_kept_by_us, most_gb=1.5
    ),
    Contender(
        name="duplodocus, 26 x 11 (its example)",
        kind="near",
        peer="duplodocus",
        command=_duplodocus("minhash-memory", "--num-buckets", "26", "--bucket-size", "11", *_WORDS),
        kept=_kept_lines("kept"),
        most_gb=1.5,
    ),
    Contender(
        name="duplodocus, 20 x 5 (its quick start)",
        kind="near",
        peer="duplodocus",
        command=_duplodocus("minhash-memory", "--num-buckets", "20", "--bucket-size", "5", *_WORDS),
        kept=_kept_lines("kept"),
    ),
    Contender(name="bff, paragraphs", kind="near", peer="bff", command=_bff, suffix=".gz", most_gb=1.5),
    Contender(
        name="dolma, paragraphs of 13 words",
        kind="near",
        peer="dolma",
        command=_script("dolma_dedupe.py", "dolma"),
        most_gb=1.5,
    ),
    Contender(
        name="Data-Juicer",
        kind="near",
        peer="py-data-juicer",
        command=_script("data_juicer_minhash.py", "py-data-juicer"),
        kept=_kept_lines("kept"),
        most_gb=1.5,
    ),
    Contender(
        name="text-dedup",
        kind="near",
        peer="text-dedup",
        command=lambda programs, inputs, out: [
            programs.peers["text-dedup"],
            SCRIPTS / "text_dedup_minhash.py",
            out,
            str(WORKERS),
            f"{inputs}/*.jsonl.zst",
        ],
        kept=_kept_arrow,
        most_gb=1.5,
    ),
    Contender(
        name="datatrove",
        kind="near",
        peer="datatrove",
        command=_script("datatrove_minhash.py", "datatrove"),
        kept=_kept_lines("kept"),
        most_gb=1.5,
    ),
    Contender(name="FinPile", kind="substring", command=finpile_command(*_AS_LEE), cut_bytes=_cut_by_us),
    Contender(
        name="FinPile, first copies stay, whole words",
        kind="substring",
        command=finpile_command(*_SUBSTRING),
        cut_bytes=_cut_by_us,
        most_gb=1.5,
    ),
    Contender(
        name="deduplicate-text-datasets",
        kind="substring",
        peer="deduplicate-text-datasets",
        command=_substring_script,
        cut_bytes=_cut_as_written,
        most_gb=1.5,
    ),
)
