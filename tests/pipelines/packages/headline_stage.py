"""The algorithm `headline` of another package: of documents with equal first lines, one is kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import bounds, to_dict
from finpile.dedup import exact
from finpile.dedup.order import Order
from finpile.dedup.plan import REMOVAL_SCHEMA, Answer, Exchange, Part, Pass, Plan, Sent, Settings
from finpile.plugins.stages import Algorithm, Reason

REASON = "equal_headline"
ALGORITHM = Algorithm(
    name="headline",
    plan="headline_stage:plan",
    config="headline_stage:HeadlineConfig",
    after="near",
    reasons=(Reason(REASON, "a text whose first line is that of a kept text", is_copy=True),),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadlineConfig:
    """Which headlines are compared."""

    min_chars: int = 20
    """Characters of the shortest one."""

    def __post_init__(self) -> None:
        bounds.within("headline.min_chars", self.min_chars, 1, 1000, "a headline is one line")


def plan(settings: Settings) -> Plan | None:
    """Headlines are compared over all documents of a scope."""
    config: HeadlineConfig | None = settings.dedup.added.get("headline")
    if config is None:
        return None
    exchange = Exchange(
        name="headlines",
        reads=("text",),
        rows=partial(_rows, config.min_chars),
        sends=exact.ROW_SCHEMA,
        answer=partial(_answer, settings.order),
        replies=REMOVAL_SCHEMA,
        key="digest",
        is_row_wise=True,
    )
    return Plan(passes=(Pass(name="equal", steps=(exchange,)),), settings=[to_dict(config), settings.order])


def _rows(min_chars: int, part: Part) -> Sent:
    """The documents that have a headline of that length, with the digests of these headlines."""
    lines = pc.list_element(pc.split_pattern(part.documents["text"], "\n", max_splits=1), 0)
    is_long = pc.greater_equal(pc.utf8_length(lines), min_chars)
    found = part.documents.filter(is_long)
    columns = {
        **{name: found[name] for name in ("priority", "timestamp", "id", "shard", "row")},
        "digest": exact.document_digests(pa.table({"text": lines.filter(is_long).cast(pa.large_string())})),
        "text_digest": found["digest"],
        "scope": pa.repeat(part.scope, found.num_rows),
    }
    return Sent(pa.table(columns).select(exact.ROW_SCHEMA.names).cast(exact.ROW_SCHEMA))


def _answer(order: Order, rows: pa.Table) -> Answer:
    return Answer(exact.find_duplicates(rows, REASON, order))
