"""Removed documents by source: a bar for each, its parts by reason, as a share of the documents read.

The longest bar has the width of the figure. Empty if no document was removed.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence

from finpile.documents.document import Label
from finpile.plugins.chart import Chart
from finpile.report.drawing.axes import legend, ranked
from finpile.report.figures import percent, rounded
from finpile.report.html import BuildFacts
from finpile.report.removed import removals_by_source
from finpile.report.statistics import CorpusStatistics, RemovalCount

_OTHER = "other reasons"
#: Decimals of the widths of a bar's parts.
_DIGITS = 3


def _draw(statistics: CorpusStatistics, removals: Sequence[RemovalCount], facts: BuildFacts) -> str:
    del statistics
    rows, read = removals_by_source(removals), facts.read_by_source
    removed = {source: sum(row.num_docs for row in some) for source, some in rows.items()}
    shares = {source: num / read[source] for source, num in removed.items() if num and read.get(source)}
    if not shares:
        return ""
    widest = max(shares.values())
    reasons = ranked(((row.reason, row.num_docs) for row in removals), _OTHER)
    lines = [
        _bar(source, rows[source], reasons, read[source], widest)
        for source in sorted(shares, key=lambda source: (-shares[source], source))
    ]
    return "\n".join(
        [
            '<figure id="removed_bars">',
            "<figcaption><b>Removed documents by source.</b> As a share of those read, by reason; the longest bar is "
            f"{percent(round(widest * 10_000), 10_000, 1).text}. Point at a bar for its figures.</figcaption>",
            "<ol class=bars>",
            *lines,
            "</ol>",
            legend(reasons),
            "</figure>",
        ]
    )


def _bar(source: Label, rows: Sequence[RemovalCount], reasons: Sequence[str], num_read: int, widest: float) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.reason if row.reason in reasons else _OTHER] += row.num_docs
    total = sum(counts.values())
    scale = round(widest * num_read * 10**6)
    parts = "".join(
        f'<i class=s{colour} style="width:{rounded(counts[reason] * 10**8, scale, _DIGITS)}%"></i>'
        for colour, reason in enumerate(reasons)
        if counts[reason]
    )
    lines = [f"{source[1]}: {total:,} of {num_read:,} documents"]
    lines += [f"{reason}: {counts[reason]:,}" for reason in reasons if counts[reason]]
    title = html.escape("\n".join(lines))
    label = f"{html.escape(source[1])} <small>{html.escape(source[0])}</small>"
    value = f"{percent(total, num_read, 1).text} <small>{total:,}</small>"
    return f'<li title="{title}"><span>{label}</span><span class=track>{parts}</span><span>{value}</span></li>'


CHART = Chart(name="removed_by_source", above="removed", draw=_draw)
