"""Charts as complete SVG files, and as figures of a page: no script, no font, equal bytes for equal values.

A file has its colours in a style sheet of its own; a figure has those of the page, in light and dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Literal

Series = Literal["s0", "s1", "s2", "s3", "s4", "s5"]
#: Colours of the series of a chart, as classes; a further series has the first one again.
SERIES: tuple[Series, ...] = ("s0", "s1", "s2", "s3", "s4", "s5")
#: Series with a colour of their own.
NUM_COLOURS = len(SERIES)
_SERIES_COLOURS = ("#2f6f8f", "#d08c3f", "#6f9a5b", "#9a6a9f", "#c7666a", "#9aa0a8")
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#22252a}.title{font-size:15px;font-weight:600}"
    ".grid{stroke:#e3e0d8}.frame{fill:none;stroke:#686d76}.sheet{fill:#fff}"
    ".main{stroke:#2f6f8f;fill:#2f6f8f}.mark{stroke:#a3362a;fill:#a3362a}.faint{stroke:#b9bdc4;fill:#b9bdc4}"
    ".line{fill:none;stroke-width:1.6}.thin{fill:none;stroke-width:.8}.dotted{stroke-dasharray:2 4;stroke-width:1.6}"
)


def series_colour(number: int) -> Series:
    """The class of the series of this number, from 0 on."""
    return SERIES[number % len(SERIES)]


def svg_file(title: str, width: int, height: int, parts: Iterable[str], series: bool = False) -> bytes:
    """A complete file; with `series`, its style sheet has the colours of series."""
    colours = zip(SERIES, _SERIES_COLOURS, strict=True) if series else ()
    style = _STYLE + "".join(f".{name}{{stroke:{colour};fill:{colour}}}" for name, colour in colours)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
    named = f"<title>{html.escape(title)}</title><style>{style}</style>"
    sheet = f'<rect class="sheet" width="{width}" height="{height}"/>'
    return "\n".join([head, named, sheet, *parts, "</svg>\n"]).encode()


def svg_figure(name: str, title: str, caption: str, width: int, height: int, parts: Iterable[str]) -> str:
    """The HTML of a figure with the id `name`, for a page with the style sheet of the report."""
    title = html.escape(title)
    return "\n".join(
        [
            f'<figure id="{html.escape(name)}">',
            f"<figcaption><b>{title}.</b> {html.escape(caption)}</figcaption>",
            f'<div class=scroll><svg class=chart viewBox="0 0 {width} {height}" role=img aria-label="{title}">',
            *parts,
            "</svg></div></figure>",
        ]
    )


def text_at(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    """A text whose baseline begins, ends or has its middle at a place."""
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'
