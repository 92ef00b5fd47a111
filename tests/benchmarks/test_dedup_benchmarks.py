"""The benchmarks of deduplication: the corpus, the truth, the peers' results, and how commands are measured."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
Tables = Callable[[str], dict[str, list[list[str]]]]
Text = Callable[[int], str]
WriteArchive = Callable[[Path, Mapping[str, bytes]], None]


def test_a_part_of_deduplication_that_is_not_there_is_refused_by_name(tmp_path: Path, benchmarks: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.dedup", str(tmp_path), "minhas"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no part is called minhas: expected minhash, substrings, growth" in done.stderr


def test_the_mix_is_bodies_speeches_tex_and_logs(tmp_path: Path, modules: None, write_archive: WriteArchive) -> None:
    story = b"<REUTERS ID=%d><TITLE>no</TITLE><BODY>%b</BODY></REUTERS>"
    stories = story % (1, b"A &lt;IBM> &amp;lt; \xff") + b"<REUTERS ID=2></REUTERS>" + story % (3, b"B")
    write_archive(tmp_path / "fin_news/reuters21578.tar.gz", {"a.sgm": stories, "lewis.dtd": b"<BODY>no</BODY>"})
    write_archive(tmp_path / "fin_centralbank/fed_speeches_txt.tar.zst", {"1.txt": b" \n", "2.txt": b"speech"})
    write_archive(tmp_path / "arxiv/stacks_project_tex.tar.zst", {"my.bib": b"no", "a.tex": b"lemma"})
    write_archive(tmp_path / "ubuntu_irc/ubuntu_irc_raw.tar.zst", {"1.raw.txt": b"hi"})
    mix = import_module("benchmarks.common.mix").read_mix(tmp_path)
    assert dict(zip(mix.ids, mix.texts, strict=True)) == {
        "News-00000": "A <IBM> &lt; \ufffd",
        "News-00001": "B",
        "Speeches-00000": "speech",
        "TeX-00000": "lemma",
        "IRC-00000": "hi",
    }
    assert mix.num_bytes == sum(len(text.encode()) for text in mix.texts)


def test_documents_of_a_mix_go_to_files_in_turn(tmp_path: Path, modules: None) -> None:
    corpus = import_module("benchmarks.common.mix")
    corpus.write_jsonl(corpus.Mix(ids=list("abcde"), texts=list("vwxyz")), [tmp_path / "0.jsonl", tmp_path / "1.jsonl"])
    lines = [(tmp_path / f"{number}.jsonl").read_text().splitlines() for number in range(2)]
    assert [[json.loads(line)["id"] for line in each] for each in lines] == [list("ace"), list("bd")]


def test_similar_pairs_are_those_of_brute_force(modules: None, text: Text) -> None:
    truth = import_module("benchmarks.dedup.truth")
    texts = [_edited(number, text) for number in range(120)]
    found = truth.similar_pairs(texts, 0.3, truth.shingles_of)
    every = {
        (i, j): alike
        for j in range(len(texts))
        for i in range(j)
        if (alike := truth.jaccard(texts[i], texts[j])) >= 0.3
    }
    assert dict(zip(map(tuple, found.pairs.tolist()), found.jaccard.tolist(), strict=True)) == every
    assert 20 < len(every) < 120 * 119 / 2


@pytest.mark.parametrize("texts", [["aaaaaaa", "aaa"], ["abcabcab", "cabca", ""], ["xabcdy", "zabcd", "abcd", "abc"]])
def test_the_suffix_arrays_bytes_are_those_of_the_definition(
    texts: list[str], modules: None, monkeypatch: pytest.MonkeyPatch, benchmarks: Path
) -> None:
    monkeypatch.syspath_prepend(str(benchmarks / "dedup/peers"))
    monkeypatch.setitem(sys.modules, "pydivsufsort", _slow_divsufsort())
    ours, theirs = import_module("finpile_windows"), import_module("divsufsort_windows")
    length, seen, expected, begin = 3, set(), set(), 0
    for text in texts:
        for at in range(len(text) - length + 1):
            if text[at : at + length] in seen:
                expected |= set(range(begin + at, begin + at + length))
            seen.add(text[at : at + length])
        begin += len(text)
    joined = np.frombuffer(
        bytearray("\N{PILCROW SIGN}".join(texts).encode("latin-1").replace(b"\xb6", b"\xff")), np.uint8
    )
    positions = np.cumsum(joined != 0xFF)[theirs.later_copies(joined, length)] - 1
    array = pa.array(texts, pa.large_string())
    assert positions.tolist() == sorted(expected)
    assert ours.positions(
        array, ours.find_repeats(array, ours.SubstringConfig(min_length=length, snap="none"))
    ).tolist() == sorted(expected)


def test_a_command_is_measured_with_its_children_and_its_last_words_are_kept(tmp_path: Path, modules: None) -> None:
    measure, log = import_module("benchmarks.common.measure"), tmp_path / "log.txt"
    child = "import time; kept = bytearray(64 << 20); time.sleep(1.5)"
    cost = measure.run_tree(
        [sys.executable, "-c", f"import subprocess as s; s.run([{sys.executable!r}, '-c', {child!r}])"], log
    )
    assert cost.peak_mib > cost.largest_mib > 64
    with pytest.raises(measure.PeerFailedError, match="exit status 1: Error: no such thing"):
        measure.run_tree([sys.executable, "-c", "import sys; sys.exit('Error: no such thing')"], log)


def test_a_served_task_runs_on_request_and_reports_why_it_ended(
    tmp_path: Path, modules: None, monkeypatch: pytest.MonkeyPatch, benchmarks: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(benchmarks / "dedup/peers"))
    measure, script, result = import_module("benchmarks.common.measure"), tmp_path / "task.py", tmp_path / "result"
    script.write_text(f"import pathlib, rounds\nrounds.serve(lambda: 'done', pathlib.Path({str(result)!r}).write_text)")
    with measure.Served([sys.executable, script], tmp_path / "log.txt") as served:
        assert not result.exists()
        assert served.round().peak_mib > 0
        served.save()
        assert result.read_text() == "done"
    script.write_text("import nothing_of_this_name")
    with pytest.raises(measure.PeerFailedError, match="No module named 'nothing_of_this_name'"):
        measure.Served([sys.executable, script], tmp_path / "log.txt").__enter__()


def test_tasks_take_turns_and_one_that_fails_stops_no_other(
    tmp_path: Path, modules: None, monkeypatch: pytest.MonkeyPatch, benchmarks: Path
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(benchmarks / "dedup/peers"))
    turns, script = tmp_path / "turns", tmp_path / "task.py"
    script.write_text(
        f"""import rounds, sys
def task():
    if sys.argv[1] == "c" and open({str(turns)!r}).read().count("a") > 1: sys.exit("error: had enough")
    print(sys.argv[1], end="", file=open({str(turns)!r}, "a"))
    return ""
rounds.serve(task, lambda result: None)"""
    )
    commands = {name: [sys.executable, str(script), name] for name in "abc"}
    costs, problems = import_module("benchmarks.common.measure").take_turns(commands, 3, tmp_path)
    assert turns.read_text() == "abcababab"
    assert ({name: len(each) for name, each in costs.items()}, problems) == (
        {"a": 3, "b": 3},
        {"c": "error: had enough"},
    )


@pytest.mark.slow
def test_a_peer_that_cannot_be_installed_is_reported_and_an_installed_one_is_used(
    tmp_path: Path, modules: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    venvs, dedup = import_module("benchmarks.dedup.venvs"), import_module("benchmarks.dedup.__main__")
    whole_programs = import_module("benchmarks.dedup.contenders").VENVS
    pinned = {name: venvs.pinned_version(name) for names in [*dedup.PEERS.values(), whole_programs] for name in names}
    parts = {"datasketch", "rensa", "pydivsufsort"}
    assert set(pinned) == parts | {"datatrove", "text-dedup", "py-data-juicer", "dolma"}
    monkeypatch.setattr(venvs, "SCRIPTS", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for name in ("there", "absent"):
        (tmp_path / f"{name}.txt").write_text(f"{name}==1.5\n")
    (tmp_path / "venvs/there").mkdir(parents=True)
    (tmp_path / "venvs/there/finished_with_pins.txt").write_text("there==1.5\n")
    made = venvs.prepare(tmp_path / "venvs", ["there", "absent"])
    assert made["there"].problem == ""
    assert "No matching distribution found for absent==1.5" in made["absent"].problem
    assert "No matching distribution" in venvs.describe(made.values())


@pytest.mark.slow
def test_growth_of_finpile_dedup_is_read(data: Path, tmp_path: Path, modules: None, tables: Tables, text: Text) -> None:
    corpus, growth = import_module("benchmarks.common.mix"), import_module("benchmarks.dedup.growth")
    texts = [text(number) for number in range(30)]
    mix = corpus.Mix(
        ids=[f"IRC-{number}" for number in range(33)], texts=[*texts, texts[3], texts[3] + " end", texts[7]]
    )
    rows = tables(growth.measure_growth(mix, [0.01, 1.0], tmp_path / "growth"))["what"]
    assert [row[0] for row in rows] == ["near fast"] * 2 + ["substrings of 200 bytes"] * 2
    assert all(float(row[3]) > 0 for row in rows)


def _edited(number: int, text: Text) -> str:
    """One of six texts, some of its words replaced."""
    words = text(number % 6).split()[: 8 if number % 2 else 60]
    random_ = random.Random(number)
    for _ in range(random_.randrange(6)):
        words[random_.randrange(len(words))] = "edited"
    return " ".join(words)


def _slow_divsufsort() -> ModuleType:
    """The two functions of pydivsufsort that are used, by their definitions."""
    module: Any = ModuleType("pydivsufsort")

    def divsufsort(data: np.ndarray) -> np.ndarray:
        return np.array(sorted(range(len(data)), key=lambda at: bytes(data[at:])), np.int32)

    def kasai(data: np.ndarray, suffixes: np.ndarray) -> np.ndarray:
        ends = [bytes(data[at:]) for at in suffixes]
        return np.array([*(_num_shared(one, other) for one, other in pairwise(ends)), 0], np.int32)

    module.divsufsort, module.kasai = divsufsort, kasai
    return cast("ModuleType", module)


def _num_shared(one: bytes, other: bytes) -> int:
    return next((at for at, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), min(len(one), len(other)))
