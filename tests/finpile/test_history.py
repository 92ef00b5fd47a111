"""The history of a document has all rows of its id; an unknown or ambiguous id is refused with a remedy."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage
from finpile.documents.ledger import Removal, ledger_table
from finpile.documents.names import MIN_ID_DIGITS, have_names, names_of
from finpile.errors import InputError
from finpile.history.document import document_history, find_ids, segments
from finpile.plugins.stages import names
from tests.support.trees import rows_below

Row = dict[str, Any]


def test_history_has_every_row_of_an_id(sample_build: Path) -> None:
    """Against a scan of everything: a kept document, one with duplicates, one with cuts, and each way of removal."""
    documents, ledger = rows_below(sample_build / "documents"), rows_below(sample_build / "removed")
    asked = {row["stage"] + row["reason"]: row["id"] for row in ledger}
    asked |= {
        "kept": documents[0]["id"],
        "kept copy": next(row["duplicate_of"] for row in ledger if row["duplicate_of"]),
    }
    assert len(asked) > 15
    for wanted in asked.values():
        history = document_history(str(sample_build), wanted)
        assert history.id == wanted
        assert history.document == next((row for row in documents if row["id"] == wanted), None)
        expected = [row for row in ledger if row["id"] == wanted]
        assert sorted(map(repr, history.removals)) == sorted(map(repr, expected))
        assert sorted(map(repr, history.copies)) == sorted(repr(row) for row in ledger if row["duplicate_of"] == wanted)


@pytest.mark.parametrize("find", [document_history, lambda out, name: find_ids(out, [name])])
def test_a_folder_that_is_no_build_is_called_that(tmp_path: Path, find: Callable[[str, str], object]) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError, match="holds no finished build"):
            find(str(folder), "a.txt")


def test_removed_document_has_no_text_but_a_reason(sample_build: Path) -> None:
    dropped = next(row for row in rows_below(sample_build / "removed") if row["stage"] == "exact")
    history = document_history(str(sample_build), dropped["id"])
    assert history.document is None
    assert [row["reason"] for row in history.removals] == ["exact_duplicate"]
    kept = document_history(str(sample_build), dropped["duplicate_of"])
    assert kept.document is not None
    assert kept.document["text"].encode() == dropped["removed_text"]
    assert dropped["id"] in {row["id"] for row in kept.copies}


def test_cuts_are_by_stage_then_in_the_order_of_the_text(sample_build: Path) -> None:
    ledger = rows_below(sample_build / "removed")
    stages_of = {row["id"]: {other["stage"] for other in ledger if other["id"] == row["id"]} for row in ledger}
    cut_twice = next(name for name, found in stages_of.items() if len(found) > 1)
    order = [name for name in names() if name in stages_of[cut_twice]]
    places = [
        (order.index(row["stage"]), row["start"] is None, row["start"])
        for row in document_history(str(sample_build), cut_twice).removals
    ]
    assert len(places) > 1
    assert places == sorted(places)


def test_unique_prefix_of_an_id_is_enough(sample_build: Path) -> None:
    ids = sorted({row["id"] for folder in ("documents", "removed") for row in rows_below(sample_build / folder)})
    whole = ids[len(ids) // 2]
    prefix = next(
        whole[:size] for size in range(MIN_ID_DIGITS, 33) if sum(other.startswith(whole[:size]) for other in ids) == 1
    )
    assert document_history(str(sample_build), prefix) == document_history(str(sample_build), whole)


def removed_as(out: Path, *ids: str) -> Path:
    common: Row = {"dataset": "D", "source": "S", "locator": "x", "stage": "clean", "reason": "empty_text"}
    table = ledger_table(Removal(id=one, **common) for one in ids)
    storage.write_parquet(str(out / "removed/stage=clean/part-00000-of-00001.parquet"), table)
    return out


def test_prefix_of_several_ids_is_refused(tmp_path: Path) -> None:
    out = str(removed_as(tmp_path, "abcd1" + "0" * 27, "abcd2" + "0" * 27, "abcd2" + "1" * 27))
    with pytest.raises(InputError, match=r"3 documents of .+ are called 'abcd': abcd1000000. x, abcd20.+: name one"):
        document_history(out, "abcd")
    assert document_history(out, "abcd1").id == "abcd1" + "0" * 27


@pytest.mark.parametrize("name", ["", "a", "abc", "zzzz", "0" * 31 + "z", "wire.jsonl", "news", "Nws.txt", ".*"])
def test_unknown_name_is_refused(name: str, sample_build: Path) -> None:
    with pytest.raises(InputError, match=rf"no document of .+ has the id, locator or file '{re.escape(name)}'"):
        document_history(str(sample_build), name)


def reference_names(locator: str) -> set[str]:
    """Each end of the locator from a separator on, with the record or without."""
    whole = {locator} | {locator[:at] for at, sign in enumerate(locator) if sign == "#"}
    return {one[at:] for one in whole for at in range(len(one)) if at == 0 or one[at - 1] in "/!"}


@given(st.text("ab/!#.(+", max_size=12), st.text("ab/!#.(+", min_size=1, max_size=6))
def test_names_of_a_locator_are_its_ends(locator: str, name: str) -> None:
    assert names_of(locator) == reference_names(locator)
    found = have_names(pa.chunked_array([[locator]]), [name, "another"])
    assert found.to_pylist() == [name in reference_names(locator)]


def test_every_name_of_a_document_finds_it_or_lists_those_that_have_it(sample_build: Path) -> None:
    rows = [*rows_below(sample_build / "documents"), *rows_below(sample_build / "removed")]
    locators = {row["id"]: row["locator"] for row in rows}
    named: dict[str, set[str]] = defaultdict(set)
    for identifier, locator in locators.items():
        for name in reference_names(locator):
            named[name].add(identifier)
    unique = {name: next(iter(ids)) for name, ids in named.items() if len(ids) == 1}
    assert len(unique) > len(locators)
    assert find_ids(str(sample_build), unique) == unique
    file = next(name for name in unique if name.endswith(".txt") and "/" not in name)
    assert document_history(str(sample_build), file) == document_history(str(sample_build), unique[file])
    shared = sorted(locators[one] for one in named["wire-00000.jsonl.zst"])
    with pytest.raises(InputError) as raised:
        document_history(str(sample_build), "wire-00000.jsonl.zst")
    assert f"{len(shared)} documents of" in str(raised.value)
    assert all(locator in str(raised.value) for locator in shared[:5])


def test_whole_ids_are_not_looked_for(tmp_path: Path) -> None:
    assert find_ids(str(tmp_path / "absent"), ["0" * 32]) == {"0" * 32: "0" * 32}


def test_folder_without_a_build_is_refused(tmp_path: Path) -> None:
    for out in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError):
            document_history(str(out), "abcd")


@given(st.binary(max_size=40), st.data())
def test_segments_reconstruct_the_original_text(text: bytes, data: st.DataObject) -> None:
    """After random cuts of two stages, the segments give the original text and the stage that removed each byte."""
    left, owner, rows = text, ["kept"] * len(text), []
    places = list(range(len(text)))
    for stage in ("clean", "substring"):
        marks = data.draw(st.lists(st.booleans(), min_size=len(left), max_size=len(left)))
        start = 0
        for dropped, run in itertools.groupby(marks):
            end = start + len(list(run))
            if dropped:
                rows.append({"stage": stage, "start": start, "end": end, "removed_text": left[start:end]})
                for at in range(start, end):
                    owner[places[at]] = stage
            start = end
        kept = [at for at, dropped in enumerate(marks) if not dropped]
        left, places = bytes(left[at] for at in kept), [places[at] for at in kept]
    found = segments(left, rows[::-1])
    assert b"".join(segment.text for segment in found) == text
    reported = [row["stage"] if row else "kept" for piece, row in found for _ in piece]
    assert reported == owner
