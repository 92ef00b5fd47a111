"""LaTeX: the text of a document's body, its formulas as they are written; a file is a document.

Preamble, comments, pictures and the bibliography are left out; keys of citations and references are in brackets. Files
that a document includes are documents of their own.

Source: https://www.latex-project.org/help/documentation/usrguide.pdf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.formats.latex.text import to_text
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, read_text


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The text of a file; its locator is the file's."""
    return read_text(stream, locator, source, _converted)


def _converted(written: str) -> Converted:
    text, title = to_text(written.replace("\r\n", "\n").replace("\r", "\n"))
    return Converted(text=text, title=title)


FORMAT = Format(name="latex", read=read)
