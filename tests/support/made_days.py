"""Small corpora for the tests of snapshots: documents by day, and what a snapshot holds."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa

from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, published_files, read_copies, with_copies
from finpile.verify import verify
from tests.support.json_lines import json_lines

WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index fund".split()  # noqa: SIM905
CORPUS: dict[str, Any] = {
    "name": "days",
    "sources": [
        {
            "name": name,
            "dataset": dataset,
            "format": "jsonl",
            "paths": [f"{name}*.jsonl"],
            "template_group": "source",
            "clean": {"filters": filters},
        }
        for name, dataset, filters in (
            ("News", "FinPile", []),
            ("Web", "FinPile", ["pii"]),
            ("Mail", "Other", [{"c4": {"min_sentences": 1}}, "pii"]),
        )
    ],
    "dedup": {"near": "fast", "substring": {"min_length": 80, "min_chars": 20}, "templates": {"min_documents": 3}},
    "heldout": {"after": date(2021, 1, 6), "undated": "drop", "overlap": {"min_length": 120}},
}
#: Keys of a corpus with tokens.
TOKENS: dict[str, Any] = {
    "tokenizer": {"vocab_size": 300, "chunk_vocab_size": 300},
    "tokens": {"sequence_length": 16},
}

Record = dict[str, Any]


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=12)).capitalize() + f" {draw.randrange(10**6)}."


def make_days(seed: int, num_days: int) -> list[list[tuple[str, Record]]]:
    """Documents by day, each with its source: fresh ones, copies, near copies, shared passages, common lines."""
    draw = random.Random(seed)
    passages = [" ".join(sentence(draw) for _ in range(3)) for _ in range(4)]
    footer = "Read the terms of use of this newsletter before you subscribe to it."
    earlier: list[str] = []
    days: list[list[tuple[str, Record]]] = [[(source, {"text": sentence(draw)}) for source in ("News", "Web", "Mail")]]
    for day in range(num_days):
        found = []
        for _ in range(draw.randint(1, 4)):
            text = "\n".join(sentence(draw) for _ in range(8))
            kind = draw.choice(("fresh", "copy", "near", "passage", "footer", "footer", "footer", "mail"))
            if kind == "copy" and earlier:
                text = draw.choice(earlier)
            elif kind == "near" and earlier:
                text = f"{draw.choice(earlier)} {draw.choice(WORDS)}"
            elif kind == "passage":
                text = f"{text}\n{draw.choice(passages)}"
            elif kind == "mail":
                text = f"{text}\nWrite to desk@north.example. {{x}}"
            elif kind == "footer":
                text = f"{text}\n{footer}"
            earlier.append(text)
            source = draw.choice(("News", "News", "Web", "Mail"))
            hour = draw.choice(("00:00:00", "08:00:00", "08:00:00", "17:30:00"))
            moment = None if draw.random() < 0.05 else f"2021-01-{1 + day % 28:02d}T{hour}Z"
            found.append((source, {"text": text, "timestamp": moment}))
        days.append(found)
    return days


def write_batch(folder: Path, name: str, *days: list[tuple[str, Record]]) -> None:
    """The documents of days, as one file for each source, with a malformed line."""
    documents = [document for day in days for document in day]
    for source in sorted({source for source, _ in documents}):
        lines = json_lines(record for where, record in documents if where == source)
        (folder / f"{source}-{name}.jsonl").write_bytes(lines + b'{"text":\n')


def documents_of(out: Path | str, number: int | None = None) -> pa.Table:
    """The documents of a snapshot by id."""
    layout = Layout(str(out))
    table = pa.concat_tables(file.table() for file in published_files(layout, number).below("documents"))
    return with_copies(table, read_copies(layout, load_snapshot(layout, number))).sort_by("id")


def ledger_of(out: Path, number: int | None = None) -> list[Mapping[str, Any]]:
    """The rows of the ledger of a snapshot, in one order."""
    tables = (file.table() for file in published_files(Layout(str(out)), number).below("removed"))
    return sorted((row for table in tables for row in table.to_pylist()), key=repr)


def failed(out: Path | str) -> list[Any]:
    return [check for check in verify(str(out)) if not check.ok]
