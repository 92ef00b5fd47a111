"""Number fidelity: the shares of Inline XBRL's figures that the texts have, in their rows and under their heads."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from finpile.documents.document import Label, label_of
from finpile.filings.facts import TABLE_COUNTS
from finpile.report.figures import count, name, percent
from finpile.report.statistics import FactStatistics
from finpile.report.table import Field, Table, table_of


def fact_statistics(
    cleaned: Iterable[Mapping[str, Any]], published: Iterable[Mapping[str, Any]]
) -> tuple[FactStatistics, ...]:
    """From the counts of the stages `clean` and `split` by source; only sources whose documents have figures, and of
    which `clean` counts them."""
    sums: dict[Label, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    tables: dict[Label, Counter[str]] = defaultdict(Counter)
    for place, rows in ((0, cleaned), (2, published)):
        for row in rows:
            if row.get("facts") and (place == 0 or label_of(row) in sums):
                total = sums[label_of(row)]
                total[place] += row["facts"]
                total[place + 1] += row["facts_found"]
            if place == 0:
                tables[label_of(row)].update({name: row.get(name, 0) for name in TABLE_COUNTS})
    return tuple(
        FactStatistics(
            dataset=dataset,
            source=source,
            num_facts=total[0],
            num_found=total[1],
            num_facts_kept=total[2],
            num_found_kept=total[3],
            **dict(zip(_OF_TABLES, (tables[dataset, source][name] for name in TABLE_COUNTS), strict=True)),
        )
        for (dataset, source), total in sorted(sums.items())
    )


#: Of `FactStatistics`, those that are the counts of tables, in their order.
_OF_TABLES = ("num_in_rows", "num_in_line", "num_in_grids", "num_under_head")
_FIELDS: Sequence[Field[FactStatistics]] = (
    Field("source", "Source", lambda row: name(f"{row.dataset}: {row.source}")),
    Field("num_facts", "Figures", lambda row: count(row.num_facts)),
    Field("num_found", "In the text", lambda row: count(row.num_found)),
    Field("found_percent", "of figures", lambda row: percent(row.num_found, row.num_facts, 2)),
    Field("row_percent", "In their row", lambda row: percent(row.num_in_line, row.num_in_rows, 2)),
    Field("head_percent", "Under their head", lambda row: percent(row.num_under_head, row.num_in_grids, 2)),
    Field("num_facts_kept", "After dedup", lambda row: count(row.num_facts_kept)),
    Field("num_found_kept", "In the text", lambda row: count(row.num_found_kept)),
    Field("found_kept_percent", "of figures", lambda row: percent(row.num_found_kept, row.num_facts_kept, 2)),
)


def facts_table(rows: Sequence[FactStatistics]) -> Table:
    """One row for each source."""
    return table_of(
        rows,
        _FIELDS,
        name="number_fidelity",
        title="Number fidelity",
        caption="Figures of Inline XBRL that the text of their document has, after cleaning, and in the documents that "
        "are left after duplicates and repeated passages are removed. Hidden facts and figures without digits do not "
        "count. Of those in tables, after cleaning: the share in a line with the label of their row, and in grids the "
        "share in a column with their lowest head.",
    )
