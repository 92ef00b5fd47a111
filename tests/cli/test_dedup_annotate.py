"""`finpile dedup --annotate`: attributes say what a run removes, in the places of the input's texts."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile

from finpile.dedup.in_memory import deduplicate
from finpile.verify import attributes, verify
from tests.support.trees import rows_below

WORDS = "shares bond oil gold rate bank court trade profit loss port fund zürich €".split()  # noqa: SIM905


def made_up() -> list[dict[str, Any]]:
    """Forty stories, copies and near copies of some, and passages that several have; with characters of several
    bytes."""
    draw = random.Random(7)

    def sentence() -> str:
        return " ".join(draw.choices(WORDS, k=14)).capitalize() + f" {draw.randrange(10**6)}."

    texts = ["\n".join(sentence() for _ in range(8)) for _ in range(40)]
    passages = [" ".join(sentence() for _ in range(3)) for _ in range(3)]
    texts = [
        text if number % 5 else f"{text}\n{passages[number % 3]}\n{sentence()}" for number, text in enumerate(texts)
    ]
    texts += [texts[3], texts[3], texts[4], f"{texts[6]} Bank bank bank."]
    days = [f"2021-{1 + number % 12:02d}-{1 + number % 28:02d}" for number in range(len(texts))]
    return [
        {"id": f"story-{number}", "text": text, "timestamp": day}
        for number, (text, day) in enumerate(zip(texts, days, strict=True))
    ]


#: Spans of the third text meet within the character è: its first byte is that of é in the first text.
SPLIT = [
    "Le conseil a décidé hier de fermer le marché de la ville.",
    "On parle de la frontière du nord, dit le ministre des transports.",
    "Voici. Le conseil a décidé hier de fermer le marchère du nord, dit le ministre des transports. Fin de l'histoire.",
]


def test_spans_that_meet_within_a_character_have_its_place_once(tmp_path: Path) -> None:
    rows = [{"text": text, "timestamp": f"202{number}-01-01"} for number, text in enumerate(SPLIT)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out"
    command = ["dedup", str(tmp_path / "a.jsonl"), "-o", str(out), "--near", "none", "--substring-min-length", "40"]
    assert CliRunner().invoke(finpile, [*command, "--annotate", "--workers", "1"]).exit_code == 0
    (path,) = (out / "attributes").rglob("*.jsonl.gz")
    attributes = [json.loads(row)["attributes"] for row in gzip.decompress(path.read_bytes()).decode().splitlines()]
    (spans,) = (found for one in attributes for name, found in one.items() if name.endswith("repeated_text"))
    places = sorted((first, last) for first, last, _ in spans)
    assert [SPLIT[2][first:last] for first, last in places] == [
        "Le conseil a décidé hier de fermer le marchè",
        "re du nord, dit le ministre des transports.",
    ]
    names = rows_below(out / "documents")
    (cut,) = (row["id"] for row in names if row["text"].startswith("Voici"))
    shown = CliRunner().invoke(finpile, ["show", str(out), cut, "--full"]).output
    assert "\ufffd" not in shown
    assert shown.count("è") == 1


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In Dolma's folders: two files of documents, one of them compressed, with a malformed line."""
    folder = tmp_path_factory.mktemp("dolma") / "documents"
    folder.mkdir()
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in made_up()]
    (folder / "a.jsonl").write_text("".join(lines[::2]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join([*lines[1::2], '{"text":\n']).encode()))
    return folder


@pytest.fixture(scope="module")
def out(inputs: Path) -> Path:
    out = inputs.parent / "out"
    command = [
        "dedup",
        str(inputs),
        "-o",
        str(out),
        "--substring-min-length",
        "80",
        "--annotate",
        "--workers",
        "1",
        "--json",
    ]
    done = CliRunner().invoke(finpile, command)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["attributes"] == f"{out}/attributes"
    return out


def lines_of(out: Path, name: str) -> list[dict[str, Any]]:
    with gzip.open(out / "attributes" / "finpile" / name, "rt") as file:
        return [json.loads(line) for line in file]


def rows_of(out: Path) -> list[dict[str, Any]]:
    files = sorted((out / "attributes" / "parquet").glob("*.parquet"))
    return [row for path in files for row in pq.read_table(path, partitioning=None).to_pylist()]


def documents(inputs: Path) -> dict[str, list[dict[str, Any]]]:
    compressed = gzip.decompress((inputs / "b.jsonl.gz").read_bytes()).decode()
    texts = {"a.jsonl.gz": (inputs / "a.jsonl").read_text(), "b.jsonl.gz": compressed}
    return {
        name: [json.loads(line) for line in text.splitlines() if line.endswith("}")] for name, text in texts.items()
    }


def spans(line: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    for name, found in line["attributes"].items():
        if not name.endswith("__group_size"):
            yield from ((name, first, last) for first, last, _ in found)


def test_lines_are_those_of_the_inputs_in_their_order(inputs: Path, out: Path) -> None:
    for name, rows in documents(inputs).items():
        assert [line["id"] for line in lines_of(out, name)] == [row["id"] for row in rows]


def test_removing_what_attributes_name_gives_what_the_run_keeps(inputs: Path, out: Path) -> None:
    """Documents with an attribute of their whole text go, other spans are cut."""
    kept = {}
    for name, rows in documents(inputs).items():
        for row, line in zip(rows, lines_of(out, name), strict=True):
            text, found = row["text"], list(spans(line))
            assert all(0 <= first < last <= len(text) for _, first, last in found)
            gone = [label for label, *_ in found if "duplicate" in label or "too_short" in label]
            if not gone:
                for _, first, last in sorted((one for one in found if "substring" in one[0]), key=lambda one: -one[1]):
                    text = text[:first] + text[last:]
                kept[row["id"]] = text
    published = rows_below(out / "documents")
    assert {json.loads(row["meta"])["id"]: row["text"] for row in published} == kept


def test_rows_are_those_of_the_ledger_of_a_run_in_memory(inputs: Path, out: Path) -> None:
    rows = [row for some in documents(inputs).values() for row in some]
    columns = {name: [row[name] for row in rows] for name in ("id", "text")}
    days = pa.array([row["timestamp"] for row in rows]).cast(pa.timestamp("s")).cast(pa.timestamp("s", "UTC"))
    table = pa.table({**columns, "timestamp": days})
    removed = deduplicate(table, substring=80).removed.to_pylist()
    expected = Counter((row["stage"], row["reason"]) for row in removed)
    assert Counter((row["stage"], row["reason"]) for row in rows_of(out) if not row["is_kept"]) == expected
    assert len({stage for stage, _ in expected}) == 3


def test_groups_are_a_kept_document_and_its_copies(inputs: Path, out: Path) -> None:
    ids = {row["id"]: row for row in rows_below(out / "documents")}
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of(out):
        if row["start"] is None:
            groups.setdefault(row["group"], []).append(row)
    sizes = sorted(len(rows) for rows in groups.values())
    assert sizes == [2, 2, 3]
    for group, rows in groups.items():
        assert {row["group_size"] for row in rows} == {len(rows)} == {ids[group]["num_copies"]}
        assert [row["id"] for row in rows if row["is_kept"]] == [group]
        assert {row["kept"] for row in rows} == {group}


def test_positions_in_parquet_are_bytes_of_the_input(inputs: Path, out: Path) -> None:
    by_name = {row["id"]: row["text"].encode() for rows in documents(inputs).values() for row in rows}
    ledger = rows_below(out / "removed")
    cut = {(row["id"], row["removed_text"]) for row in ledger if row["start"] is not None}
    found = {
        (row["id"], by_name[row["name"]][row["start"] : row["end"]]) for row in rows_of(out) if row["start"] is not None
    }
    assert found == cut


def test_verify_finds_edits_of_attributes(out: Path, tmp_path: Path) -> None:
    def failed() -> list[str]:
        return [check.detail for check in verify(str(out), groups=[attributes.checks]) if not check.ok]

    assert failed() == []
    path = out / "attributes" / "finpile" / "a.jsonl.gz"
    before = path.read_bytes()
    for content in (gzip.compress(gzip.decompress(before).replace(b"2.0", b"3.0", 1)), before[:-9]):
        path.write_bytes(content)
        assert failed() == ["attributes/finpile/a.jsonl.gz is not what the build gives"]
    path.write_bytes(before)
    assert failed() == []


@pytest.mark.parametrize("place", ["page", "footer", "statistics"])
def test_verify_names_damaged_attributes(out: Path, place: str) -> None:
    path = out / "attributes" / "parquet" / "a.jsonl.parquet"
    before = path.read_bytes()
    footer = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    at = {"page": 5, "footer": footer, "statistics": before.rindex(b"substring")}[place]
    path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
    (wrong,) = (check.detail for check in verify(str(out), groups=[attributes.checks]) if not check.ok)
    path.write_bytes(before)
    assert "attributes/parquet/a.jsonl.parquet" in wrong
