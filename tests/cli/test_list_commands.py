"""`finpile ls` and `finpile search`."""

from __future__ import annotations

from pathlib import Path

import pytest

from finpile.history.listing import Filter, Listing
from finpile.history.search import Search
from tests.cli.conftest import Run

PARKING = "Parking around the old customs house"


def test_ls_prints_a_line_for_each_document(run: Run, sample_build: Path) -> None:
    found = run("ls", sample_build, "--source", "Bloomberg")
    rows = list(Listing(str(sample_build), Filter(source="Bloomberg")).rows())
    lines = found.out.splitlines()
    assert (found.code, found.err, len(lines)) == (0, f"{len(rows)} documents\n", len(rows))
    for line, row in zip(lines, rows, strict=True):
        date = "undated" if row["timestamp"] is None else f"{row['timestamp']:%Y-%m-%d}"
        assert line.split() == [row["id"], date, str(row["bytes"]), "FinPile/Bloomberg", row["locator"]]
    assert run("show", sample_build, lines[0].split()[0]).code == 0


def test_ls_prints_removals_with_stage_reason_and_place(run: Run, sample_build: Path) -> None:
    found = run("ls", sample_build, "--reason", "c4_ellipsis")
    assert found.out.split() == [
        "d835b9a4d902e1c84dec4e857791d4a5", *found.out.split()[1:2], "73", "C4/C4",
        "clean:", "c4_ellipsis", "(267-340)", found.out.split()[-1],
    ]  # fmt: skip
    assert found.err == "1 row of the ledger\n"
    removed = run("ls", sample_build, "--removed", "--reason", "near_duplicate").out.splitlines()
    assert len(removed) == 12
    assert all("  near: near_duplicate  " in line for line in removed)


def test_ls_prints_one_line_for_a_file_whose_name_has_several(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a\n\x1b[31mb.txt").write_text("Oil rose.")
    config = tmp_path / "corpus.yaml"
    source = "{name: N, dataset: D, format: text, paths: '*.txt'}"
    config.write_text(f"{{name: n, sources: [{source}], dedup: {{near: null}}, tokenizer: null}}")
    built = run("build", config, "-o", tmp_path / "out", "--workers", 1)
    assert built.code == 0
    (line,) = run("ls", tmp_path / "out").out.splitlines()
    assert line.endswith("  D/N  a\\n\\x1b[31mb.txt")


def test_ls_ends_at_the_limit(run: Run, sample_build: Path) -> None:
    every = run("ls", sample_build).out.splitlines()
    found = run("ls", sample_build, "--limit", 3)
    assert (found.out.splitlines(), found.err) == (every[:3], "3 documents, and maybe more\n")


@pytest.mark.parametrize("options", [[], ["--removed"], ["--limit", 1], ["--where", "bytes<0"]])
def test_ls_prints_json(run: Run, sample_build: Path, options: list[object]) -> None:
    found = run("ls", sample_build, *options, "--json").json()
    ids = [line.split()[0] for line in run("ls", sample_build, *options).out.splitlines()]
    assert (found["out"], found["snapshot"]) == (str(sample_build), None)
    assert [row["id"] for row in found["documents"]] == ids


def test_search_prints_texts_with_the_words_in_brackets(run: Run, sample_build: Path) -> None:
    found = run("search", sample_build, PARKING)
    assert (found.code, found.err) == (0, "")
    assert f"[{PARKING}] will be free on Thursday" in found.out
    assert "  removed by near: the whole document: near_duplicate" in found.out
    said = run("search", sample_build, PARKING, "--json").json()
    expected = Search(str(sample_build)).find(PARKING.encode(), limit=20)
    assert said["kept"] == {"documents": expected.kept.documents, "times": expected.kept.times}
    assert [(row["stage"], row["documents"], row["spans"], row["times"]) for row in said["removed"]] == [
        (stage, counts.documents, counts.spans, counts.times) for (stage, _), counts in expected.removed.items()
    ]
    assert [row["id"] for row in said["matches"]] == [match.row["id"] for match in expected.matches]


def test_search_counts_beyond_the_limit(run: Run, sample_build: Path) -> None:
    short, full = (run("search", sample_build, "on Thursday", "--limit", limit) for limit in (1, 1000))
    table = full.out[full.out.index('texts with "on Thursday"') :]
    assert short.out.endswith(table)
    num_texts = full.out.count("[on Thursday]")
    assert f"... and {num_texts - 1:,} more texts: raise --limit" in short.out
    assert run("search", sample_build, "no such words").out.count("[") == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ls", "OUT", "--where", "url"], "expected COLUMN=PATTERN"),
        (["ls", "OUT", "--where", "ulr=x"], "did you mean `url`"),
        (["ls", "OUT", "--text", "("], "Invalid regular expression"),
        (["ls", "OUT", "--snapshot", "7"], "has no snapshot 7"),
        (["search", "OUT", ""], "the words are empty"),
        (["search", "OUT", "x", "--as-of", "2020-01-01"], "order: time"),
        (["ls", "absent"], "holds no finished build"),
        (["search", "absent", "x"], "holds no finished build"),
    ],
    ids=str,
)
def test_mistakes_are_one_message(run: Run, sample_build: Path, arguments: list[str], says: str) -> None:
    assert says in run(*(str(sample_build) if word == "OUT" else word for word in arguments)).refusal()
