"""Filings in Inline XBRL: made ones, in which each figure is there once, and real ones as EDGAR submits them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

CORPUS: dict[str, Any] = {
    "name": "filings",
    "sources": [{"name": "Filings", "dataset": "FinPile", "format": "edgar", "paths": ["*.txt"]}],
    "dedup": {"substring": {"min_length": 80, "min_chars": 20}, "order": "time"},
}
_SUBMISSION = """<SEC-DOCUMENT>{accession}.txt : {day}
<SEC-HEADER>{accession}.hdr.sgml : {day}
<ACCEPTANCE-DATETIME>{day}160102
ACCESSION NUMBER:\t\t{accession}
CONFORMED SUBMISSION TYPE:\t{form}
FILED AS OF DATE:\t\t{day}
</SEC-HEADER>
<DOCUMENT>
<TYPE>{form}
<SEQUENCE>1
<FILENAME>report.htm
<TEXT>
{page}
</TEXT>
</DOCUMENT>
</SEC-DOCUMENT>
"""
_CONTEXTS = """<div style="display:none"><ix:header><ix:hidden>
<ix:nonNumeric name="dei:EntityCentralIndexKey" contextRef="c">{cik}</ix:nonNumeric></ix:hidden><ix:resources>
<xbrli:context id="c"><xbrli:entity><xbrli:identifier scheme="http://www.sec.gov/CIK">{cik}</xbrli:identifier>
</xbrli:entity><xbrli:period><xbrli:startDate>{year}-01-01</xbrli:startDate><xbrli:endDate>{year}-12-31</xbrli:endDate>
</xbrli:period></xbrli:context><xbrli:unit id="u"><xbrli:measure>iso4217:USD</xbrli:measure></xbrli:unit>
</ix:resources></ix:header></div>"""
#: What figures are about.
CONCEPTS = ("Revenues", "Costs", "Assets", "Debt", "Equity")


def submission(page: str, day: date, *, form: str = "10-K", accession: str = "0000000001-24-000001") -> str:
    """A full submission with one document."""
    return _SUBMISSION.format(page=page, day=f"{day:%Y%m%d}", form=form, accession=accession)


def made_page(cik: int, year: int, rows: Mapping[str, str], words: str = "") -> str:
    """A report with a sentence and a table of a figure for each concept."""
    table = "".join(
        f"<tr><td>{concept} of caf\u00e9s</td><td>$</td><td>{_fact(concept, figure)}</td></tr>\n"
        for concept, figure in rows.items()
    )
    return (
        f"<html><body>{_CONTEXTS.format(cik=f'{cik:010d}', year=year)}<p>Report of "
        f'<ix:nonNumeric name="dei:EntityRegistrantName" contextRef="c">Company {cik}</ix:nonNumeric>.</p>'
        f"<table>\n{table}</table>{words}</body></html>"
    )


def _fact(concept: str, figure: str) -> str:
    return (
        f'<ix:nonFraction name="us-gaap:{concept}" contextRef="c" unitRef="u" decimals="-6" scale="6" '
        f'format="ixt:num-dot-decimal">{figure}</ix:nonFraction>'
    )


def make_filings(seed: int, number: int) -> list[tuple[date, str]]:
    """Submissions with their days; some are copies, some repeat a passage of another, and one has no facts."""
    draw, found, passages = random.Random(seed), list[tuple[date, str]](), list[str]()
    figure = 1_000
    for index in range(number):
        rows = {}
        for concept in draw.sample(CONCEPTS, draw.randint(1, len(CONCEPTS))):
            figure += draw.randint(1, 9)
            rows[concept] = f"{figure:,}"
        noise = " ".join(f"word{draw.randrange(10**6)}" for _ in range(30))
        passage = f"<p>{noise} with a figure of {_fact('Notes', f'{figure + 500_000:,}')} and {noise[::-1]}</p>"
        earlier = draw.choice(passages) if passages else ""
        words = f"<p>{draw.random()} caf\u00e9</p>{earlier}<p>{draw.random()}</p>{passage}"
        passages.append(passage)
        page = made_page(draw.randint(1, 3), 2020 + index % 3, rows, words)
        page = draw.choice(found)[1].split("<TEXT>\n")[1].split("\n</TEXT>")[0] if found and not index % 5 else page
        page = f"<html><p>Plain {noise}</p></html>" if index == 3 else page
        day = date(2021, 1 + draw.randrange(12), 1 + draw.randrange(28))
        found.append((day, submission(page, day, accession=f"0000000001-24-{index:06d}")))
    return found


def write_filings(folder: Path, filings: Mapping[int, tuple[date, str]]) -> None:
    """A file for each filing, by its number."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (_, content) in filings.items():
        (folder / f"{number:03d}.txt").write_text(content)
