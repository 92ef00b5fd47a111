"""`finpile tokenizer sweep`: printed and written results of both modes, and refusals."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

Run = Callable[..., Any]

DRAW = random.Random(11)
WORDS = "net interest income rose fell in the quarter as oil prices and bond yields".split()  # noqa: SIM905
LINES = [" ".join(DRAW.choices(WORDS, k=9)) + f" {DRAW.randrange(999)}%." for _ in range(200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with `merged.parquet`, as a training leaves it, and two texts."""
    model = merge([UnigramTrainer(vocab_size=500).train(count_pretokens(pa.array(LINES)))])
    pq.write_table(model.to_table(), tmp_path / "merged.parquet")
    (tmp_path / "train.txt").write_text("\n".join(LINES))
    (tmp_path / "other.txt").write_text("oil prices rose 3%.\n" * 40)
    return tmp_path


def test_each_row_equals_encoding_with_that_vocabulary(folder: Path, run: Run) -> None:
    result = run("tokenizer", "sweep", folder, "--on", folder / "other.txt", "--sizes", "270:450:60", "--json")
    reported = result.json()
    merged = UnigramTrainer(vocab_size=500).train(count_pretokens(pa.array(LINES)))
    text = (folder / "other.txt").read_text()
    for row in reported["sizes"]:
        tokenizer = UnigramTokenizer(prune_to(merge([merged]), row["vocab_size"]))
        assert row["tokens"] == len(tokenizer.encode(text))
    assert [row["vocab_size"] for row in reported["sizes"]] == [270, 330, 390, 450]
    assert reported["text_bytes"] == len(text)
    assert (reported["smallest"], reported["power_of_two"]) == (330, 512)


def test_files_hold_the_table_and_the_plot_and_are_the_same_again(folder: Path, run: Run) -> None:
    command = ("tokenizer", "sweep", folder, "--on", folder / "other.txt", "--sizes", "270,300,400", "-o")
    first, second = folder / "a", folder / "b"
    for out in (first, second):
        assert run(*command, out).code == 0
    names = sorted(path.name for path in first.iterdir())
    assert names == [f"sweep.{suffix}" for suffix in ("csv", "json", "md", "svg", "tex")]
    assert [(first / name).read_bytes() for name in names] == [(second / name).read_bytes() for name in names]
    assert "<svg" in (first / "sweep.svg").read_text()


def test_a_build_is_cut_as_the_folder_of_its_tokenizer(folder: Path, run: Run) -> None:
    build = folder / "build"
    (build / "tokenizer").mkdir(parents=True)
    shutil.copy(folder / "merged.parquet", build / "tokenizer")
    command = ("--on", folder / "other.txt", "--sizes", "270,300", "--json")
    assert run("tokenizer", "sweep", build, *command).json() == run("tokenizer", "sweep", folder, *command).json()


def test_the_folder_of_a_build_is_refused(folder: Path, run: Run) -> None:
    (folder / "manifest.json").write_text('{"version": 1, "stages": [], "checksum": ""}')
    command = ("tokenizer", "sweep", folder, "--on", folder / "other.txt", "--sizes", "300", "-o")
    for out in (folder, f"{folder}/", folder / "new", folder.as_uri()):
        assert "has a build, to which no files can be added" in run(*command, out).refusal()
    (folder / "manifest.json").write_text('{"name": "of another tool"}')
    assert run(*command, folder / "new").code == 0


def test_one_training_passes_through_all_sizes(folder: Path, run: Run) -> None:
    result = run(
        "tokenizer", "sweep", "--train", folder / "train.txt", "--on", folder / "other.txt", "--sizes", "300:500"
    )
    assert (result.code, result.err) == (0, "")
    assert "The smallest encoding is that of" in result.out


def test_sizes_that_the_training_text_does_not_support_are_named(folder: Path, run: Run) -> None:
    result = run("tokenizer", "sweep", folder, "--on", folder / "other.txt", "--sizes", "300,90000", "-o", folder / "a")
    for text in (result.out, (folder / "a/sweep.md").read_text(), (folder / "a/sweep.json").read_text()):
        assert "The training text supports no more than" in text


def test_a_minimum_at_the_edge_of_the_sizes_is_called_that(folder: Path, run: Run) -> None:
    """The text is encoded in the fewest bytes with 300 to 330 entries, of all that the model has."""
    command = ("tokenizer", "sweep", folder, "--on", folder / "other.txt", "-o", folder / "a", "--json", "--sizes")
    every = run(*command, "257:450:1").json()
    best = every["smallest"]
    assert 257 < best < 450
    cases = (
        (f"{best - 1},{best},{best + 1}", None, "the power of two above it is"),
        (f"257,{best}", "largest", "the largest of the sizes tried: the minimum may be at a size that was not tried"),
        (f"{best},450", "smallest", "the smallest of the sizes tried: the minimum may be"),
        (f"{best}", "only", "the only size tried: the minimum may be"),
    )
    for sizes, edge, words in cases:
        found = run(*command, sizes).json()
        assert (found["smallest"], found["edge"]) == (best, edge)
        shown = run(*command[:-2], "--sizes", sizes).out
        for text in (shown, *((folder / "a" / f"sweep.{kind}").read_text() for kind in ("md", "tex", "json"))):
            assert words in " ".join(text.split())
        plot = (folder / "a/sweep.svg").read_text()
        assert ("size tried)" in plot) == (edge is not None)
        assert ("power of two above" in plot) == (edge is None)


def test_no_size_below_the_least_is_advised(folder: Path, run: Run) -> None:
    """A text of bytes that are in no longer piece is smallest with the fewest entries."""
    (folder / "bytes.txt").write_text("\x01\x02\x03" * 200)
    command = ("tokenizer", "sweep", folder, "--on", folder / "bytes.txt", "--sizes")
    several = run(*command, "257,300").out
    assert "The smallest encoding is that of 257 entries; the power of two above it is 512." in several
    assert run(*command, "257,300", "--json").json()["edge"] is None
    assert "not tried; try larger sizes." in run(*command, "257").out


def test_texts_of_another_field_are_swept(folder: Path, run: Run) -> None:
    lines = [json.dumps({"doc": {"body": line}}) for line in LINES]
    (folder / "train.jsonl").write_text("\n".join(lines))
    (folder / "other.jsonl").write_text("\n".join(lines[:40]))
    command = ("tokenizer", "sweep", "--sizes", "300,400", "--train", folder / "train.jsonl")
    on = ("--on", folder / "other.jsonl")
    assert run(*command, *on, "--text-field", "doc.body", "--json").json()["text_bytes"] == sum(map(len, LINES[:40]))
    assert "has no string under the key `text` (--text-field names it)" in run(*command, *on).refusal()


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--sizes", "300"], "expected either TOKENIZER"),
        (["DIR", "--train", "DIR/train.txt", "--sizes", "300"], "expected either TOKENIZER"),
        (["DIR", "--sizes", "many"], "whole numbers"),
        (["DIR", "--sizes", "100:300"], "257"),
        (["DIR", "--sizes", "400:300"], "from the smallest to the largest"),
        (["DIR", "--sizes", "400:300:-50"], "from the smallest to the largest"),
        (["DIR", "--sizes", "257:1000000000:1"], "at most 16,777,216"),
        (["DIR", "--sizes", f"257,{10**18}"], "at most 16,777,216"),
        (["DIR", "--sizes", "257:2000000:1"], "1,999,744 sizes; expected at most 1,000: name a larger STEP"),
        (["DIR/nowhere", "--sizes", "300"], "finpile tokenizer train"),
        (["--train", "DIR/empty.txt", "--sizes", "300"], "no text"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], reported: str, folder: Path, run: Run) -> None:
    (folder / "empty.txt").write_text("")
    named = [argument.replace("DIR", str(folder)) for argument in arguments]
    result = run("tokenizer", "sweep", *named, "--on", folder / "other.txt")
    assert reported in result.refusal()


def test_a_longest_piece_out_of_range_is_refused(folder: Path, run: Run) -> None:
    documents = ("--train", folder / "train.txt", "--on", folder / "other.txt")
    result = run("tokenizer", "sweep", *documents, "--sizes", "300", "--max-piece-bytes", 0)
    assert result.code == 2
    assert "2<=x<=254" in result.err


def test_an_empty_text_to_encode_is_refused(folder: Path, run: Run) -> None:
    (folder / "empty.txt").write_text("")
    result = run("tokenizer", "sweep", folder, "--on", folder / "empty.txt", "--sizes", "300")
    assert "no text" in result.refusal()
