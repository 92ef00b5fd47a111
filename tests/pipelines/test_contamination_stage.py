"""Decontamination of a whole build: the removed documents of each side, for every way of execution."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile.config import ContaminationConfig, CorpusConfig, DedupConfig, EvalSetConfig, SourceConfig, load_config
from finpile.errors import InputError
from finpile.verify import verify
from tests.support.json_lines import json_lines
from tests.support.required_stages import required
from tests.support.trees import rows_below
from tests.support.work_folders import files_of_stage

Snapshot = Callable[[Path], dict[str, bytes]]
WriteCorpus = Callable[..., Path]
Record = dict[str, str]

WORDS = [f"{first}{second}" for first in ("gol", "wes", "tar", "ni") for second in ("den", "tor", "mir", "pas", "lok")]
PATIENCE_SECONDS = 120
#: About three documents.
SMALL_SHARDS = Sizes(shard_bytes=1500)
QUIZ = {"name": "Quiz", "paths": ["quiz.jsonl"], "fields": ["passage"], "id": "uid"}
SHORT = {"name": "Short", "paths": ["short.json"], "fields": ["question"]}


def prose(seed: int, num_words: int = 60) -> str:
    """So many words that no run of 13 is that of another seed."""
    draw = random.Random(seed)
    return " ".join(f"{word}{draw.randrange(1000)}" for word in draw.choices(WORDS, k=num_words))


def record(text: str, day: str = "2020-01-01") -> Record:
    return {"text": text, "date": day}


#: Three passages to look for, and what the corpus holds of them.
ITEMS = {"q1": prose(1, 40), "q2": prose(2, 40), "q3": prose(3, 40)}
WHOLE = f"{prose(10)}\n{ITEMS['q1'].upper()}, {prose(11)}"
HELD_OUT = f"{prose(12)}\n{ITEMS['q2']}\n{prose(13)}"
COPIED = f"{ITEMS['q1']}\n{prose(14)}"
SENTENCE = f"{prose(15)}\n{' '.join(ITEMS['q3'].split()[:10])}\n{prose(16)}"
CLEAN = [prose(20 + number) for number in range(12)]
GONE = {WHOLE, HELD_OUT, COPIED}


def corpus_files(*more: Record) -> dict[str, bytes]:
    news = [record(WHOLE), record(SENTENCE), record(COPIED, "2019-05-05"), *map(record, CLEAN[:6]), *more[::2]]
    web = [record(HELD_OUT, "2023-01-01"), record(COPIED), *map(record, CLEAN[6:]), *more[1::2]]
    quiz = [{"uid": name, "passage": passage} for name, passage in ITEMS.items()]
    short = json.dumps([{"question": "Did oil rise?"}, {"question": "And gold?"}]).encode()
    return {
        "News.jsonl": json_lines(news),
        "Web.jsonl": json_lines(web),
        "quiz.jsonl": json_lines(quiz),
        "short.json": short,
    }


def decontaminate(**changes: Any) -> dict[str, Any]:
    return {"sets": [QUIZ, SHORT], **changes}


@pytest.fixture
def write(write_corpus: WriteCorpus, tmp_path: Path) -> WriteCorpus:
    """Writes the corpus of this module, with whatever keys of its YAML are to be others."""

    def written(*more: Record, folder: Path = tmp_path, **changes: Any) -> Path:
        keys = {"dedup": {"near": None}, "contamination": decontaminate(), **changes}
        return write_corpus(folder, corpus_files(*more), **keys)

    return written


def run(config: Path, out: Path, engine: Engine | None = None, **options: Any) -> dict[str, Any]:
    """Builds up to the split; returns the counts of decontamination."""
    manifest = build(load_config(config), str(out), engine or Engine(), until="split", **options)
    counts: dict[str, Any] = next(one["counts"] for one in manifest["stages"] if one["stage"] == "contamination")
    return counts


def removed(out: Path) -> list[dict[str, Any]]:
    return rows_below(out / "removed" / "stage=contamination")


def texts(out: Path) -> set[str]:
    return {row["removed_text"].decode() for row in removed(out)}


def test_documents_that_hold_items_are_removed_from_both_sides(write: WriteCorpus, tmp_path: Path) -> None:
    counts = run(write(), tmp_path / "out")
    assert texts(tmp_path / "out") == GONE
    for row in removed(tmp_path / "out"):
        name = "q2" if row["removed_text"].decode() == HELD_OUT else "q1"
        assert (row["reason"], row["duplicate_of"], row["start"]) == ("contamination", None, None)
        assert row["detail"].startswith(f"100% of Quiz {name}, first in bytes ")
        start, end = map(int, row["detail"].rpartition(" ")[2].split("-"))
        assert row["removed_text"][start:end].decode().lower() == ITEMS[name]
    kept = {row["text"]: row["split"] for row in rows_below(tmp_path / "out" / "documents")}
    assert kept == dict.fromkeys([SENTENCE, *CLEAN], "train")
    quiz = {"items": 3, "items_not_checkable": 0, "items_found": 2, "documents": 3, "first_found": ["q1", "q2"]}
    short = {"items": 2, "items_not_checkable": 2, "items_found": 0, "documents": 0, "first_found": []}
    assert counts["removed"] == 3
    assert counts["sets"] == [{"set": "Quiz", **quiz}, {"set": "Short", **short}]
    assert (counts["grams_met"], counts["grams_dropped"]) == (2 * 28, 0)


def test_checks_pass_if_a_duplicate_is_a_copy_of_a_document_removed_later(write: WriteCorpus, tmp_path: Path) -> None:
    run(write(), tmp_path / "out")
    ids = {row["removed_text"].decode(): row["id"] for row in removed(tmp_path / "out")}
    (duplicate,) = rows_below(tmp_path / "out" / "removed" / "stage=exact")
    assert duplicate["duplicate_of"] == ids[COPIED]
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []


def test_own_coverage_of_a_set_removes_less_or_more(write: WriteCorpus, tmp_path: Path) -> None:
    half = f"{' '.join(ITEMS['q3'].split()[:20])}\n{prose(30)}"
    config = write(record(half), contamination={"sets": [{**QUIZ, "min_coverage": 0.6}]})
    run(config, tmp_path / "most")
    assert texts(tmp_path / "most") == GONE
    config = write(record(half), contamination={"sets": [{**QUIZ, "min_coverage": 0.5}], "min_coverage": 1.0})
    run(config, tmp_path / "half")
    assert texts(tmp_path / "half") == {*GONE, half}


@pytest.mark.parametrize(
    "engine",
    [Engine(transport="shuffle"), pytest.param(Engine(num_workers=2), marks=pytest.mark.slow)],
    ids=["shuffle", "workers"],
)
def test_output_does_not_depend_on_the_execution(
    write: WriteCorpus, tmp_path: Path, snapshot: Snapshot, engine: Engine
) -> None:
    config = write()
    one, other = tmp_path / "one", tmp_path / "other"
    assert run(config, one) == run(config, other, engine, sizes=SMALL_SHARDS)
    assert len(list((files_of_stage(other, "contamination") / "find" / "decisions").iterdir())) == len(GONE)
    assert snapshot(one) == snapshot(other)


@pytest.mark.parametrize("num_documents", [10, 11])
def test_boilerplate_is_counted_over_all_shards(write: WriteCorpus, tmp_path: Path, num_documents: int) -> None:
    notices = [f"{prose(40 + number)}\n{ITEMS['q3']}" for number in range(num_documents)]
    counts = run(write(*map(record, notices)), tmp_path / "out", sizes=SMALL_SHARDS)
    assert texts(tmp_path / "out") == (GONE | set(notices) if num_documents == 10 else GONE)
    assert counts["grams_dropped"] == (0 if num_documents == 10 else 28)
    shards = [path.stem for path in (files_of_stage(tmp_path / "out", "clean") / "documents").iterdir()]
    assert len(shards) > 2  # and so no shard has more than 10


def test_items_that_earlier_stages_cut_out_are_not_found(write: WriteCorpus, tmp_path: Path) -> None:
    first, second = f"{ITEMS['q3']}\n{prose(60)}", f"{prose(61)}\n{ITEMS['q3']}"
    config = write(
        record(first, "2018-01-01"),
        record(second),
        dedup={"near": None, "substring": {"min_length": 100}, "scope": "corpus"},
        contamination=decontaminate(),
    )
    run(config, tmp_path / "out")
    assert first in texts(tmp_path / "out")
    kept = "\n".join(row["text"] for row in rows_below(tmp_path / "out" / "documents"))
    assert prose(61) in kept
    assert ITEMS["q3"] not in kept
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []


def test_nothing_is_searched_if_no_set_is_named(write: WriteCorpus, tmp_path: Path) -> None:
    assert run(write(contamination=None), tmp_path / "out") == {"asked": False, "removed": 0}
    assert len(rows_below(tmp_path / "out" / "documents")) == len(GONE) + 1 + len(CLEAN)


def test_changed_set_or_setting_runs_from_decontamination_on(write: WriteCorpus, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def ran(config: Path) -> list[str]:
        events: list[StageEvent] = []
        run(config, out, listen=events.append)
        return [event.stage for event in events if event.state == "running"]

    late = list(required()[required().index("contamination") : required().index("split") + 1])
    config = write()
    assert ran(config) == list(required()[: required().index("split") + 1])
    (tmp_path / "quiz.jsonl").write_bytes(json_lines([{"uid": "q2", "passage": ITEMS["q2"]}]))
    assert ran(config) == late
    assert texts(out) == {HELD_OUT}
    text = config.read_text()
    config.write_text(text.replace("  sets:", "  ngram: 12\n  sets:"))
    assert ran(config) == late
    assert ran(config) == []


@pytest.mark.parametrize(
    ("eval_set", "reported"),
    [
        ({**QUIZ, "paths": ["quizz.jsonl"]}, "there is: quiz.jsonl"),
        ({**QUIZ, "fields": ["passag"]}, "its fields are: uid, passage"),
        ({**QUIZ, "paths": ["broken.json"]}, "is not JSON"),
    ],
)
def test_set_that_cannot_be_read_stops_the_build_before_it_begins(
    write: WriteCorpus, tmp_path: Path, eval_set: dict[str, Any], reported: str
) -> None:
    config = write(contamination={"sets": [eval_set]})
    (tmp_path / "broken.json").write_text("[{]")
    with pytest.raises(InputError, match=reported):
        run(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_command_prints_removals_and_warns_of_a_set_that_cannot_be_checked(
    write: WriteCorpus, tmp_path: Path, start_python: Callable[..., subprocess.Popen[str]]
) -> None:
    config = write()
    process = start_python("-m", "finpile_cli", "build", config, "-o", tmp_path / "out", "--workers", "1")
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, err
    table = [" ".join(line.split()) for line in out.splitlines() if line.startswith(("dataset", "FinPile"))]
    assert table == [
        "dataset source read unreadable cleaned out exact near contamination train held out removed bytes tokens",
        "FinPile News 9 0 0 0 0 2 7 0 2,512 1,897",
        "FinPile Web 8 0 0 1 0 1 6 0 2,520 1,390",
    ]
    assert "warning: no item of evaluation set Short could be looked for: all its texts have fewer than 8 words" in out
    page = (tmp_path / "out" / "reports" / "index.html").read_text()
    assert "Quiz: q1, q2." in page
    assert "Short: no item is long enough to be looked for." in page


@pytest.mark.slow
def test_novel_that_a_real_set_quotes_is_removed_and_filings_are_kept(
    real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    root = real_data("eval_tasks").parent
    sets = (
        EvalSetConfig(name="LAMBADA", paths=("eval_tasks/general/lambada_openai.jsonl",), fields=("context",)),
        EvalSetConfig(
            name="ConvFinQA",
            paths=("eval_tasks/convfinqa/convfinqa_dataset.json",),
            fields=("doc.pre_text", "doc.post_text"),
            records="dev",
            id="id",
        ),
    )
    books = SourceConfig(name="Books", dataset="The Pile", format="text", paths=("books/*.tar.zst",))
    filings = SourceConfig(
        name="8-K",
        dataset="FinPile",
        format="edgar",
        paths=("fin_filings/edgar_crawler/RAW_8-K.zip",),
        members=("*.txt",),
    )
    config = CorpusConfig(
        name="real",
        root=str(root),
        sources=(books, filings),
        dedup=DedupConfig(near=None),
        contamination=ContaminationConfig(sets=sets),
    )
    manifest = build(config, str(tmp_path / "out"), Engine(num_workers=2), until="split")
    (novel,) = removed(tmp_path / "out")
    assert novel["locator"].endswith("Mansfield Park.md")
    assert novel["detail"].startswith("99% of LAMBADA 3139, first in bytes ")
    (counts,) = (one["counts"]["sets"] for one in manifest["stages"] if one["stage"] == "contamination")
    assert [(one["set"], one["items"], one["items_found"], one["documents"]) for one in counts] == [
        ("LAMBADA", 5153, 2, 1),
        ("ConvFinQA", 421, 0, 0),
    ]
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []
