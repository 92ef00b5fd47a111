"""The sweep of the vocabulary size as a table and a plot.

Source: Wu et al., BloombergGPT (arXiv:2303.17564), section 2.3.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from finpile_tokenizer.sweep import SweepPoint, power_of_two_above, smallest

from finpile.report import figures
from finpile.report.table import Column, Row, Table

TABLE_NAME = "sweep"
_COLUMNS = (
    Column(key="vocab_size", title="Vocabulary"),
    Column(key="tokens", title="Tokens"),
    Column(key="bytes_per_token", title="Bytes/token"),
    Column(key="encoded_bytes", title="Encoded bytes"),
    Column(key="above_smallest", title="Above the smallest, %"),
)


def sweep_table(points: Sequence[SweepPoint], text_bytes: int) -> Table:
    """A row for each size; the smallest encoding is marked.

    Raises: TokenizerError where the text was empty.
    """
    best = smallest(points)
    return Table(
        name=TABLE_NAME,
        title="Vocabulary size",
        caption=f"{text_bytes:,} bytes of text, encoded with log2(vocabulary) bits a token.",
        columns=_COLUMNS,
        rows=tuple(_row(point, best, text_bytes) for point in points),
        footnotes=(
            f"The smallest encoding is that of {best.vocab_size:,} entries; the power of two above it is "
            f"{power_of_two_above(best.vocab_size):,}.",
        ),
    )


def sweep_json(points: Sequence[SweepPoint], text_bytes: int) -> dict[str, Any]:
    """The sweep for machines."""
    best = smallest(points)
    return {
        "text_bytes": text_bytes,
        "sizes": [
            {"vocab_size": point.vocab_size, "tokens": point.num_tokens, "encoded_bytes": point.encoded_bytes}
            for point in points
        ],
        "smallest": best.vocab_size,
        "power_of_two": power_of_two_above(best.vocab_size),
    }


def sweep_plot(points: Sequence[SweepPoint]) -> bytes:
    """Encoded size over vocabulary size as an SVG: same points, same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    best = smallest(points)
    with mpl.rc_context({"svg.hashsalt": TABLE_NAME, "svg.fonttype": "none"}):
        figure = Figure(figsize=(8, 4.5), layout="constrained")
        axes = figure.add_subplot(
            xlabel="vocabulary size",
            ylabel="encoded text (MB)",
            title="Text encoded with log2(vocabulary) bits a token",
        )
        megabytes = [point.encoded_bytes / 1e6 for point in points]
        axes.plot([point.vocab_size for point in points], megabytes, color="C0", marker="o", markersize=4)
        axes.plot([best.vocab_size], [best.encoded_bytes / 1e6], color="C3", marker="o", linestyle="none")
        axes.annotate(
            f"smallest: {best.vocab_size:,}",
            (best.vocab_size, best.encoded_bytes / 1e6),
            textcoords="offset points",
            xytext=(0, -14),
            ha="center",
        )
        rounded = power_of_two_above(best.vocab_size)
        axes.axvline(rounded, color="0.6", linestyle=":", label=f"power of two above: {rounded:,}")
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.margins(y=0.15)
        axes.legend()
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _row(point: SweepPoint, best: SweepPoint, text_bytes: int) -> Row:
    above = 100 * (point.encoded_bytes / best.encoded_bytes - 1)
    mark = " (smallest)" if point == best else ""
    return Row(
        cells=(
            figures.Cell(f"{point.vocab_size:,}{mark}", point.vocab_size),
            figures.count(point.num_tokens),
            figures.Cell(f"{text_bytes / point.num_tokens:.3f}", text_bytes / point.num_tokens),
            figures.Cell(f"{point.encoded_bytes:,.0f}", point.encoded_bytes),
            figures.Cell(f"{above:.2f}", above),
        )
    )
