"""Items of pages by edgartools, in its own environment: `PYTHON item_peers.py PAGES OUT`.

Reads the pages `NAME.10-K.html` and `NAME.10-Q.html` of the folder PAGES, writes `{name: {item: text}}` to OUT, and
prints the tool's version and its CPU seconds as JSON. Imports the tool alone.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """The command line."""
    from edgar.documents import ParserConfig, parse_html

    found: dict[str, dict[str, str]] = {}
    seconds = 0.0
    for path in sorted(Path(sys.argv[1]).glob("*.html")):
        name, _, form = path.stem.rpartition(".")
        page = path.read_text()
        start = time.process_time()
        sections = parse_html(page, ParserConfig(form=form)).sections
        found[name] = {
            f"{section.part}.{section.item}" if form == "10-Q" else str(section.item): section.text()
            for section in sections.values()
            if section.item
        }
        seconds += time.process_time() - start
    Path(sys.argv[2]).write_text(json.dumps(found))
    print(json.dumps({"version": version("edgartools"), "cpu_s": seconds}))


if __name__ == "__main__":
    main()
