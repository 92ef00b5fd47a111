"""Writes the examples of this folder: the papers of a build, without the licences of single documents.

    python docs/examples/compliance/render.py sample out/sample [stated.yaml]

`tests/finpile/report/test_compliance_examples.py` compares them with a fresh build.
"""

from __future__ import annotations

import sys
from pathlib import Path

from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot
from finpile.report.compliance import papers_of
from finpile.report.compliance.domains import suffixes_version
from finpile.report.compliance.stated import Given, Statement, load_statement

FOLDER = Path(__file__).resolve().parent


def papers(out: str, statement: Statement) -> dict[str, bytes]:
    """The papers of a build by name."""
    layout = Layout(out)
    manifest = load_snapshot(layout)
    given = Given(manifest=manifest["checksum"], suffixes=suffixes_version(), stated=statement)
    found = papers_of(layout, manifest, given, lambda size_bytes: None)
    return {path.partition("/")[2]: content for path, content in found if isinstance(content, bytes)}


def main(name: str, out: str, stated: str | None = None) -> None:
    statement = Statement() if stated is None else load_statement(stated)
    (FOLDER / name).mkdir(exist_ok=True)
    for path, content in papers(out, statement).items():
        (FOLDER / name / path).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
