"""Search against a scan of all texts in plain Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from finpile.errors import ConfigError, IntegrityError
from finpile.history import search as module
from finpile.history.search import Found, Search
from tests.support.trees import rows_below


def texts_of(out: Path) -> list[tuple[dict[str, Any], bytes]]:
    """All rows with their texts: documents, then the ledger, by file."""
    found = []
    for folder in ("documents", "removed"):
        for row in rows_below(out / folder):
            found.append((row, row["removed_text"] if folder == "removed" else row["text"].encode()))
    return found


def counted(found: Found) -> dict[Any, tuple[int, int, int]]:
    by_place = {"kept": found.kept, **found.removed}
    return {place: (one.documents, one.spans, one.times) for place, one in by_place.items()}


def counted_by_a_scan(out: Path, words: bytes) -> dict[Any, tuple[int, int, int]]:
    counts: dict[Any, list[int]] = {"kept": [0, 0, 0]}
    for row, text in texts_of(out):
        times = len(text.split(words)) - 1
        if times:
            mine = counts.setdefault((row["stage"], row["reason"]) if "stage" in row else "kept", [0, 0, 0])
            mine[row.get("start") is not None] += 1
            mine[2] += times
    return {place: (documents, spans, times) for place, (documents, spans, times) in counts.items()}


WORDS = [b"on Thursday", b"the", b"\n", b"a", b"No such words", b"\xff", "é".encode(), b"aa", b"  "]


@pytest.mark.parametrize("words", WORDS, ids=repr)
@pytest.mark.parametrize("part_bytes", [1, 64 << 20])
def test_counts_and_matches_are_those_of_a_scan(
    words: bytes, part_bytes: int, sample_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PART_BYTES", part_bytes)
    found = Search(str(sample_build)).find(words, limit=1 << 30)
    assert counted(found) == counted_by_a_scan(sample_build, words)
    having = [(row, text) for row, text in texts_of(sample_build) if words in text]
    assert [(match.row["id"], match.row["stage"], match.times, match.offset) for match in found.matches] == [
        (row["id"], row.get("stage"), text.count(words), text.find(words)) for row, text in having
    ]
    assert Search(str(sample_build)).find(words, limit=3).matches == found.matches[:3]


def test_sentence_of_the_sample_is_found_where_it_was_removed(sample_build: Path) -> None:
    """The near duplicate of the README."""
    found = Search(str(sample_build)).find(b"Parking around the old customs house will be free on Thursday", limit=9)
    (removed,) = [match for match in found.matches if match.row["stage"] == "near"]
    assert removed.row["id"] == "ac17575a73c05570ee1cb7bfb417faf8"
    assert removed.row["duplicate_of"] == "5703a9de492a77743f07980adab91353"


@pytest.mark.parametrize("size", range(56, 66))
def test_text_around_the_words_begins_and_ends_with_whole_characters(size: int) -> None:
    """Each of 3 bytes, at every place of the cut."""
    left, right = "x" + "€" * size, "€" * size + "x"
    match = module._match({}, f"{left}WORDS{right}".encode(), b"WORDS", 1)
    assert left.endswith(match.before) and right.startswith(match.after)
    assert {len(match.before), len(match.after)} <= {19, 20}


def test_no_words_are_refused(sample_build: Path) -> None:
    with pytest.raises(ConfigError, match="say what to search for"):
        Search(str(sample_build)).find(b"", limit=1)


def test_damaged_file_is_an_error_that_names_it(copy_of_sample: Path) -> None:
    (path,) = (copy_of_sample / "removed" / "stage=near").glob("*.parquet")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IntegrityError, match=f"{path} has .* bytes, expected"):
        Search(str(copy_of_sample)).find(b"x", limit=1)
