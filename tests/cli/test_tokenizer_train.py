"""`finpile tokenizer train`: output files, messages, finished work, and refusals."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_cli.tokenizer_train import read_settings
from finpile_tokenizer import UnigramModel, UnigramTokenizer, prune_to

from finpile.config import TokenizerConfig
from finpile.output.layout import Layout
from finpile.output.lock import hold
from tests.support.trees import files_below

Run = Callable[..., Any]

SMALL = ("--vocab-size", 300, "--chunk-vocab-size", 290, "--workers", 1)
OUTPUTS = ["merged.parquet", "tokenizer.json", "tokenizer_config.json", "training.json", "vocabulary.parquet"]
WORDS = ("net interest income", "rose", "fell", "as oil prices", "and", "bond yields", "raised rates", "while", "gold")
DRAW = random.Random(20230330)
SENTENCES = [
    f"{' '.join(DRAW.choices(WORDS, k=16))} {DRAW.randrange(10**4)}.{DRAW.randrange(9)}%.\n" for _ in range(200)
]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder with two domains: one that the records name, and one that the folder names."""
    folder = tmp_path / "docs"
    named = [{"text": text, "dataset": "FinPile", "source": "News"} for text in SENTENCES[::2]]
    write_lines(folder / "named.jsonl", named)
    write_lines(folder / "others.jsonl", [{"text": text} for text in SENTENCES[1::2]])
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the documents `docs.txt` and, in `out`, the tokenizer that `finpile_pipelines` trains on them."""
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.unigram.train_folder import train_folder

    folder = tmp_path_factory.mktemp("trained")
    (folder / "docs.txt").write_text("".join(SENTENCES))
    config = TokenizerConfig(vocab_size=300, chunk_vocab_size=290)
    train_folder([str(folder / "docs.txt")], str(folder / "out"), config, Engine())
    return folder


@pytest.fixture
def copied(trained: Path, tmp_path: Path) -> Path:
    """Documents and tokenizer, both to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "trained"))  # keeps the files' dates


# --- output files and messages ---------------------------------------------------------------------------------------


def test_train_writes_a_tokenizer_and_reports_every_domain(run: Run, docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run("tokenizer", "train", docs, "-o", out, "--chunks", 2, *SMALL)
    assert (found.code, found.err) == (0, "")
    assert sorted(path.name for path in out.iterdir()) == [".work", *OUTPUTS]
    assert sorted(files_below(out / ".work")) == ["training/stage.json", "training/started.json"]
    lines = found.out.splitlines()
    steps = [line for line in lines if not line.startswith(" ")]  # without those of a step that takes a while
    assert [line.split()[0] for line in steps[1:5]] == ["measure", "count", "train", "merge"]
    rows = [line.split() for line in lines if line.startswith(("FinPile", "docs", "all"))]
    assert [row[:4] for row in rows] == [
        ["FinPile", "News", "100", "2"],
        ["docs", "docs", "100", "2"],
        ["all", "200", "4", "31,400"],
    ]
    assert lines[-1] == f"tokenizer: {out}/tokenizer.json"
    assert "\x1b" not in found.out
    text = b"Net interest \xff income"
    assert UnigramTokenizer.load(out).decode(UnigramTokenizer.load(out).encode(text)) == text
    assert run("tokenizer", "encode", out, stdin=b"Net interest income\n").code == 0


def test_vocabulary_is_pruned_from_the_merged_model(trained: Path) -> None:
    merged = UnigramModel.from_table(pq.read_table(trained / "out" / "merged.parquet"))
    vocabulary = UnigramTokenizer.load(trained / "out").vocabulary
    cut = prune_to(merged, 300)
    assert cut.pieces.equals(vocabulary.pieces)
    assert cut.log_probs.tolist() == vocabulary.log_probs.tolist()
    assert len(merged.pieces) == 290


@pytest.mark.parametrize("mode", ["refit", "global"])
def test_modes_report_the_objective_of_each_pass(run: Run, docs: Path, tmp_path: Path, mode: str) -> None:
    found = run("tokenizer", "train", docs, "-o", tmp_path / "out", "--mode", mode, *SMALL)
    assert (found.code, found.err) == (0, "")
    reported = json.loads((tmp_path / "out" / "training.json").read_text())
    shown = [line.split(": ")[1].split()[0] for line in found.out.splitlines() if line.startswith("update")]
    assert shown == [f"{bits:.4f}" for bits in reported["objective"]]
    assert reported["mode"] == mode
    assert ("pieces" in reported["chunks"][0]) == (mode == "refit")


def test_json_is_one_object(run: Run, docs: Path, tmp_path: Path) -> None:
    found = run("tokenizer", "train", docs, "-o", tmp_path / "out", *SMALL, "--json").json()
    assert found["ran"] is True
    assert found["tokenizer"] == f"{tmp_path}/out/tokenizer.json"
    assert [(row["dataset"], row["source"], row["documents"]) for row in found["domains"]] == [
        ("FinPile", "News", 100),
        ("docs", "docs", 100),
    ]
    assert found["total"]["bytes"] == len("".join(SENTENCES))
    assert 0 < found["total"]["bits_per_byte"] < 8
    assert found["warnings"] == []


def test_files_folders_builds_and_tables_are_documents(
    run: Run, sample_build: Path, docs: Path, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"text": SENTENCES[:5]}), tmp_path / "table.parquet")
    (tmp_path / "plain.txt").write_text("Gold fell.")
    named = (tmp_path / "plain.txt", docs / "others.jsonl", tmp_path / "table.parquet", sample_build)
    found = run("tokenizer", "train", *named, "-o", tmp_path / "out", *SMALL, "--json").json()
    expected = json.loads((Path(__file__).parents[2] / "data_samples" / "expected.json").read_text())["sources"]
    kept = {(row["dataset"], row["source"]): row["kept_train"] for row in expected if row["kept_train"]}
    counted = {(row["dataset"], row["source"]): row["documents"] for row in found["domains"] if row["bytes"]}
    assert counted == {**kept, ("plain", "plain"): 1, ("others", "others"): 100, ("table", "table"): 5}
    assert not [warning for warning in found["warnings"] if "no text" in warning]  # of shards of held-out documents


def test_held_out_documents_of_a_build_are_those_after_its_date(run: Run, copied: Path, sample_build: Path) -> None:
    command = ("tokenizer", "train", copied / "docs.txt", "-o", copied / "out", *SMALL)
    found = run(*command, "--heldout", sample_build, "--json").json()
    assert found["ran"] is False  # what is held out is not a part of the training
    expected = json.loads((Path(__file__).parents[2] / "data_samples" / "expected.json").read_text())["sources"]
    kept = {(row["dataset"], row["source"]): row["kept_heldout"] for row in expected if row["kept_heldout"]}
    assert {(row["dataset"], row["source"]): row["documents"] for row in found["held_out"]} == kept
    tables = [pq.read_table(path, partitioning=None) for path in (sample_build / "documents").rglob("*.parquet")]
    texts = [row["text"] for table in tables for row in table.to_pylist() if row["split"] == "heldout"]
    tokenizer, num_bytes = UnigramTokenizer.load(copied / "out"), len("".join(texts).encode())
    total = found["held_out_total"]
    assert (total["documents"], total["bytes"]) == (len(texts), num_bytes)
    assert total["tokens"] == sum(len(tokenizer.encode(text)) for text in texts)
    bits = -tokenizer.log_likelihood(pa.array(texts)).sum() / math.log(2)
    assert total["bits_per_byte"] == pytest.approx(bits / num_bytes, rel=1e-12)
    assert "Held out" in run(*command, "--heldout", copied / "docs.txt").out
    news = sample_build / "documents" / "dataset=FinPile" / "source=News"
    (row,) = run(*command, "--heldout", news, "--json").json()["held_out"]
    assert (row["source"], row["documents"]) == ("News", kept["FinPile", "News"])


def test_preset_is_the_paper_and_options_override_it() -> None:
    paper = TokenizerConfig(chunks=256, chunk_vocab_size=65_536, vocab_size=131_072)
    assert read_settings("bloomberggpt", {"mode": None, "chunks": None}) == paper
    asked = read_settings("bloomberggpt", {"mode": "refit", "chunks": 3, "vocab_size": None})
    assert asked == TokenizerConfig(mode="refit", chunks=3, chunk_vocab_size=65_536, vocab_size=131_072)
    assert read_settings(None, {"chunks": None}) == TokenizerConfig()


def test_options_behind_the_dashes_are_beams(run: Run, trained: Path, copied: Path) -> None:
    command = ["tokenizer", "train", copied / "docs.txt", "-o", copied / "new", *SMALL]
    assert run(*command, "--", "--job_name=mine").code == 0
    assert (copied / "new" / "tokenizer.json").read_bytes() == (trained / "out" / "tokenizer.json").read_bytes()


# --- warnings --------------------------------------------------------------------------------------------------------


def test_too_little_text_for_the_vocabulary_is_reported(run: Run, docs: Path, tmp_path: Path) -> None:
    found = run("tokenizer", "train", docs, "-o", tmp_path / "out", "--vocab-size", 50_000, "--workers", 1, "--json")
    value = found.json()
    (warning,) = value["warnings"]
    size = UnigramTokenizer.load(tmp_path / "out").vocab_size
    assert f"has {size:,} of the 50,000 entries requested" in warning
    assert f"lower --vocab-size to {size}" in warning
    assert value["vocab_size"] == size < 50_000


def test_files_without_text_are_reported_and_left_out(run: Run, docs: Path, tmp_path: Path) -> None:
    (docs / "empty.jsonl").write_text("")
    write_lines(docs / "void.jsonl", [{"text": "", "dataset": "FinPile", "source": "Press"}])
    found = run("tokenizer", "train", docs, "-o", tmp_path / "out", *SMALL)
    assert found.code == 0
    assert "warning: the domain FinPile/Press has no text and was left out" in found.out
    assert f"warning: no text to train on in {docs}/empty.jsonl and 1 more" in found.out


# --- what it finds done ----------------------------------------------------------------------------------------------


def test_the_text_of_another_field_is_trained_on(run: Run, tmp_path: Path) -> None:
    rows = [{"text": "x" * number, "body": {"full": text}} for number, text in enumerate(SENTENCES)]
    named, plain = write_lines(tmp_path / "docs.jsonl", rows), tmp_path / "plain" / "docs.jsonl"
    write_lines(plain, [{"text": text} for text in SENTENCES])
    held = write_lines(tmp_path / "held.jsonl", rows[:9])
    train = ("tokenizer", "train", named, *SMALL, "--json", "-o", tmp_path / "out", "--text-field", "body.full")
    found = run(*train, "--heldout", held).json()
    assert found["total"]["bytes"] == len("".join(SENTENCES))
    assert found["held_out_total"]["bytes"] == len("".join(SENTENCES[:9]))
    run("tokenizer", "train", plain, *SMALL, "-o", tmp_path / "other")
    assert (tmp_path / "out/tokenizer.json").read_bytes() == (tmp_path / "other/tokenizer.json").read_bytes()
    other_texts = run(*train[:-2]).refusal()
    assert "was trained on other texts" in other_texts
    assert "(--text-field names it)" in run(*train[:-1], "nope", "-o", tmp_path / "third").refusal()


def test_finished_training_is_found_and_not_touched(run: Run, copied: Path) -> None:
    before = files_below(copied)
    found = run("tokenizer", "train", copied / "docs.txt", "-o", copied / "out", *SMALL)
    assert (found.code, found.err) == (0, "")
    assert "the training was done before; nothing to do (--fresh starts over)" in found.out
    assert files_below(copied) == before


@pytest.mark.parametrize("what", ["texts", "settings"])
def test_changed_setting_restarts_the_training_and_is_reported(run: Run, copied: Path, what: str) -> None:
    before = files_below(copied / "out")
    settings = [*SMALL, "--max-piece-bytes", 5] if what == "settings" else SMALL
    if what == "texts":
        (copied / "docs.txt").write_text("".join(SENTENCES[:-9]))
    command = ["tokenizer", "train", copied / "docs.txt", "-o", copied / "out", *settings]
    if what == "texts":  # hours of work, perhaps: it is not lost by a mistyped -o
        assert "trained on other texts: name another folder, or say --replace" in run(*command).refusal()
        assert files_below(copied / "out") == before
        command.append("--replace")
    found = run(*command)
    assert found.code == 0
    assert f"other {what} than before: training anew" in found.out
    after = files_below(copied / "out")
    assert after["tokenizer.json"] != before["tokenizer.json"]
    assert after.keys() == before.keys()


@pytest.mark.parametrize("how", ["--fresh", "a file that is gone"])
def test_training_is_done_again(run: Run, copied: Path, how: str) -> None:
    before = files_below(copied / "out")
    if how != "--fresh":
        (copied / "out" / "vocabulary.parquet").unlink()
    flags = [how] if how == "--fresh" else []
    found = run("tokenizer", "train", copied / "docs.txt", "-o", copied / "out", *SMALL, *flags)
    assert (found.code, "nothing to do" in found.out, "training anew" in found.out) == (0, False, False)
    after = files_below(copied / "out")
    assert {name: after[name] for name in OUTPUTS} == {name: before[name] for name in OUTPUTS}


# --- what it refuses -------------------------------------------------------------------------------------------------


def test_missing_input_is_refused_before_any_output(run: Run, docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for named, says in [
        ([tmp_path / "absent"], "absent: no such file or folder"),
        ([docs, docs / "named.jsonl"], "named.jsonl: is named more than once"),
        ([docs, "--heldout", tmp_path / "absent"], "absent: no such file or folder"),
        (["memory://nothing/here"], "no such file or folder"),
        (["nosuch://place"], "nosuch://place"),
    ]:
        assert says in run("tokenizer", "train", *named, "-o", out, *SMALL).refusal()
        assert not out.exists()
    (tmp_path / "sea.jpg").write_bytes(b"blue")
    assert "unknown kind" in run("tokenizer", "train", tmp_path / "sea.jpg", "-o", out).refusal()
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"text": "Oil."}\n{"text": \n', "a.jsonl:2: is not JSON"),
        ("a.jsonl", b'{"body": "Oil."}\n', "a.jsonl:1: has no string under the key `text`"),
        ("a.jsonl", b'{"text": "half \\ud800 a character"}\n', "a.jsonl:1: the text has half of a surrogate pair"),
        ("a.jsonl.gz", b"no gzip", "a.jsonl.gz: is damaged or cut short"),
        ("a.parquet", b"no table", "a.parquet: is not a whole Parquet file"),
        ("a.txt", b"\xff\xfe", "a.txt: byte 0 is not UTF-8"),
        ("a.txt", b"", "no text to train on"),
        ("a.jsonl", b"", "no text to train on"),
        ("a.jsonl", b'{"text": ""}\n', "no text to train on"),
    ],
    ids=str,
)
def test_broken_or_empty_documents_are_refused(run: Run, tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    for _ in range(2 if name == "a.txt" else 1):  # a second try must not find the first one's step done
        assert says in run("tokenizer", "train", tmp_path / name, "-o", tmp_path / "out", *SMALL).refusal()
    assert not (tmp_path / "out" / "tokenizer.json").exists()


def test_halves_of_surrogate_pairs_in_names_are_spelled_out(run: Run, tmp_path: Path) -> None:
    rows = [{"text": text, "dataset": "FinPile", "source": "News \ud800"} for text in SENTENCES]
    docs = write_lines(tmp_path / "docs.jsonl", rows)
    for field in ([], ["--domain-field", "source"]):
        found = run("tokenizer", "train", docs, "-o", tmp_path / f"out{len(field)}", *SMALL, *field, "--json").json()
        assert [row["source"] for row in found["domains"]] == ["News \\ud800"]


def test_a_text_that_is_no_string_is_not_taken_for_a_misspelt_field(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": null}')
    train = ("tokenizer", "train", tmp_path / "a.jsonl", "-o", tmp_path / "out", *SMALL)
    assert run(*train).refusal().endswith("a.jsonl:1: has no string under the key `text` (--text-field names it)")
    (tmp_path / "a.jsonl").write_text('{"text": "Oil."}')
    said = run(*train, "--domain-field", "kind").refusal()
    assert said.endswith("a.jsonl:1: has no string under the key `kind` (--domain-field names it)")


def test_other_folders_are_refused_and_left_alone(run: Run, docs: Path, sample_build: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "sea.jpg").write_bytes(b"blue")
    build = Path(shutil.copytree(sample_build, tmp_path / "build"))
    before = files_below(tmp_path)
    for out in (tmp_path / "photos", tmp_path / "photos" / "sea.jpg", build, build / "tokenizer"):
        for flags in ([], ["--fresh"]):
            assert "name a" in run("tokenizer", "train", docs, "-o", out, *SMALL, *flags).refusal()
    assert files_below(tmp_path) == before


def test_running_training_is_not_disturbed(run: Run, copied: Path) -> None:
    with hold(Layout(str(copied / "out")), "training"):
        before = files_below(copied)
        message = run("tokenizer", "train", copied / "docs.txt", "-o", copied / "out", "--fresh").refusal()
        assert f"another command is running, training (process {os.getpid()} on " in message
        assert files_below(copied) == before


@pytest.mark.parametrize(
    "flags",
    [
        ["--vocab-size", 257],
        ["--chunk-vocab-size", 1],
        ["--chunks", 0],
        ["--chunks", "some"],
        ["--chunks", -1],
        ["--max-piece-bytes", 255],
        ["--mode", "bpe"],
        ["--preset", "gpt-2"],
        ["--workers", 0],
    ],
    ids=str,
)
def test_wrong_settings_are_refused(run: Run, docs: Path, tmp_path: Path, flags: list[Any]) -> None:
    found = run("tokenizer", "train", docs, "-o", tmp_path / "out", *flags)
    assert found.code == 2
    assert flags[0] in found.err
    assert "Traceback" not in found.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("like", "file"), [("gpt-neox", "tokenizer.json"), ("palm", "spiece.model")])
def test_like_trains_the_tokenizer_of_another_paper(run: Run, docs: Path, tmp_path: Path, like: str, file: str) -> None:
    command = ["tokenizer", "train", docs, "-o", tmp_path / "made", "--like", like, "--vocab-size", 400]
    first, again = run(*command, "--json").json(), run(*command, "--json").json()
    assert (first["ran"], again["ran"], first["tokenizer"]) == (True, False, str(tmp_path / "made" / file))
    assert run("tokenizer", "compare", tmp_path / "made", "--on", docs).code == 0
    assert "--mode is a setting of FinPile's own tokenizer" in run(*command, "--mode", "global").refusal()
