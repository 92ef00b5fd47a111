"""Counts of stages follow from where documents ended, add up, and are taken back."""

from __future__ import annotations

from collections import Counter

from finpile.counts.stages import Counts, StageCounts
from finpile.documents.digest import to_hex

NEWS = ("FinPile", "News")


def removed(reason: str, num_docs: int, num_bytes: int, num_spans: int = 0) -> dict[str, object]:
    """A row of `count_removed`."""
    counts = {"reason": reason, "num_docs": num_docs, "num_bytes": num_bytes, "num_spans": num_spans}
    return {"dataset": NEWS[0], "source": NEWS[1], **counts}


#: Of 12 records one was unreadable; `clean` removed 2 and cut 3 spans; 1 was a copy, and 5 bytes were cut from others.
LEDGER = [
    {"stage": "ingest", "removed": [removed("unreadable_record", 1, 40)]},
    {"stage": "clean", "removed": [removed("empty_text", 2, 10), removed("c4_line", 0, 30, 3)]},
    {"stage": "exact", "removed": [removed("duplicate", 1, 100)]},
    {"stage": "substring", "removed": [removed("repeated", 0, 5, 2)]},
]
DOCUMENTS = [
    {"dataset": NEWS[0], "source": NEWS[1], "documents": 6, "text_bytes": 600},
    {"dataset": NEWS[0], "source": NEWS[1], "documents": 2, "text_bytes": 195},
]


def test_counts_of_stages_are_those_of_where_documents_ended() -> None:
    counts = StageCounts.of_published(DOCUMENTS, LEDGER)
    assert counts.of("ingest", NEWS) == Counts(
        documents=11, removed=Counter({"unreadable_record": 1}), removed_bytes=40
    )
    assert counts.of("clean", NEWS) == Counts(
        documents=9,
        text_bytes=900,
        removed=Counter({"empty_text": 2, "c4_line": 0}),
        removed_bytes=40,
        spans=3,
    )
    assert counts.of("clean", NEWS).value("removed") == {"empty_text": 2}
    assert counts.total("exact").num_removed == 1
    assert (counts.total("substring").num_removed, counts.total("substring").spans) == (0, 2)
    assert counts.of("clean", ("FinPile", "Web")) == Counts()


def test_parts_are_documents_that_ingest_did_not_read() -> None:
    counts = StageCounts.of_published(DOCUMENTS, LEDGER)
    counts.add_parts(NEWS, 3)
    assert counts.of("ingest", NEWS).documents == 8
    assert (counts.of("clean", NEWS).documents, counts.of("clean", NEWS).parts_more) == (9, 3)


def test_what_is_added_can_be_taken_back() -> None:
    counts, other = StageCounts.of_published(DOCUMENTS, LEDGER), StageCounts.of_published(DOCUMENTS, LEDGER)
    other.change("clean", NEWS, Counts(digest=7, undated=2))
    counts.merge(other)
    counts.merge(other, -1)
    for entry in LEDGER:
        counts.add_removed(str(entry["stage"]), entry["removed"], -1)  # type: ignore[arg-type]
    assert counts.of("clean", NEWS).value("removed") == {}
    assert (counts.of("ingest", NEWS).documents, counts.of("clean", NEWS).text_bytes) == (8, 795)


def test_a_row_of_the_manifest_is_changed_in_the_counts_that_it_has() -> None:
    """A document of 10 bytes that `clean` removed as empty is taken down: now it passes, without its text."""
    row = {"source": "News", "files": 3, "documents": 9, "removed": {"empty_text": 1}, "removed_bytes": 10, "digest": 5}
    changes = StageCounts()
    changes.add_removed("clean", [removed("empty_text", 1, 10)], -1)
    changes.add_removed("takedown", [removed("empty_text", 1, 0)])
    changes.change("clean", NEWS, Counts(digest=6), -1)
    assert changes.of("ingest", NEWS).documents == 0
    assert changes.of("clean", NEWS).on(row) == {
        "source": "News",
        "files": 3,
        "documents": 10,
        "removed": {},
        "removed_bytes": 0,
        "digest": to_hex((5 - 6) % (1 << 128)),
    }
