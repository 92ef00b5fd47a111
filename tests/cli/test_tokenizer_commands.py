"""`finpile tokenizer encode` and `decode`: text to ids and back, byte for byte; anything else is one message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_tokenizer import UnigramTokenizer

from tests.support.other_tokenizers import TEXTS, write_bpe
from tests.support.trees import rows_below

Run = Callable[..., Any]

LINES = [
    b"Oil rose by 3.5% on Tuesday.",
    b"",
    "Zürich, 東京 and 𝄞".encode(),
    b"no text: \xff\xfe\x00\x80",
    b" two  spaces\tand a tab ",
    b"a carriage return\r",
    b"<|endoftext|>",
]


@pytest.fixture
def tokenizer(sample_build: Path) -> Path:
    return sample_build / "tokenizer"


def test_decode_inverts_encode(run: Run, tokenizer: Path) -> None:
    text = b"".join(line + b"\n" for line in LINES)
    encoded = run("tokenizer", "encode", tokenizer, stdin=text)
    assert (encoded.code, encoded.err) == (0, "")
    assert len(encoded.out.splitlines()) == len(LINES)
    decoded = run("tokenizer", "decode", tokenizer, stdin=encoded.out.encode())
    assert (decoded.code, decoded.err) == (0, "")
    assert decoded.out.encode("utf-8", "surrogateescape") == text


def test_decode_speaks_json(run: Run, tokenizer: Path) -> None:
    ids = run("tokenizer", "encode", tokenizer, stdin="Zürich\n\n".encode() + b"\xff\n").out.encode()
    assert run("tokenizer", "decode", tokenizer, "--json", stdin=ids).json() == {"texts": ["Zürich", "", "\\xff"]}


def test_ids_are_those_of_the_library(run: Run, tokenizer: Path) -> None:
    loaded = UnigramTokenizer.load(tokenizer)
    found = run("tokenizer", "encode", tokenizer, "--json", stdin=b"\n".join(LINES)).json()
    assert found == {"ids": [loaded.encode(line) for line in LINES]}


def test_last_line_needs_no_end(run: Run, tokenizer: Path) -> None:
    with_end, without = (run("tokenizer", "encode", tokenizer, stdin=text) for text in (b"oil\n", b"oil"))
    assert with_end == without


@pytest.mark.parametrize("command", ["encode", "decode"])
def test_empty_input_gives_empty_output(run: Run, tokenizer: Path, command: str) -> None:
    found = run("tokenizer", command, tokenizer)
    assert (found.code, found.out, found.err) == (0, "", "")


def test_tokenizer_may_be_its_file_or_that_of_a_build(run: Run, sample_build: Path, tokenizer: Path) -> None:
    places = (tokenizer, tokenizer / "tokenizer.json", sample_build)
    folder, *others = (run("tokenizer", "encode", place, stdin=b"oil") for place in places)
    assert folder.code == 0
    assert others == [folder, folder]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"5 6\n1 two 3\n", "line 2 of standard input is not a line of ids: '1 two 3'"),
        (b"1.5\n", "line 1 of standard input is not a line of ids: '1.5'"),
        (b"1_0\n", "line 1 of standard input is not a line of ids: '1_0'"),
        (b"4096\n", "line 1 of standard input"),
        (b"-1\n", "line 1 of standard input"),
        (b"99999999999999999999999\n", "line 1 of standard input"),
        (b"\xff\xfe\n", "line 1 of standard input"),
    ],
    ids=["word", "fraction", "underscore", "too large", "negative", "far too large", "no text"],
)
def test_line_that_holds_no_ids_is_named(run: Run, tokenizer: Path, line: bytes, says: str) -> None:
    assert says in run("tokenizer", "decode", tokenizer, stdin=line).refusal()


@pytest.mark.parametrize("command", ["encode", "decode"])
@pytest.mark.parametrize("content", [None, "", "{", "{}", "[]", json.dumps({"model": {"type": "BPE"}})], ids=str)
def test_what_is_no_tokenizer_is_refused(run: Run, tmp_path: Path, command: str, content: str | None) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    for where in (path, tmp_path):
        assert str(where) in run("tokenizer", command, where, stdin=b"1\n").refusal()


def test_compare_counts_the_build_with_its_own_tokenizer(run: Run, sample_build: Path, tokenizer: Path) -> None:
    found = run("tokenizer", "compare", f"ours={tokenizer}", "--on", sample_build, "--json").json()
    assert found["files"] == []
    loaded = UnigramTokenizer.load(tokenizer)
    num_tokens = sum(
        len(loaded.encode(row["text"])) for row in rows_below(sample_build / "documents") if row["split"] == "train"
    )
    assert found["tables"][0]["rows"][-1]["values"] == {"name": "Total", "ours": num_tokens}


def test_a_total_of_public_datasets_leaves_out_the_private_ones(run: Run, sample_build: Path, tokenizer: Path) -> None:
    command = ["tokenizer", "compare", f"ours={tokenizer}", "--on", sample_build]
    of_all, of_public = run(*command), run(*command, "--total-of", "public")
    found = run(*command, "--total-of", "public", "--json").json()
    assert found["total_of"] == "public"
    counts = [(row["dataset"], row["counts"][0]["num_tokens"]) for row in found["sources"]]
    public = sum(count for dataset, count in counts if dataset != "FinPile")
    totals = [re.search(r"^Total +([0-9,]+)", each.out, re.MULTILINE) for each in (of_all, of_public)]
    shown = [int(match[1].replace(",", "")) if match else None for match in totals]
    in_thousands = round(sum(count for _, count in counts) / 1000)
    assert shown == [in_thousands, public]
    assert "- Total is the sum of the public datasets." in of_public.out.splitlines()


def test_half_of_a_surrogate_pair_in_a_text_is_named(run: Run, tokenizer: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"text": "Oil rose."}\n{"text": "half \\ud800 a character"}\n')
    like = ("tokenizer", "train", docs, "-o", tmp_path / "out", "--like", "gpt-neox")
    for command in (("tokenizer", "compare", tokenizer, "--on", docs), like):
        assert f"{docs}:2: the text has half of a surrogate pair" in run(*command).refusal()


def test_compare_refuses_a_folder_without_a_tokenizer(run: Run, sample_build: Path, tmp_path: Path) -> None:
    assert "absent" in run("tokenizer", "compare", tmp_path / "absent", "--on", sample_build).refusal()


NEOX_TABLES = ["neox_table14", "neox_table15", "neox_table16", "neox_shared_tokens", "neox_table17", "neox_table18"]


def test_compare_writes_the_tables_of_neox(run: Run, sample_build: Path, tokenizer: Path, tmp_path: Path) -> None:
    both = [f"one={tokenizer}", f"two={tokenizer / 'tokenizer.json'}"]
    command = ["tokenizer", "compare", *both, "--on", sample_build, "--paper", "neox", "-o", tmp_path / "made"]
    found = run(*command, "--json").json()
    assert [table["name"] for table in found["tables"]] == NEOX_TABLES
    names = {Path(file).name for file in found["files"]}
    expected = {f"{name}.{suffix}" for name in NEOX_TABLES for suffix in ("md", "csv", "tex", "json")}
    assert names == expected | {"comparison.json"} == {path.name for path in (tmp_path / "made").iterdir()}
    for table in found["tables"]:
        assert json.loads((tmp_path / "made" / f"{table['name']}.json").read_text()) == table
    by_name = {table["name"]: table["rows"] for table in found["tables"]}
    assert all(row["shown"][1] == row["shown"][2] and row["shown"][3] == "1.00000" for row in by_name["neox_table15"])
    assert by_name["neox_table18"] == []  # the two are the same tokenizer
    by_dataset = run(*command[:-2], "--by", "dataset", "--json").json()
    assert len(by_dataset["tables"][1]["rows"]) < len(by_name["neox_table15"])


def test_compare_makes_the_tables_of_neox_of_one_tokenizer(run: Run, sample_build: Path, tokenizer: Path) -> None:
    command = ["tokenizer", "compare", tokenizer, "--on", sample_build, "--paper", "neox", "--json"]
    made = [table["name"] for table in run(*command).json()["tables"]]
    assert made == ["neox_table14", "neox_table15", "neox_table16", "neox_table17"]


def test_a_tokenizer_of_another_library_is_named(run: Run, tmp_path: Path) -> None:
    write_bpe(tmp_path, TEXTS)
    said = run("tokenizer", "encode", tmp_path, stdin=b"text").refusal()
    assert "is a HuggingFaceTokenizer, and this command needs a tokenizer of FinPile" in said
