"""`deduplicate`: one table, the same decisions as the pipelines."""

from __future__ import annotations

import random
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from finpile.config import HeldoutConfig, NearConfig, OverlapConfig, SubstringConfig, TemplatesConfig, load_config
from finpile.dedup import deduplicate
from finpile.documents.ledger import LEDGER_SCHEMA, restore
from finpile.errors import ConfigError, InputError
from tests.support.work_folders import clean_documents

_STAGES = ("exact", "near", "substring")
_LEDGER = [name for name in LEDGER_SCHEMA.names if name not in ("dataset", "source", "locator")]
_WORDS = ("shares", "bond", "yield", "oil", "gold", "rate", "bank", "court", "trade", "profit", "loss", "wheat", "port")


def rows_of(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    """The rows in an order of their own."""
    return sorted(table.select(names).to_pylist(), key=lambda row: repr(list(row.values())))


def test_sample_is_deduplicated_as_by_a_build(sample_build: Path, sample_config: Path) -> None:
    dedup = load_config(sample_config).dedup
    result = deduplicate(clean_documents(sample_build), near=dedup.near, substring=dedup.substring, scope=dedup.scope)
    built = ds.dataset(sample_build / "documents", partitioning="hive").to_table()
    names = ["id", "text", "num_copies"]
    assert rows_of(result.kept, names) == rows_of(built, names)
    ledger = ds.dataset(sample_build / "removed", partitioning="hive").to_table()
    decided = ledger.filter(pc.is_in(ledger["stage"].cast(pa.string()), pa.array(_STAGES)))
    assert decided.num_rows > 20
    assert rows_of(result.removed, _LEDGER) == rows_of(decided, _LEDGER)


def documents(num: int = 60) -> pa.Table:
    """Documents with ids and times; some are copies, some near copies, and some share a paragraph."""
    draw = random.Random(12)

    def sentence(size: int) -> str:
        return " ".join(draw.choices(_WORDS, k=size)).capitalize() + "."

    shared = sentence(60)
    texts = [" ".join(sentence(12) for _ in range(8)) for _ in range(num // 2)]
    texts += [texts[index] for index in range(num // 4)]
    texts += [texts[index].replace("gold", "gold and", 1) + " Fund." for index in range(5, 10)]
    texts += [f"{sentence(20)}\n{shared}\n{sentence(20)}" for _ in range(5)]
    texts.append(shared)
    draw.shuffle(texts)
    start = datetime(2020, 1, 1, tzinfo=UTC)
    times = [None if index % 7 == 0 else start + timedelta(days=draw.randrange(50)) for index in range(len(texts))]
    columns = {
        "id": [f"{draw.getrandbits(128):032x}" for _ in texts],
        "text": pa.array(texts, pa.large_string()),
        "timestamp": pa.array(times, pa.timestamp("s", tz="UTC")),
        "note": [f"note {index}" for index in range(len(texts))],
    }
    return pa.table(columns)


@pytest.mark.parametrize("substring", [None, SubstringConfig(min_length=100, rounds=2)])
def test_order_of_rows_does_not_matter(substring: SubstringConfig | None) -> None:
    table = documents()
    found = deduplicate(table, substring=substring)
    assert 0 < found.kept.num_rows < table.num_rows
    rows = list(range(table.num_rows))
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        again = deduplicate(table.take(pa.array(rows)), substring=substring)
        assert rows_of(again.kept, ["id", "text", "note"]) == rows_of(found.kept, ["id", "text", "note"])
        assert again.removed == found.removed


def test_kept_text_and_ledger_rebuild_the_input() -> None:
    table = documents()
    found = deduplicate(table, substring=SubstringConfig(min_length=100, rounds="fixpoint"))
    spans: dict[str, list[tuple[int, int, bytes]]] = {}
    texts = {row["id"]: row["text"].encode() for row in found.kept.to_pylist()}
    for row in found.removed.to_pylist():
        if row["start"] is None:
            assert row["id"] not in texts
            texts[row["id"]] = row["removed_text"]
        else:
            spans.setdefault(row["id"], []).append((row["start"], row["end"], row["removed_text"]))
    assert spans
    rebuilt = {name: restore(text, spans.get(name, [])) for name, text in texts.items()}
    assert rebuilt == {row["id"]: row["text"].encode() for row in table.to_pylist()}


def test_kept_rows_have_the_columns_types_and_order_of_the_input() -> None:
    table = documents().rename_columns(["id", "body", "timestamp", "note"])
    found = deduplicate(table, text="body", substring=100)
    assert found.kept.schema == table.schema
    ids = table["id"].to_pylist()
    assert found.kept["id"].to_pylist() == [name for name in ids if name in set(found.kept["id"].to_pylist())]
    assert found.removed.schema == LEDGER_SCHEMA


def test_first_of_equal_texts_is_kept_if_rows_have_no_ids() -> None:
    found = deduplicate(pa.table({"text": ["b", "a", "b", "b"]}), near=None)
    assert found.kept["text"].to_pylist() == ["b", "a"]
    assert found.removed.select(["id", "duplicate_of"]).to_pylist() == [
        {"id": "2", "duplicate_of": "0"},
        {"id": "3", "duplicate_of": "0"},
    ]


def test_smaller_priority_and_earlier_time_are_preferred() -> None:
    times = pa.array([datetime(2020, 1, day, tzinfo=UTC) for day in (1, 3, 2)])
    table = pa.table({"text": ["same"] * 3, "timestamp": times, "priority": pa.array([1, 0, 0], pa.int32())})
    assert deduplicate(table).removed["duplicate_of"].to_pylist() == ["2", "2"]


def test_copies_are_counted() -> None:
    table = pa.table({"text": ["same", "other", "same"], "num_copies": pa.array([2, 1, 3], pa.int32())})
    assert deduplicate(table).kept["num_copies"].to_pylist() == [5, 1]


def test_scope_dataset_keeps_a_copy_in_each_dataset() -> None:
    table = pa.table({"text": ["same"] * 3, "dataset": ["a", "b", "a"]})
    assert deduplicate(table).kept["dataset"].to_pylist() == ["a", "b"]
    assert deduplicate(table, scope="corpus").kept["dataset"].to_pylist() == ["a"]


def test_data_frames_are_accepted() -> None:
    texts = ["Oil rose.", "Gold fell.", "Oil rose."]
    for frame in (pd.DataFrame({"text": texts}), pl.DataFrame({"text": texts}), pa.record_batch({"text": texts})):
        assert deduplicate(frame).kept["text"].to_pylist() == texts[:2]


#: Types that hold strings and bytes: as Polars and other libraries export them, and at any depth.
_VIEWS = st.recursive(
    st.sampled_from([pa.string_view(), pa.binary_view(), pa.string(), pa.int64()]),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda kind: pa.list_(kind, 2)),
        inner.map(lambda kind: pa.map_(pa.string_view(), kind)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: pa.struct([(f"f{n}", k) for n, k in enumerate(kinds)])
        ),
    ),
    max_leaves=4,
)


def value_of(kind: pa.DataType, draw: random.Random, number: int) -> Any:
    """A value of a type; `number` is in most of its strings."""
    if draw.random() < 0.2:
        return None
    if pa.types.is_fixed_size_list(kind):
        return [value_of(kind.value_type, draw, number) for _ in range(kind.list_size)]
    if pa.types.is_map(kind):
        return [(f"key {part}", value_of(kind.item_type, draw, number)) for part in range(draw.randrange(3))]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [value_of(kind.value_type, draw, number) for _ in range(draw.randrange(3))]
    if pa.types.is_struct(kind):
        return {field.name: value_of(field.type, draw, number) for field in kind}
    text = f"value {number} of more than 12 bytes" if draw.random() < 0.5 else f"{number}"
    return number if pa.types.is_integer(kind) else text.encode() if kind == pa.binary_view() else text


@given(kind=_VIEWS, draw=st.randoms(use_true_random=False), start=st.integers(0, 2))
def test_values_of_any_nesting_of_views_come_back(kind: pa.DataType, draw: random.Random, start: int) -> None:
    values = [value_of(kind, draw, number) for number in range(8)]
    texts = ["same", "b", "c", "same", "same", "d", "b", "e"]
    whole = pa.table({"text": pa.array(texts, pa.string_view()), "value": pa.array(values, kind)})
    table = pa.concat_tables([whole.slice(start, 3), whole.slice(start + 3)])
    found = deduplicate(table, near=None)
    first = sorted(texts.index(text, start) for text in set(texts[start:]))
    assert found.kept["value"].to_pylist() == [whole["value"][row].as_py() for row in first]
    assert "view" not in str(found.kept.schema)


def test_polars_frames_come_back_with_their_types() -> None:
    frame = pl.DataFrame(
        {
            "text": ["Oil rose.", "Gold fell.", "Oil rose.", "Wheat was stable."],
            "dataset": pl.Series(["a", "b", "b", "a"], dtype=pl.Categorical),
            "kind": pl.Series(["x", "y", "y", "x"], dtype=pl.Enum(["x", "y"])),
            "tags": [["oil", "a tag of more than 12 bytes"], None, [], [None, "wheat"]],
            "facts": [{"by": "A", "data": b"\x00"}, {"by": None, "data": b""}, None, {"by": "B", "data": None}],
            "quotes": [[{"by": "A"}], [], None, [{"by": None}, {"by": "B"}]],
            "pair": pl.Series([["a", "b"], ["c", None], None, ["d", "e"]], dtype=pl.Array(pl.String, 2)),
            "labels": pl.Series([["a"], ["b", "a"], [], None], dtype=pl.List(pl.Categorical)),
            "raw": [b"\xff", None, b"", b"more than 12 bytes of it"],
            "empty": [None] * 4,
        }
    )
    kept = pl.DataFrame(deduplicate(frame, scope="corpus").kept)
    assert kept.schema == frame.schema
    assert_frame_equal(kept, frame[[0, 1, 3]])


def test_empty_table_gives_an_empty_result() -> None:
    found = deduplicate(pa.table({"text": pa.array([], pa.string())}), substring=100)
    assert found.kept.num_rows == found.removed.num_rows == 0


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"body": ["x"]}), "no column `text`; they have body"),
        (pa.table({"text": ["x", None]}), "column `text` is null in 1 row"),
        (pa.table({"text": ["x", "y"], "id": [1, None]}), "column `id` is null in 1 row"),
        (pa.table({"text": ["x", "y"], "priority": [1, None]}), "column `priority` is null in 1 row"),
        (pa.table({"text": [1]}), "column `text` is int64: expected large_string"),
        (pa.table({"text": ["x", "y"], "id": ["1", "1"]}), "two documents have the same id"),
        (pa.table({"text": ["x"], "timestamp": ["2020"]}), "column `timestamp` is string"),
        (pa.table({"text": ["x"], "num_copies": pa.array([None], pa.int32())}), "`num_copies` is int32 with 1 nulls"),
        (pa.table({"text": ["x"], "num_copies": [2.5]}), "column `num_copies` is double: expected whole numbers"),
        (pa.table({"text": ["x"] * 200, "num_copies": pa.array([1] * 200, pa.int8())}), "column `num_copies`: .*200"),
        (pa.table({"text": ["x"], "priority": [1 << 40]}), "column `priority`: .*1099511627776"),
        (pa.table([["x"], ["y"]], ["text", "text"]), "2 columns `text`: expected one of each name"),
        (["x"], "documents are of type list"),
        (pd.DataFrame({"text": ["x", "\ud800"]}, dtype=object), "a value of the documents has half of a character .*"),
        (pd.DataFrame({"text": ["x", 5]}), "a type that Arrow lacks .*: cast it"),
        (pl.DataFrame({"text": ["x"], "n": pl.Series([1], dtype=pl.Int128)}), "a type that Arrow lacks .*: cast it"),
        (
            pa.table({"text": ["x"], "run": pa.RunEndEncodedArray.from_arrays([1], ["x"])}),
            "column `run` is run_end_encoded.*: Arrow cannot select rows of it; cast it",
        ),
    ],
)
def test_unusable_documents_are_refused(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        deduplicate(table)


def test_the_order_of_time_needs_dates() -> None:
    dates = pa.array([datetime(2020, 1, day, tzinfo=UTC) for day in (2, 1)])
    with pytest.raises(InputError, match="no column `timestamp`: the order of time reads it"):
        deduplicate(pa.table({"text": ["same"] * 2, "published": dates}), order="time")


def test_contradicting_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="exact: true"):
        deduplicate(pa.table({"text": ["x"]}), exact=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scope": "corpse"}, "dedup.scope: 'corpse' is not known; did you mean `corpus`?"),
        ({"order": "times"}, "dedup.order: 'times' is not known; did you mean `time`?"),
        ({"exact_fold": "cases"}, "dedup.exact_fold: 'cases' is not known; did you mean `case`?"),
        ({"near": 5}, "near is 5: expected a NearConfig or None"),
        ({"substring": "200"}, "substring is '200': expected a SubstringConfig or None"),
        ({"heldout": "heldout"}, "heldout is 'heldout': expected a HeldoutConfig or None"),
        ({"contamination": "sets"}, "contamination is 'sets': expected a ContaminationConfig or None"),
        ({"template_group": "hosts"}, "template_group: 'hosts' is not known; did you mean `host`?"),
    ],
)
def test_misspelt_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        deduplicate(pa.table({"text": ["x"], "source": ["a"]}), templates=TemplatesConfig(), **settings)


@pytest.mark.parametrize(
    "setting", [(NearConfig, {"numbers": "Keep"}), (SubstringConfig, {"keep": "last"}), (SubstringConfig, {"snap": ""})]
)
def test_misspelt_values_of_settings_are_refused(setting: tuple[type, dict[str, Any]]) -> None:
    kind, values = setting
    with pytest.raises(ConfigError, match="is not known"):
        kind(**values)


def test_overlap_searches_near_duplicates_among_distinct_texts() -> None:
    """Of two equal held-out texts, one would be compared with training text."""
    heldout = HeldoutConfig(after=date(2021, 1, 1), undated="drop", overlap=OverlapConfig())
    with pytest.raises(ConfigError, match="set `exact: true` of `dedup`, or"):
        deduplicate(pa.table({"text": ["x"]}), exact=False, near=None, heldout=heldout)
