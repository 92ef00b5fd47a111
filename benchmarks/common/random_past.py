"""Small random corpora in order of time, with and without dates, and what a day's corpus has in common with its build.

Each record is a file of its own, so that its document has the same id without the others. Corpora have exact and near
copies, shared passages, common lines, ties in time, dates of mixed precision, dates that cannot be true, and up to 40%
records without a date. Their settings cover all dedup stages, several rounds of `substring` among them.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from finpile.as_of import Cut
from finpile.output.layout import Layout, read_published
from finpile.output.manifest import load_manifest, published
from finpile.output.snapshots import read_copies, with_copies
from finpile.output.takedowns import read_takedowns

Record = dict[str, Any]

_WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index".split()  # noqa: SIM905
_FOOTER = "Read the terms of use of this letter before you subscribe to it."
_FIRST, _NUM_DAYS = datetime(2019, 1, 1), 700
_MOST_UNDATED = 0.4
#: The counts of `clean` that documents and ledger give.
_COUNTED = (
    "documents",
    "removed",
    "removed_bytes",
    "spans",
    "text_bytes",
    "undated",
    "unreadable_dates",
    "digest",
    "digest_before_filters",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RandomPast:
    """A corpus: its records by number, each of the source that its number gives, and its settings."""

    records: Mapping[int, Record]
    settings: Mapping[str, Any]

    @classmethod
    def of(cls, seed: int, **settings: Any) -> RandomPast:
        """The corpus of a number; `settings` replace keys of its corpus file."""
        draw = random.Random(seed)
        records = dict(enumerate(_records(draw)))
        return cls(records=records, settings={**_settings(draw), **settings})

    def write(self, folder: Path, numbers: Iterable[int] | None = None) -> Path:
        """Writes the files of the records of these numbers, by default of all; returns the corpus file."""
        for number in self.records if numbers is None else numbers:
            name = _SOURCES[number % len(_SOURCES)]["name"]
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / f"{number:03d}.jsonl").write_text(json.dumps(self.records[number]) + "\n")
        known = {"format": "jsonl", "fields": {"timestamp": "date"}}
        group = {"template_group": "meta.host"} if self.settings["dedup"].get("templates") else {}
        sources = [
            {**source, **known, **group, "paths": [f"{source['name']}/*.jsonl"]}
            for source in _SOURCES
            if (folder / source["name"]).exists()
        ]
        path = folder / "corpus.yaml"
        path.write_text(yaml.safe_dump({"name": "past", "sources": sources, **self.settings}, sort_keys=False))
        return path

    def of_day(self, cut: Cut) -> list[int]:
        """The records that were there on a day, from the text of their dates: an obvious reading of the rule."""
        return [number for number, record in self.records.items() if _is_there(record["date"], cut)]

    def a_day(self, draw: random.Random) -> date:
        """A day between the dates of the records."""
        return (_FIRST + timedelta(days=draw.randrange(_NUM_DAYS // 8, _NUM_DAYS))).date()


_SOURCES: tuple[dict[str, Any], ...] = (
    {"name": "News", "dataset": "FinPile"},
    {"name": "Web", "dataset": "FinPile", "clean": {"filters": [{"c4": {"min_sentences": 3}}, "pii"]}},
    {"name": "Mail", "dataset": "Other", "clean": {"filters": ["pii"]}},
)


def _settings(draw: random.Random) -> dict[str, Any]:
    templates = {"min_documents": draw.randint(1, 3)} if draw.random() < 0.6 else None
    rounds = draw.choice((1, 1, 2, 3, "fixpoint"))
    substring = {"min_length": 50, "rounds": rounds, "snap": draw.choice(("none", "word", "line"))}
    dedup = {
        "order": "time",
        "exact_fold": draw.choice(("none", "none", "case_whitespace")),
        "scope": draw.choice(("dataset", "corpus")),
        "near": draw.choice((None, "fast")),
        "substring": substring if draw.random() < 0.6 else None,
        **({"templates": templates} if templates else {}),
    }
    undated = draw.choice(("train", "heldout", "heldout", "drop"))
    overlap = {"min_length": 60, "max_documents": draw.randint(1, 3), "near": draw.choice((None, "fast"))}
    held_out = {"after": date(2020, 6, 30), "undated": undated}
    if undated != "train" and draw.random() < 0.7:
        held_out["overlap"] = overlap
    return {
        "dedup": dedup,
        **({"heldout": held_out} if draw.random() < 0.8 else {}),
        "tokenizer": {"vocab_size": 320, "chunks": 1, "chunk_vocab_size": 320},
        "tokens": {"sequence_length": 32},
    }


def _records(draw: random.Random) -> list[Record]:
    passages = [_sentences(draw, 2) for _ in range(3)]
    fresh = [_sentences(draw, draw.randint(3, 7)) for _ in range(draw.randint(12, 20))]
    texts = list(fresh)
    for _ in range(draw.randint(18, 30)):
        text = _sentences(draw, draw.randint(2, 5))
        kind = draw.choice(("copy", "near", "passage", "joined", "footer", "footer", "footer", "short", "cut copy"))
        if kind == "copy":
            text = draw.choice(fresh)
        elif kind == "near":
            text = f"{draw.choice(fresh)} {draw.choice(_WORDS)}."
        elif kind == "passage":
            text = f"{text}\n{draw.choice(passages)}\n{_sentences(draw, 2)}"
        elif kind == "joined":
            first, second = draw.sample(passages, 2)
            text = f"{_sentences(draw, 1)}\n{first[: len(first) // 2]}{second}{first[len(first) // 2 :]}"
        elif kind == "footer":
            text = f"{text}\n{_FOOTER}"
        elif kind == "short":
            text = f"{_FOOTER}\nWrite to desk@north.example."
        elif kind == "cut copy":
            text = f"{draw.choice(fresh)}\n{draw.choice((_FOOTER, draw.choice(passages)))}"
        texts.append(text)
    draw.shuffle(texts)
    undated, moments = draw.uniform(0, _MOST_UNDATED), [_moment(draw) for _ in range(len(texts) // 2)]
    rows = []
    for text in texts:
        written = None if draw.random() < undated else _written(draw, draw.choice(moments))
        rows.append({"text": text, "date": written, "host": draw.choice("ab")})
    rows += [{"text": _sentences(draw, 9), "date": "2019-01-02", "host": "a"} for _ in _SOURCES]
    return rows


def _sentences(draw: random.Random, number: int) -> str:
    return "\n".join(
        " ".join(draw.choices(_WORDS, k=9)).capitalize() + f" {draw.randrange(10**5)}." for _ in range(number)
    )


def _moment(draw: random.Random) -> datetime:
    return _FIRST + timedelta(seconds=draw.randrange(_NUM_DAYS * 86_400))


def _written(draw: random.Random, moment: datetime) -> str:
    if draw.random() < 0.05:
        return f"1850-{moment:%m-%d}"
    form = draw.choice(("%Y-%m-%d", "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m", "%Y"))
    return moment.strftime(form)


def _is_there(written: str | None, cut: Cut) -> bool:
    if written is None or written.startswith("1850"):
        return cut.undated
    if len(written) >= len("2019-01-01"):
        return date.fromisoformat(written[:10]) <= cut.day
    year, month = int(written[:4]), int(written[5:] or 12)
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1) <= cut.day


def differences(found: Path, expected: Path) -> list[str]:
    """What differs between the documents, rows of the ledger, tokenizers, tokens and counts of two corpora.

    Documents that were taken down count in none of both.
    """
    tables = [(folder, _rows(found, folder), _rows(expected, folder)) for folder in ("documents", "removed")]
    wrong = [
        f"{folder}: {row} is {'more' if row in mine else 'missing'}"
        for folder, mine, theirs in tables
        for row in sorted({*mine} ^ {*theirs})
    ]
    wrong += [
        f"{folder}: rows occur another number of times" for folder, mine, theirs in tables if len(mine) != len(theirs)
    ]
    for folder, suffix in (("tokenizer", ""), ("tokens", ".arrow")):
        if _files(found, folder, suffix) != _files(expected, folder, suffix):
            wrong.append(f"{folder}: other bytes")
    mine, theirs = (_counts(out) for out in (found, expected))
    wrong += [
        f"counts of clean: {name} {mine[name]}, {theirs[name]}" for name in _COUNTED if mine[name] != theirs[name]
    ]
    return wrong


def _rows(out: Path, folder: str) -> list[str]:
    layout = Layout(str(out))
    manifest = load_manifest(layout)
    copies, found = read_copies(layout, manifest), []
    for path in published(manifest, folder):
        if "/stage=takedown/" not in path:
            table = read_published(layout.root, path)
            table = with_copies(table, copies) if folder == "documents" else table
            found += [repr(sorted((name, str(value)) for name, value in row.items())) for row in table.to_pylist()]
    return found


def _files(out: Path, folder: str, suffix: str) -> dict[str, bytes]:
    paths = [path for path in (out / folder).rglob(f"*{suffix}") if path.is_file()]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def _counts(out: Path) -> dict[str, list[Any]]:
    layout = Layout(str(out))
    manifest = load_manifest(layout)
    gone = Counter(read_takedowns(layout, manifest)["source"].to_pylist())
    sources = next(stage["counts"]["sources"] for stage in manifest["stages"] if stage["stage"] == "clean")
    left = [{**row, "documents": row["documents"] - gone[row["source"]]} for row in sources]
    return {name: [row[name] for row in left if row["documents"]] for name in _COUNTED}
