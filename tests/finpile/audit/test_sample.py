"""Samples are those rows of the ledger whose digests are smallest, and hold no text."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from finpile import open_ledger
from finpile.audit.sample import NEAR, Item, Stratum, _pairs, _shown, draw, open_sample
from finpile.errors import InputError
from finpile.explorer.corpus import Corpus
from finpile.explorer.pairs import Compared


def ignore(amount: float) -> None:
    """No progress is shown."""


def place(item: Item) -> tuple[object, ...]:
    return (item.stage, item.source, item.id, item.reason, item.start, item.end, item.other)


def test_each_stratum_has_its_removals_or_as_many_as_are_asked_for(sample_build: Path) -> None:
    rows = open_ledger(str(sample_build)).to_table().to_pylist()
    removals = Counter(
        Stratum("removal", row["stage"], f"{row['dataset']}/{row['source']}")
        for row in rows
        if row["start"] is None or row["end"] > row["start"]
    )
    sample = draw(Corpus.open(str(sample_build)), 3, 0)
    assert sample.removals == removals
    assert max(removals.values()) > 3
    assert Counter(item.stratum for item in sample.items) == {key: min(3, size) for key, size in removals.items()}
    known = {
        (row["stage"], f"{row['dataset']}/{row['source']}", row["id"], row["reason"], row["start"], row["end"])
        for row in rows
    }
    assert all(place(item)[:-1] in known for item in sample.items)


def test_a_larger_sample_has_the_items_of_a_smaller_one(sample_build: Path) -> None:
    corpus = Corpus.open(str(sample_build))
    small, large = draw(corpus, 2, 0), draw(corpus, 30, 0)
    assert set(small.items) < set(large.items)
    assert large.items[: len(small.removals)] == small.items[: len(small.removals)]  # the first of each stratum


def test_the_order_of_files_does_not_matter(sample_build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = Corpus.open(str(sample_build))
    expected = draw(corpus, 3, 500)
    from finpile.output.published_files import PublishedFiles

    below = PublishedFiles.below
    monkeypatch.setattr(PublishedFiles, "below", lambda self, *folders: below(self, *folders)[::-1])
    assert set(draw(corpus, 3, 500).items) == set(expected.items)


@pytest.fixture
def copied(sample_build: Path, tmp_path: Path) -> Path:
    shutil.copytree(sample_build, tmp_path / "out", ignore=shutil.ignore_patterns(".work", "tokens"))
    return tmp_path / "out"


def test_the_file_of_a_sample_has_no_text_and_is_made_again_for_other_sizes(copied: Path) -> None:
    corpus = Corpus.open(str(copied))
    sample = open_sample(corpus, 4, 500, ignore)
    file = copied / "audit" / "sample.json"
    content = file.read_bytes()
    for row in open_ledger(str(copied)).to_table().to_pylist():
        for line in row["removed_text"].split(b"\n"):
            assert len(line) < 20 or line not in content
    before = file.stat().st_mtime_ns
    assert open_sample(corpus, None, None, ignore) == sample
    assert file.stat().st_mtime_ns == before
    assert len(open_sample(corpus, 1, None, ignore).items) < len(sample.items)
    assert open_sample(corpus, 4, 500, ignore) == sample
    assert file.read_bytes() == content


def test_a_damaged_file_is_named(copied: Path) -> None:
    corpus = Corpus.open(str(copied))
    open_sample(corpus, 1, 0, ignore)
    file = copied / "audit" / "sample.json"
    value = json.loads(file.read_text())
    for damaged in ("{", "[]", "{}", json.dumps({**value, "items": [{}]}), json.dumps({**value, "kept": 5})):
        file.write_text(damaged)
        with pytest.raises(InputError, match=r"sample\.json is damaged .*: delete it"):
            open_sample(corpus, None, None, ignore)


def test_of_a_group_all_but_one_have_a_document_before_them() -> None:
    """Three duplicates and one pair; the order is that of the second halves of ids."""
    a, b, c, d, e = (f"{first * 16}{second * 16}" for first, second in ("05", "14", "23", "32", "41"))
    known = [(a, b, 0.8), (c, a, 0.75), (b, c, 0.7), (d, e, 0.65)]
    pairs = [{"a": one, "b": other, "similarity": value} for one, other, value in known]
    compared = Compared(
        limit=0.8,
        numbers="keep",
        sampled=dict.fromkeys((a, b, c, d), "D/A"),
        num_documents={"D/A": 9},
        num_compared=9,
        complete=True,
        pairs=pairs,
    )
    found = {row["id"]: (row["other"], row["similarity"]) for row in _pairs(compared)}
    assert found == {a: (b, 0.8), b: (c, 0.7), d: (e, 0.65)}
    assert all(row["stage"] == NEAR and row["source"] == "D/A" for row in _pairs(compared))


def test_a_judgement_is_bound_to_the_texts() -> None:
    row = {"kind": "removal", "stage": "near", "reason": "r", "id": "a", "start": None, "end": None, "other": "b"}
    cuts = [
        {"stage": "substring", "reason": "s", "start": start, "end": start + 2, "duplicate_of": None}
        | {"duplicate_offset": None, "detail": "", "removed_text": text}
        for start, text in ((0, "ab"), (9, "cd"))
    ]
    known = {"a": {"document": None, "removals": cuts[:1]}, "b": {"document": {"text": "x"}, "removals": cuts}}
    shown = _shown(row, known)
    other_order = {**known, "b": {**known["b"], "removals": cuts[::-1]}}
    assert _shown(row, other_order) == shown
    other_kept = {**known, "b": {"document": {"text": "y"}, "removals": cuts}}
    other_text = {**known, "a": {"document": None, "removals": [{**cuts[0], "removed_text": "aB"}]}}
    found = [_shown(row, other_kept), _shown(row, other_text), _shown({**row, "start": 0, "end": 2}, known)]
    assert len({shown, *found}) == 4
