"""The tables of the page from which a document was read, as Markdown grids.

A corpus keeps texts, and by default these have the rows of tables as lines, from which columns cannot be told. So the
page is read from its input file again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from finpile.clean.html.markup import TooComplex
from finpile.clean.html.page import HtmlError, to_text
from finpile.clean.stage.normalise import normalise
from finpile.clean.stage.parts import divided
from finpile.clean.text_tables import with_tables
from finpile.config import SourceConfig, from_dict
from finpile.documents.document import HTML, RawDocument, label_of
from finpile.errors import FinpileError, InputError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.plugins.format import FORMATS
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"\|(?:---\|)+")
#: Characters to which the columns of a grid are padded, at most.
_MOST_PADDED = 60


def tables_of(out: str, document: Mapping[str, Any]) -> list[str]:
    """The grids of a kept document's page, in its order, each with its columns below each other.

    Of a document that is an item of a filing, those of the whole filing.

    Raises: InputError if no input file has the document any more, or its format has no tables.
    """
    locator = divided(document["locator"]) or document["locator"]
    manifest = load_manifest(Layout(out))
    page, has_text_tables = next(_pages(manifest, document, locator), (None, False))
    if page is None:
        raise InputError(f"{locator}: the input files of the corpus do not have this document: its root is "
                         f"{manifest['config']['root']}")  # fmt: skip
    if page.media_type != HTML and not has_text_tables:
        raise InputError(f"{locator} is {page.media_type}: only HTML pages and text filings have tables as grids")
    try:
        if page.media_type == HTML:
            text = normalise(to_text(page.text, main_content=False, tables="markdown").text)
        else:
            text = normalise(with_tables(page.text, "markdown"))
    except (HtmlError, TooComplex) as error:
        raise InputError(f"{locator}: {error}") from error
    runs = [list(lines) for is_grid, lines in groupby(text.split("\n"), _is_row) if is_grid]
    return [_aligned(lines) for lines in runs if len(lines) > 1 and _RULE.fullmatch(lines[1])]


def _is_row(line: str) -> bool:
    return line.startswith("|")


def _pages(
    manifest: Mapping[str, Any], document: Mapping[str, Any], locator: str
) -> Iterator[tuple[RawDocument, bool]]:
    """The records of that locator in the input files of the document's source, and whether texts there have tables."""
    config = from_dict(manifest["config"])
    row = label_of(document)
    for source in config.sources:
        if row in {(source.dataset, name) for name in source.rows}:
            has_text_tables = FORMATS.get(source.format).has_text_tables
            yield from ((record, has_text_tables) for record in _records(source, config.root, locator))


def _records(source: SourceConfig, root: str, locator: str) -> Iterator[RawDocument]:
    try:
        files = list_inputs(source, root)
        for file in files:
            if locator.startswith(file.locator):
                for item in read_file(file, source):
                    if isinstance(item, RawDocument) and item.locator == locator:
                        yield item
    except FinpileError as error:
        raise InputError(f"{locator} cannot be read again: {error}") from error


def _aligned(lines: list[str]) -> str:
    """A grid with its columns padded; numbers are at the right."""
    head, _, *body = [[cell.strip() for cell in _BAR.split(line.strip()[1:-1])] for line in lines]
    widths = [0] * max(map(len, [head, *body]))
    for row in (head, *body):
        for place, cell in enumerate(row):
            widths[place] = max(widths[place], min(len(cell), _MOST_PADDED))
    rule = ["-" * width for width in widths]
    return "\n".join(_padded(row, widths) for row in (head, rule, *body))


def _padded(row: list[str], widths: list[int]) -> str:
    cells = zip(row, widths[: len(row)], strict=True)
    return f"| {' | '.join(cell.rjust(width) if _is_number(cell) else cell.ljust(width) for cell, width in cells)} |"


def _is_number(cell: str) -> bool:
    return any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))
