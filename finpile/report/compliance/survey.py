"""One pass over the documents of a build, for the figures of the papers that its manifest does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import Label
from finpile.documents.split import TRAIN
from finpile.output.layout import COMPLIANCE, row_of, split_of
from finpile.output.published_files import Advance, PublishedFile
from finpile.report.compliance.domains import hosts_of, registered_domain

_COLUMNS = ("id", "text", "timestamp", "url", "license", "meta")
#: The key of `meta` that the format `warc` writes, and records of others may have; a quote in another value is escaped.
_CRAWL_DATE = r'"crawl_date": ?"(?P<day>\d{4}-\d{2}-\d{2})'
#: The licence of each document: `compliance/licenses/dataset=D/source=S/SPLIT-*.parquet`.
LICENSE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("license", pa.string()),
        pa.field("text_bytes", pa.int64(), nullable=False),
    ]
)


@dataclass(slots=True)
class Days:
    """The first and the last of some days."""

    first: date | None = None
    last: date | None = None

    def add(self, first: date | None, last: date | None) -> None:
        self.first = min((day for day in (self.first, first) if day), default=None)
        self.last = max((day for day in (self.last, last) if day), default=None)


@dataclass(slots=True)
class Domain:
    """What training documents have of a registered domain."""

    documents: int = 0
    text_bytes: int = 0


@dataclass(slots=True)
class SourceSurvey:
    """The training documents of one source."""

    documents: int = 0
    text_bytes: int = 0
    dated: Days = field(default_factory=Days)
    crawled: Days = field(default_factory=Days)
    """When their pages were fetched, if their archives say it."""
    without_host: int = 0


@dataclass(slots=True)
class Survey:
    """The training documents of a corpus."""

    sources: dict[Label, SourceSurvey] = field(default_factory=dict)
    domains: dict[str, Domain] = field(default_factory=dict)
    """Of the sources that `is_crawled` chooses."""

    def add(
        self, file: PublishedFile, is_crawled: Callable[[Label], bool], advance: Advance
    ) -> Iterator[tuple[str, pa.Table]]:
        """Reads a file of documents; the path of the licences of its documents, and these."""
        label = row_of(file.path)
        table = file.pages(_COLUMNS)
        advance(file.record.size_bytes)
        sizes = pc.binary_length(table["text"]).cast(pa.int64())
        if split_of(file.path) == TRAIN:
            self._add_training(label, table.drop_columns(["text"]), sizes, is_crawled(label))
        columns = [table["id"], table["license"], sizes]
        yield license_file(file.path), pa.table(columns, schema=LICENSE_SCHEMA).combine_chunks()

    def _add_training(self, label: Label, table: pa.Table, sizes: pa.ChunkedArray, is_crawled: bool) -> None:
        found = self.sources.setdefault(label, SourceSurvey())
        found.documents += table.num_rows
        found.text_bytes += pc.sum(sizes).as_py() or 0
        first, last = pc.min_max(table["timestamp"]).as_py().values()
        found.dated.add(first and first.date(), last and last.date())
        if not is_crawled:
            return
        days = pc.struct_field(pc.extract_regex(table["meta"], _CRAWL_DATE), "day")
        for text in pc.unique(days).drop_null().to_pylist():
            with suppress(ValueError):  # such as 2021-02-30
                day = date.fromisoformat(text)
                found.crawled.add(day, day)
        hosts = hosts_of(table["url"])
        found.without_host += hosts.null_count
        sums = pa.table({"host": hosts, "size": sizes}).group_by("host").aggregate([("size", "sum"), ([], "count_all")])
        for host, size, number in zip(*(sums[name].to_pylist() for name in sums.column_names), strict=True):
            if host is not None:
                domain = self.domains.setdefault(registered_domain(host), Domain())
                domain.documents += number
                domain.text_bytes += size


def license_file(path: str) -> str:
    """The path of the licences of the documents in a file, relative to OUT.

    >>> license_file("documents/dataset=D/source=S/train-00000-of-00001.parquet")
    'compliance/licenses/dataset=D/source=S/train-00000-of-00001.parquet'
    """
    return f"{COMPLIANCE}/licenses/{path.removeprefix('documents/')}"


def largest(domains: dict[str, Domain], *, is_small: bool) -> list[tuple[str, Domain]]:
    """The domains with the most bytes: a tenth of all, rounded up; of a small provider a twentieth, and at most 1,000.

    Source: C(2025) 8311, section 2.3 of the template.
    """
    share, most = (20, 1000) if is_small else (10, len(domains))
    ranked = sorted(domains.items(), key=lambda item: (-item[1].text_bytes, item[0]))
    return ranked[: min(-(-len(ranked) // share), most)]
