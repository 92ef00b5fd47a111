"""The prefix law of `order: time` on four archives: 20,359 documents, those of TeX without dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from finpile.config import NearConfig, SubstringConfig
from finpile.dedup import Deduplicated, deduplicate
from finpile.dedup.order import ends
from tests.support.real_data import find

ROOT = Path(__file__).resolve().parents[3]
#: Ends of days: five within the months of News, the others between speeches and logs.
DAYS = ["1987-03-05", "1987-03-20", "1987-04-07", "1987-06-19", "1987-10-20", "2005-08-08", "2012-01-01", "2019-06-30"]


@pytest.fixture(scope="module")
def mix() -> pa.Table:
    folder = find("fin_news").parent
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        documents = import_module("benchmarks.common.dated_mix").read_dated_mix(folder)
    assert documents.num_rows == 20_359
    is_second = pc.invert(documents["is_indexed"]).cast(pa.int32())  # stories with topics are of a preferred source
    ones = pa.array([1] * documents.num_rows, pa.int32())
    return documents.append_column("priority", is_second).append_column("num_copies", ones)


def decided(documents: pa.Table) -> Deduplicated:
    substring = SubstringConfig(min_length=100, rounds=2)
    return deduplicate(documents, near=NearConfig.named("fast"), substring=substring, order="time")


@pytest.fixture(scope="module")
def whole(mix: pa.Table) -> Deduplicated:
    return decided(mix)


@pytest.mark.slow
@pytest.mark.parametrize("day", DAYS)
def test_decisions_up_to_a_day_are_those_of_the_documents_up_to_it(
    mix: pa.Table, whole: Deduplicated, day: str
) -> None:
    last = datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(days=1, seconds=-1)
    early = mix.filter(pa.array(ends(mix["timestamp"]) <= int(last.timestamp())))
    assert 0 < early.num_rows < mix.num_rows
    part = decided(early)
    names = early["id"].combine_chunks()
    removed = whole.removed.filter(pc.is_in(whole.removed["id"], names))
    kept = whole.kept.filter(pc.is_in(whole.kept["id"], names))
    assert part.removed.num_rows > 0
    assert part.removed.equals(removed)
    columns = ["id", "text", "timestamp"]
    assert part.kept.select(columns).equals(kept.select(columns))
    copies = removed.filter(pc.is_null(removed["start"]))["duplicate_of"].drop_null().value_counts().to_pylist()
    counted = {row["values"]: 1 + row["counts"] for row in copies}
    assert part.kept["num_copies"].to_pylist() == [counted.get(name, 1) for name in kept["id"].to_pylist()]
