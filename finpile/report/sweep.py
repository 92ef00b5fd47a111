"""The sweep of the vocabulary size as a table and a plot.

Source: Wu et al., BloombergGPT (arXiv:2303.17564), section 2.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from finpile_tokenizer import MIN_VOCAB_SIZE
from finpile_tokenizer.sweep import SweepPoint, edge_of, power_of_two_above, smallest

from finpile.report.drawing.lines import Label, Line, LineChart, Rule
from finpile.report.figures import Cell, count, decimal
from finpile.report.table import Field, Table, table_of

TABLE_NAME = "sweep"


def sweep_table(points: Sequence[SweepPoint], text_bytes: int, largest_asked: int) -> Table:
    """One row per size; the smallest encoding is marked, and a note says if it is at an end of the sizes tried.

    `largest_asked` is the largest size that was to be tried; training text may support less.

    Raises: TokenizerError if the text was empty.
    """
    best = smallest(points)

    def size(point: SweepPoint) -> Cell:
        return Cell(f"{point.vocab_size:,}{' (smallest)' if point == best else ''}", point.vocab_size)

    fields: list[Field[SweepPoint]] = [
        Field("vocab_size", "Vocabulary", size),
        Field("tokens", "Tokens", lambda point: count(point.num_tokens)),
        Field("bytes_per_token", "Bytes/token", lambda point: decimal(text_bytes / point.num_tokens, ".3f")),
        Field("encoded_bytes", "Encoded bytes", lambda point: decimal(point.encoded_bytes, ",.0f")),
        Field(
            "above_smallest",
            "Above the smallest, %",
            lambda point: decimal(100 * (point.encoded_bytes / best.encoded_bytes - 1), ".2f"),
        ),
    ]
    return table_of(
        points,
        fields,
        name=TABLE_NAME,
        title="Vocabulary size",
        caption=f"{text_bytes:,} bytes of text, encoded with log2(vocabulary) bits a token.",
        footnotes=tuple(_notes(points, largest_asked)),
    )


def _notes(points: Sequence[SweepPoint], largest_asked: int) -> Iterator[str]:
    best, edge, most = smallest(points), edge_of(points), points[-1].vocab_size
    is_short = most < largest_asked
    if edge is None:
        yield (
            f"The smallest encoding is that of {best.vocab_size:,} entries; the power of two above it is "
            f"{power_of_two_above(best.vocab_size):,}."
        )
    else:
        where = "the only size tried" if edge == "only" else f"the {edge} of the sizes tried"
        smaller, larger = "smaller sizes", "more training text" if is_short else "larger sizes"
        both = f"{smaller}, and {larger}" if best.vocab_size > MIN_VOCAB_SIZE else larger
        try_also = {"smallest": smaller, "largest": larger, "only": both}[edge]
        yield (
            f"The smallest encoding is that of {best.vocab_size:,} entries, {where}: the minimum may be at a size that "
            f"was not tried; try {try_also}."
        )
    if is_short:
        yield f"The training text supports no more than {most:,} entries."


def sweep_json(points: Sequence[SweepPoint], text_bytes: int) -> dict[str, Any]:
    """The sweep as JSON values; `edge` is null unless the smallest encoding is at an end of the sizes tried."""
    best = smallest(points)
    return {
        "text_bytes": text_bytes,
        "sizes": [
            {"vocab_size": point.vocab_size, "tokens": point.num_tokens, "encoded_bytes": point.encoded_bytes}
            for point in points
        ],
        "smallest": best.vocab_size,
        "edge": edge_of(points),
        "power_of_two": power_of_two_above(best.vocab_size),
    }


def sweep_plot(points: Sequence[SweepPoint]) -> bytes:
    """Encoded size over vocabulary size as an SVG file; equal points give equal bytes."""
    best = smallest(points)
    rounded, edge = power_of_two_above(best.vocab_size), edge_of(points)
    mark = f"smallest: {best.vocab_size:,}" + ("" if edge is None else f" ({edge} size tried)")
    sizes = [(float(point.vocab_size), point.encoded_bytes / 1e6) for point in points]
    chart = LineChart(
        title="Text encoded with log2(vocabulary) bits a token",
        x_title="vocabulary size",
        y_title="encoded text (MB)",
        lines=[Line(points=sizes, dots=True)],
        rules=[] if edge else [Rule(axis="x", value=rounded, label=f"power of two above: {rounded:,}", colour="faint")],
        labels=[Label(point=(best.vocab_size, best.encoded_bytes / 1e6), text=mark)],
    )
    return chart.to_svg()
