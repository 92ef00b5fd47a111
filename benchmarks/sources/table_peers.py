"""Reads pages with another tool, in its own environment: `PYTHON table_peers.py TOOL PAGES TEXTS`.

Writes the text of each page of the folder PAGES into the folder TEXTS, and prints the tool's version and its CPU
seconds as JSON. Imports the tool alone, so that it runs where FinPile is not installed.
"""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path


def _edgartools() -> Callable[[str], str]:
    from edgar.documents import parse_html

    return lambda page: str(parse_html(page).text())


def _docling() -> Callable[[str], str]:
    from docling.backend.html_backend import HTMLDocumentBackend
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.document import InputDocument

    def read(page: str) -> str:
        source = InputDocument(
            path_or_stream=io.BytesIO(page.encode()),
            format=InputFormat.HTML,
            backend=HTMLDocumentBackend,
            filename="page.html",
        )
        return str(source._backend.convert().export_to_markdown())

    return read


def _markitdown() -> Callable[[str], str]:
    from markitdown import MarkItDown

    converter = MarkItDown()
    return lambda page: str(converter.convert_stream(io.BytesIO(page.encode()), file_extension=".html").text_content)


def _inscriptis() -> Callable[[str], str]:
    from inscriptis import get_text

    return lambda page: str(get_text(page))


def _html2text() -> Callable[[str], str]:
    from html2text import HTML2Text

    def read(page: str) -> str:
        reader = HTML2Text(bodywidth=0)
        reader.ignore_links = True
        return str(reader.handle(page))

    return read


def _trafilatura() -> Callable[[str], str]:
    from trafilatura import extract

    return lambda page: extract(page, include_tables=True, output_format="markdown") or ""


def _sec_parser() -> Callable[[str], str]:
    import sec_parser

    def read(page: str) -> str:
        elements = sec_parser.Edgar10QParser().parse(page)
        return "\n\n".join(
            element.table_to_markdown() if isinstance(element, sec_parser.TableElement) else element.text
            for element in elements
        )

    return read


TOOLS: dict[str, Callable[[], Callable[[str], str]]] = {
    "edgartools": _edgartools,
    "docling": _docling,
    "markitdown": _markitdown,
    "inscriptis": _inscriptis,
    "html2text": _html2text,
    "trafilatura": _trafilatura,
    "sec-parser": _sec_parser,
}


def main() -> None:
    """The command line."""
    tool, pages, texts = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    read = TOOLS[tool]()
    seconds, num_failed = 0.0, 0
    for path in sorted(pages.glob("*.html")):
        page = path.read_text()
        start = time.process_time()
        try:
            text = read(page)
        except Exception as error:
            print(f"{path.name}: {error!r}"[:300], file=sys.stderr)
            text, num_failed = "", num_failed + 1
        seconds += time.process_time() - start
        (texts / f"{path.stem}.txt").write_text(text)
    print(json.dumps({"version": version(tool), "cpu_s": seconds, "num_failed": num_failed}))


if __name__ == "__main__":
    main()
