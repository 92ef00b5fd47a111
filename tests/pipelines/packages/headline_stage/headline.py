"""Algorithm, settings and facts of the stage `headline`: of documents with equal first lines, one is kept."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from finpile import bounds
from finpile.dedup import exact
from finpile.stages import StageInfo

REASON = "equal_headline"


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadlineConfig:
    """Which headlines are compared."""

    min_chars: int = 20
    """Characters of the shortest one."""

    def __post_init__(self) -> None:
        bounds.within("headline.min_chars", self.min_chars, 1, 1000, "a headline is one line")


def headline_digests(documents: pa.Table, min_chars: int) -> tuple[pa.Table, pa.Array]:
    """The documents that have a headline of that length, and the digests of these headlines."""
    lines = pc.list_element(pc.split_pattern(documents["text"], "\n", max_splits=1), 0)
    is_long = pc.greater_equal(pc.utf8_length(lines), min_chars)
    texts = pa.table({"text": lines.filter(is_long).cast(pa.large_string())})
    return documents.filter(is_long), exact.document_digests(texts)


INFO = StageInfo(
    name="headline",
    pipeline="headline_stage.pipeline:STAGE",
    key="dedup.headline",
    after="near",
    config="headline_stage.headline:HeadlineConfig",
    is_dedup=True,
    copy_reasons=(REASON,),
)
