"""A scoreboard of programs that remove duplicates: time, memory, precision and recall on the same files.

    python -m benchmarks.dedup.scoreboard DATA FOLDER --clones DIR [--sizes mix 1 10] [--kinds exact near substring]

The mix is real text (`benchmarks.common.mix`), whose near duplicates are found by brute force
(`benchmarks.dedup.truth`); corpora of 1 GB and more are generated, with planted pairs (`benchmarks.scale.corpus`).
DIR has clones of the programs in Rust (`benchmarks.dedup.contenders`), compiled on first use; environments of those in
Python are made below --venvs. FOLDER keeps the corpora, and one JSON file for each run, which is not repeated; all of
them are beside the page. A program that cannot be installed, or fails, is named with its last line, and the others
continue. Linux, two cores.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.common.measure import PeerFailedError, run_tree
from benchmarks.common.mix import Mix, read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.dedup.contenders import CLONES, CONTENDERS, VENVS, Contender, Programs, built
from benchmarks.dedup.truth import LEAST_JACCARD, Pairs, SimilarPairs, edited_pairs, shingles_of, similar_pairs
from benchmarks.dedup.venvs import Venv, pinned_version, prepare
from benchmarks.scale.run import corpus_of

MIX = "mix"
_EDIT_SIMILARITY = 0.8
_ALL_WORKERS = {"FINPILE_SMALL_BYTES": "0"}
_KINDS = tuple(dict.fromkeys(contender.kind for contender in CONTENDERS))
_Kept = npt.NDArray[np.bool_]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clones", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", default=[MIX, "1", "10"], help="the mix, or gigabytes of generated text")
    parser.add_argument("--kinds", nargs="+", choices=_KINDS, default=_KINDS)
    parser.add_argument("--venvs", type=Path, default=Path("~/.cache/finpile/peers"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    programs, problems = _programs(options.clones, options.venvs.expanduser())
    _compile_kernels()
    for size in options.sizes:
        _inputs(options.data, options.folder, size, ".zst")
        judge = (
            MixJudge.of(options.data) if size == MIX else PlantedJudge.of(options.folder / f"corpus-{float(size):g}")
        )
        for contender in CONTENDERS:
            if contender.kind in options.kinds and judge.gigabytes <= contender.most_gb:
                inputs = _inputs(options.data, options.folder, size, contender.suffix)
                _measure(contender, size, inputs, judge, programs, problems, options.folder)
    runs = [json.loads(path.read_text()) for path in options.folder.glob("board-*.json")]
    report = Report(options.results, "scoreboard", "Deduplication beside other programs", ("numba", "pyarrow"))
    for part in _sections(runs):
        report.add(part)
    ordered = sorted(runs, key=lambda run: (run["text_bytes"], run["place"]))
    report.path.with_suffix(".json").write_text(f"{json.dumps(ordered, indent=1)}\n")


def _programs(clones: Path, venvs: Path) -> tuple[Programs, dict[str, str]]:
    """The programs that are there, and why the others are not."""
    found: dict[str, Path] = {}
    problems: dict[str, str] = {}
    for name in CLONES:
        try:
            found[name] = built(clones, name)
        except (OSError, RuntimeError) as error:
            problems[name] = str(error)
    made: Mapping[str, Venv] = prepare(venvs, VENVS)
    found |= {name: venv.python for name, venv in made.items() if not venv.problem}
    problems |= {name: venv.problem for name, venv in made.items() if venv.problem}
    return Programs(Path(sys.executable), found), problems


def _compile_kernels() -> None:
    """Runs what is measured once, on a few documents: kernels are compiled on the first run of an installation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        distinct = " ".join(f"word{number}" for number in range(300))
        write_jsonl(Mix(ids=["0", "1"], texts=["Oil rose. " * 99, distinct]), [folder / "in/0.jsonl.zst"])
        programs = Programs(Path(sys.executable), {})
        for number, contender in enumerate(one for one in CONTENDERS if not one.peer):
            out = folder / str(number)
            run_tree(contender.command(programs, folder / "in", out), folder / f"{number}.log", env=_ALL_WORKERS)


def _inputs(data: Path, folder: Path, size: str, suffix: str) -> Path:
    """The folder of JSON Lines, compressed by zstandard or gzip; ids are the numbers of documents, from 0."""
    inputs = folder / f"lines-{size}{suffix}"
    if inputs.exists():
        return inputs
    partial = inputs.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    if suffix == ".gz":
        partial.mkdir()
        for path in _inputs(data, folder, size, ".zst").iterdir():
            with zstandard.open(path) as lines, gzip.open(partial / f"{path.stem}.gz", "wb", compresslevel=1) as copy:
                shutil.copyfileobj(lines, copy)
    elif size == MIX:
        mix = read_mix(data)
        numbered = Mix(ids=[str(number) for number in range(len(mix.ids))], texts=mix.texts)
        write_jsonl(numbered, [partial / f"{number:05}.jsonl.zst" for number in range(2)])
    else:
        partial.mkdir()
        first = 0
        for path in sorted((corpus_of(data, folder, float(size)) / "documents").iterdir()):
            texts = pq.read_table(path, columns=["text"])["text"].to_pylist()
            numbers = range(first, first + len(texts))
            lines = (f"{json.dumps({'id': str(n), 'text': t})}\n" for n, t in zip(numbers, texts, strict=True))
            content = zstandard.ZstdCompressor().compress("".join(lines).encode())
            (partial / f"{path.stem}.jsonl.zst").write_bytes(content)
            first += len(texts)
    partial.rename(inputs)
    return inputs


@dataclass(frozen=True, slots=True)
class MixJudge:
    """Judges what became of the mix, by all pairs of similar documents."""

    mix: Mix
    similar: SimilarPairs
    edited: Pairs
    """Pairs of an edit similarity above .8."""
    same_numbers: npt.NDArray[np.bool_]
    gigabytes: float = 0.08

    @classmethod
    def of(cls, data: Path) -> MixJudge:
        mix = read_mix(data)
        say("finding the pairs of similar documents")
        similar = similar_pairs(mix.texts, LEAST_JACCARD, shingles_of)
        return cls(mix, similar, *edited_pairs(mix.texts, similar.pairs, _EDIT_SIMILARITY))

    @property
    def num_documents(self) -> int:
        return len(self.mix.ids)

    @property
    def text_bytes(self) -> int:
        return self.mix.num_bytes

    def judge(self, kept: _Kept) -> dict[str, Any]:
        removed = np.flatnonzero(~kept)
        in_pair = np.zeros(len(kept), bool)
        in_pair[self.edited.ravel()] = True
        texts = {self.mix.texts[number] for number in np.flatnonzero(kept).tolist()}
        alike = np.array([self.mix.texts[number] in texts for number in removed.tolist()], bool)
        near_kept = np.zeros(len(kept), bool)
        for left, right in (self.similar.pairs.T, self.similar.pairs.T[::-1]):
            near_kept[left[kept[right]]] = True
        pairs = self.edited[self.same_numbers]
        left_in = int(kept[pairs].all(axis=1).sum())
        return {
            "removed": len(removed),
            "right": int((in_pair[removed] | alike).sum()),
            "alone": int((~near_kept[removed] & ~alike).sum()),
            "pairs": len(pairs),
            "found": len(pairs) - left_in,
        }


@dataclass(frozen=True, slots=True)
class PlantedJudge:
    """Judges what became of a generated corpus, by its planted pairs."""

    num_documents: int
    text_bytes: int
    truth: pa.Table

    @classmethod
    def of(cls, corpus: Path) -> PlantedJudge:
        facts = json.loads((corpus / "truth.json").read_text())
        return cls(facts["documents"], facts["text_bytes"], pq.read_table(corpus / "truth.parquet"))

    @property
    def gigabytes(self) -> float:
        return self.text_bytes / 1e9

    def judge(self, kept: _Kept) -> dict[str, Any]:
        kinds = np.array(self.truth["kind"].to_pylist())
        pairs = np.stack([self.truth[name].to_numpy() for name in ("document", "source")], axis=1)
        alike = np.zeros(len(kept), bool)
        alike[pairs[np.isin(kinds, ("exact", "near", "doubtful"))].ravel()] = True
        asked = pairs[np.isin(kinds, ("exact", "near"))]
        removed = np.flatnonzero(~kept)
        return {
            "removed": len(removed),
            "right": int(alike[removed].sum()),
            "alone": int((~alike[removed]).sum()),
            "pairs": len(asked),
            "found": int((~kept[asked]).any(axis=1).sum()),
        }


def _measure(
    contender: Contender,
    size: str,
    inputs: Path,
    judge: MixJudge | PlantedJudge,
    programs: Programs,
    problems: Mapping[str, str],
    folder: Path,
) -> None:
    place = CONTENDERS.index(contender)
    result, out = folder / f"board-{size}-{place:02}.json", folder / f"board-{size}-{place:02}"
    if result.exists():
        return
    say(f"{size}, {contender.kind}: {contender.name}")
    found: dict[str, Any] = {"size": size, "place": place, "text_bytes": judge.text_bytes}
    found |= {"name": contender.name, "kind": contender.kind, "version": _version(contender.peer)}
    try:
        if contender.peer in problems:
            raise PeerFailedError(problems[contender.peer])
        shutil.rmtree(out, ignore_errors=True)
        if contender.peer:
            out.mkdir()
        found["cost"] = asdict(run_tree(contender.command(programs, inputs, out), out.with_suffix(".log")))
        if contender.kept is not None:
            kept = np.zeros(judge.num_documents, bool)
            kept[list(contender.kept(out))] = True
            found["quality"] = judge.judge(kept)
        if contender.cut_bytes is not None:
            found["cut_bytes"] = contender.cut_bytes(out)
    except PeerFailedError as error:
        found["problem"] = str(error)
    shutil.rmtree(out, ignore_errors=True)
    result.write_text(json.dumps(found, indent=1))


def _version(peer: str) -> str:
    if peer in CLONES:
        return CLONES[peer][0]
    return pinned_version(peer) if peer else ""


_ABOUT = """\
From compressed JSON Lines to files, on two threads or processes; start, imports and compiled kernels that are loaded \
count. MiB are the highest sum over all processes, and of memory that several share one copy. One run each.

On the mix, *right* are removed documents that have a text above .8 in edit similarity over words among all others, \
*alone* those of which no document that is kept has a Jaccard similarity of .2 or more (sets of five words, exact); \
*found* are pairs of the first kind with the same numbers, of which one document is removed. Of generated corpora, \
*right* are documents of planted pairs, *alone* all others, and *found* planted copies, exact and of similarity .9.

Programs that cut texts have their bytes instead, of equal documents the copies, too: FinPile keeps one of them, with \
`--substring-keep none` as well, and deduplicate-text-datasets none."""


def _sections(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield _ABOUT
    sizes = sorted({run["size"] for run in runs}, key=lambda size: 0.0 if size == MIX else float(size))
    for size in sizes:
        mine = sorted((run for run in runs if run["size"] == size), key=lambda run: run["place"])
        title = "The mix" if size == MIX else f"{size} GB, generated"
        yield f"## {title}: {mine[0]['text_bytes'] / 1e6:,.1f} MB"
        yield table(_HEAD, list(_rows(mine)))


_HEAD = (
    "kind",
    "program",
    "version",
    "wall s",
    "CPU s",
    "time of FinPile",
    "MiB",
    "removed",
    "right",
    "alone",
    "found",
)


def _rows(runs: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    ours: dict[str, float] = {}
    for run in runs:
        head = [run["kind"], run["name"], run["version"]]
        if "problem" in run:
            yield [*head, run["problem"], *[""] * (len(_HEAD) - 4)]
            continue
        cost = run["cost"]
        base = ours.setdefault(run["kind"], cost["wall_seconds"])
        times = [f"{cost['wall_seconds']:.1f}", f"{cost['cpu_seconds']:.1f}", f"{cost['wall_seconds'] / base:.2f}x"]
        cells = [*head, *times, f"{cost['peak_mib']:,.0f}"]
        if quality := run.get("quality"):
            share = f"{quality['right'] / max(1, quality['removed']):.3f}"
            found = f"{quality['found']:,} of {quality['pairs']:,}"
            yield [*cells, f"{quality['removed']:,}", share, f"{quality['alone']:,}", found]
        else:
            cut = f"{run['cut_bytes']:,} bytes" if "cut_bytes" in run else "-"
            yield [*cells, cut, "-", "-", "-"]


if __name__ == "__main__":
    main()
