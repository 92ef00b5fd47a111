"""The scoreboard of deduplication: what is judged of each program, and how its output is read."""

from __future__ import annotations

import gzip
import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from click.testing import CliRunner
from finpile_cli.main import finpile

_WORDS = [f"w{number}" for number in range(20)]
#: The first three are similar: the second has other numbers than the other two, which are equal but for a word.
_TEXTS = [
    " ".join(_WORDS),
    " ".join([*_WORDS[:-1], "7"]),
    " ".join([*_WORDS[:-1], "w"]),
    "another text",
    "another text",
]


def _kept(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(np.arange(len(_TEXTS)), numbers)


def test_removals_of_the_mix_are_right_alone_or_missing(modules: None) -> None:
    board, mixes = import_module("benchmarks.dedup.scoreboard"), import_module("benchmarks.common.mix")
    truth = import_module("benchmarks.dedup.truth")
    similar = truth.similar_pairs(_TEXTS, 0.2, truth.shingles_of)
    judge = board.MixJudge(
        mixes.Mix(ids=list("abcde"), texts=_TEXTS), similar, *truth.edited_pairs(_TEXTS, similar.pairs, 0.8)
    )
    assert judge.judge(_kept(0, 1, 2, 3)) == {"removed": 1, "right": 1, "alone": 0, "pairs": 1, "found": 1}
    assert judge.judge(_kept(0, 1, 2, 3, 4))["found"] == 0
    assert judge.judge(_kept(1, 2)) == {"removed": 3, "right": 3, "alone": 2, "pairs": 1, "found": 1}


def test_removals_of_a_generated_corpus_are_those_of_planted_pairs(modules: None) -> None:
    board = import_module("benchmarks.dedup.scoreboard")
    truth = pa.table(
        {"document": [1, 3, 5, 7], "kind": ["exact", "near", "doubtful", "different"], "source": [0, 2, 4, 6]}
    )
    judge = board.PlantedJudge(9, 1000, truth)
    kept = np.ones(9, bool)
    kept[[1, 4, 7, 8]] = False
    assert judge.judge(kept) == {"removed": 4, "right": 2, "alone": 2, "pairs": 2, "found": 1}


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_kept_lines_are_those_with_a_text(suffix: str, modules: None, tmp_path: Path) -> None:
    contenders = import_module("benchmarks.dedup.contenders")
    lines = [{"id": "3", "text": "a"}, {"text": "b", "id": "12"}, {"id": "4", "text": ""}]
    content = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    (tmp_path / "kept").mkdir()
    (tmp_path / f"kept/a.jsonl{suffix}").write_bytes(pack(content))
    assert list(contenders._kept_lines("kept")(tmp_path)) == [3, 12]


def test_what_finpile_keeps_and_cuts_is_read_from_its_output(modules: None, tmp_path: Path) -> None:
    contenders = import_module("benchmarks.dedup.contenders")
    texts = ["Oil rose on Monday, and gold fell. " * 9, "Banks lent. " * 30, "Banks lent. " * 30]
    lines = "".join(f"{json.dumps({'id': str(number), 'text': text})}\n" for number, text in enumerate(texts))
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text(lines)
    done = CliRunner().invoke(finpile, ["dedup", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--near", "none"])
    assert done.exit_code == 0, done.output
    assert sorted(contenders._kept_by_us(tmp_path / "out")) in ([0, 1], [0, 2])
    assert contenders._cut_by_us(tmp_path / "out") == len(texts[1])


def test_each_program_has_a_setting_and_every_kind_begins_with_ours(modules: None) -> None:
    contenders = import_module("benchmarks.dedup.contenders")
    first = {one.kind: one.peer for one in reversed(contenders.CONTENDERS)}
    assert set(first.values()) == {""}, "times are by those of the first"
    peers = {one.peer for one in contenders.CONTENDERS} - {""}
    assert peers == {*contenders.CLONES, *contenders.VENVS}
    scripts = import_module("benchmarks.dedup.venvs").SCRIPTS
    assert all((scripts / f"{name}.txt").is_file() for name in contenders.VENVS)


def test_a_program_that_fails_is_named_and_stops_no_other(
    modules: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    board, contenders = import_module("benchmarks.dedup.scoreboard"), import_module("benchmarks.dedup.contenders")
    codes = {"bad": "exit('no luck')", "good": "", "absent": ""}
    tried = [
        contenders.Contender(
            name=name,
            kind="exact",
            command=lambda programs, inputs, out, code=code: [programs.python, "-c", code],
            kept=lambda out: iter([0]),
            peer="bff" if name == "absent" else "",
        )
        for name, code in codes.items()
    ]
    monkeypatch.setattr(board, "CONTENDERS", tried)
    programs = contenders.Programs(Path(sys.executable), {})
    judge = board.PlantedJudge(2, 1000, pa.table({"document": [1], "kind": ["exact"], "source": [0]}))
    for contender in tried:
        board._measure(contender, "1", tmp_path, judge, programs, {"bff": "no cargo"}, tmp_path)
    runs = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("board-*.json"))]
    assert [(run["name"], run.get("problem")) for run in runs] == [
        ("bad", "exit status 1: no luck"),
        ("good", None),
        ("absent", "no cargo"),
    ]
    assert [row[-1] for row in board._rows(runs)] == ["", "1 of 1", ""]
