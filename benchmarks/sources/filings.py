"""Filings whole: items, dates, parties and figures against what others extracted, and against the pages' own facts.

    python -m benchmarks.sources.filings [--data DATA] [--results FOLDER]

Items of Form 8-K: the 553 raw filings of edgar-crawler's tests, and its extracted items. Items of Form 10-K: its 62
extracted reports; the raw ones are not in the data, so each report is put together again from its items, below a table
of contents made of their headings, and split. Compared are words (letters and digits) without the heading of the next
part at a section's end:

- exact: the same words;
- near: F1 of the words at least 0.9; or the same first three words, at least 90% of the peer's words, and no run of
  eight words of another item (the peer leaves out tables);
- wrong: a section given by us that is neither; each is listed, with what a reader found;
- unsure: an item that is named, and whose section is not given;
- missing: an item that the peer has, and of which we say nothing.

Dates: the header of a filing against the table of its index. Figures: a build of 35 reports in Inline XBRL up to the
stage `split`, with near duplicates and repeated passages of 200 bytes removed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise
from finpile.clean.text_tables import with_tables
from finpile.config import CleanConfig, CorpusConfig, DedupConfig, SourceConfig, SubstringConfig
from finpile.documents.document import HTML, RawDocument
from finpile.filings import find_items
from finpile.plugins.format import FORMATS
from finpile.report.facts import fact_statistics
from finpile.sources import read_stream

_FOLDER = "fin_filings/edgar_crawler"
_SOURCE = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=("*",))
_GRADES = ("exact", "near", "wrong", "unsure", "missing", "ours alone")
_PART = re.compile(r"(?:\s*\n\s*part\s+[iv]+[\s.\-_]*)+\Z", re.IGNORECASE)
_RUN_WORDS = 8
#: What the sections graded as wrong differ in, by their beginnings, ends and lengths.
_READ: Mapping[tuple[str, str], str] = {
    ("1000180_8K_2010_0001000180-10-000097", "5.02"): "the peer's has the cover page",
    ("1000180_8K_2010_0001000180-10-000108", "5.02"): "the peer's has the cover page",
    ("1001426_8K_2002_0001012870-02-001163", "7"): "the peer's goes on after the signatures",
    ("1002047_8K_2021_0000950170-21-004947", "9.01"): "the peer leaves out the table of exhibits",
    ("100493_8K_2017_0000100493-17-000003", "5.02"): "the peer's goes on after the signatures",
    ("108516_8K_2023_0000950170-23-032000", "9.01"): "the peer leaves out the table of exhibits",
    ("1001258_10K_2004_0001125282-04-006194", "4"): "the peer has no item 4A: its item 4 has both",
    ("1001258_10K_2005_0001125282-05-006522", "4"): "the peer has no item 4A: its item 4 has both",
    ("104169_10K_1995_0000104169-95-000004", "4"): "the peer has no item 4A: its item 4 has both",
    ("109378_10K_1995_0000109378-95-000007", "14"): "the peer's goes on after the signatures",
}
#: A filing accepted after 17:30 has the next business day as its date; the longest gap is a holiday at a week's end.
_MAX_DAYS_TO_FILING = 5


class Difference(NamedTuple):
    """A section that is not the peer's."""

    filing: str
    item: str
    grade: str
    ours: str
    peer: str


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def runs_of(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + _RUN_WORDS]) for at in range(len(words) - _RUN_WORDS + 1)}


def grade(ours: str, peer: str, others: list[str]) -> str:
    """`others`: the peer's sections of the filing's other items."""
    mine, theirs = words_of(ours), words_of(_PART.sub("", peer))
    if mine == theirs:
        return "exact"
    common = sum((Counter(mine) & Counter(theirs)).values())
    if 2 * common >= 0.9 * (len(mine) + len(theirs)):
        return "near"
    foreign = set().union(*(runs_of(words_of(other)) for other in others))
    is_whole = mine[:3] == theirs[:3] and common >= 0.9 * len(theirs)
    return "near" if is_whole and not (runs_of(mine) - runs_of(theirs)) & foreign else "wrong"


def compare(name: str, text: str, form: str, peer: Mapping[str, str]) -> Iterator[Difference]:
    """One row for each item of either side."""
    found = find_items(text, form)
    ours = {item.number: text[item.start : item.end] for item in found.found}
    for number, section in peer.items():
        if number in ours:
            others = [other for key, other in peer.items() if key != number]
            yield Difference(name, number, grade(ours[number], section, others), ours[number], section)
        else:
            yield Difference(name, number, "unsure" if number in found.unsure else "missing", "", section)
    for number in ours.keys() - peer.keys():
        yield Difference(name, number, "ours alone", ours[number], "")


def items_of(record: Mapping[str, str]) -> dict[str, str]:
    return {key[5:]: text for key, text in record.items() if key.startswith("item_") and text}


def extracted(data: Path, form: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The records of edgar-crawler by the name of the filing."""
    with zipfile.ZipFile(data / _FOLDER / f"EXTRACTED_{form}.zip") as files:
        for name in sorted(files.namelist()):
            if name.endswith(".json"):
                yield Path(name).stem, json.loads(files.read(name))


def main_documents(data: Path) -> Iterator[tuple[str, RawDocument]]:
    """The main document of each raw 8-K; files that are its HTML alone get the tags of a submission around them."""
    with zipfile.ZipFile(data / _FOLDER / "RAW_8-K.zip") as files:
        for name in sorted(files.namelist()):
            if not name.endswith((".htm", ".txt")):
                continue
            raw = files.read(name)
            if b"<DOCUMENT>" not in raw:
                raw = b"<DOCUMENT>\n<TYPE>8-K\n<FILENAME>a.htm\n<TEXT>" + raw + b"</TEXT>\n</DOCUMENT>\n"
            for found in read_stream(FORMATS.get("edgar"), io.BytesIO(raw), name, _SOURCE):
                if isinstance(found, RawDocument) and str(found.meta["document_type"]).upper().startswith("8-K"):
                    yield Path(name).stem, found
                    break


def text_of(document: RawDocument) -> str:
    is_html = document.media_type == HTML
    text = to_text(document.text, main_content=False).text if is_html else with_tables(document.text, "lines")
    return normalise(text)


def current_reports(data: Path, documents: Mapping[str, RawDocument]) -> list[Difference]:
    rows: list[Difference] = []
    for name, record in extracted(data, "8-K"):
        text = text_of(documents[name]) if name in documents else ""
        rows += compare(name, text, "8-K", items_of(record))
    return rows


def annual_reports(data: Path) -> list[Difference]:
    rows: list[Difference] = []
    for name, record in extracted(data, "10-K"):
        peer = items_of(record)
        heads = [" ".join(section.split("\n")[:2])[:90] for section in peer.values()]
        contents = "\n".join(f"{head}\t{page}" for page, head in enumerate(heads, start=3))
        body = "\n\n".join(peer.values())
        rows += compare(name, f"TABLE OF CONTENTS\n{contents}\n\nPART I\n\n{body}\n\nSIGNATURES\n", "10-K", peer)
    return rows


def header_rows(data: Path, documents: Mapping[str, RawDocument]) -> list[list[str]]:
    """Fields of the headers against the index: equal, different, not in the header."""
    with (data / _FOLDER / "FILINGS_METADATA_TEST.csv").open(newline="") as file:
        index = {Path(row["filename"]).stem: row for row in csv.DictReader(file)}
    counts: dict[str, Counter[str]] = {}
    for name, document in documents.items():
        if "filed" not in document.meta or name not in index:
            continue
        row, meta = index[name], document.meta
        day = row["Filing Date"].replace("-", "")
        checks = {
            "filing date": meta["filed"] == day,
            "form": _same(meta.get("form_type"), row["Type"]),
            "period": _same(meta.get("period"), row["Period of Report"].replace("-", "")),
            "CIK among all parties": row["CIK"] in {cik.lstrip("0") for cik in meta.get("ciks", ())},
            "SIC": _same(meta.get("sic"), row["SIC"]),
            "acceptance, 0 to 5 days before the filing date": _is_accepted_before(document, row["Filing Date"]),
        }
        for key, equal in checks.items():
            answer = "absent" if equal is None else "equal" if equal else "different"
            counts.setdefault(key, Counter())[answer] += 1
    return [
        [key, *(f"{found[answer]:,}" for answer in ("equal", "different", "absent"))] for key, found in counts.items()
    ]


def _same(ours: Any, theirs: str) -> bool | None:
    return None if ours is None else ours == theirs


def _is_accepted_before(document: RawDocument, filed: str) -> bool | None:
    if "accepted" not in document.meta or document.timestamp is None:
        return None
    accepted = document.timestamp.astimezone(ZoneInfo("America/New_York")).date()
    return timedelta(0) <= date.fromisoformat(filed) - accepted <= timedelta(_MAX_DAYS_TO_FILING)


def figure_rows(data: Path, folder: str) -> list[list[str]]:
    """Figures of Inline XBRL in the texts of a build, before and after deduplication."""
    source = SourceConfig(
        name="Filings",
        dataset="FinPile",
        format="text",
        paths=("edgar_10k10q_ixbrl_html.tar.zst",),
        date_pattern="%Y-%m-%d",
        clean=CleanConfig(html="always"),
    )
    config = CorpusConfig(
        name="filings",
        sources=(source,),
        root=str(data / "fin_filings"),
        dedup=DedupConfig(substring=SubstringConfig(min_length=200)),
    )
    manifest = build(config, folder, Engine(), until="split")
    counts = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    (row,) = fact_statistics(counts["clean"]["sources"], counts["split"]["documents"])
    cleaned, published = counts["clean"]["sources"], counts["split"]["documents"]
    (row,) = fact_statistics(cleaned, published)
    return [
        _figure_row("after cleaning", cleaned, row.num_facts, row.num_found),
        _figure_row("after deduplication", published, row.num_facts_kept, row.num_found_kept),
    ]


def _figure_row(what: str, rows: list[dict[str, Any]], num_facts: int, num_found: int) -> list[str]:
    size = sum(row["text_bytes"] for row in rows)
    return [what, f"{size:,}", f"{num_facts:,}", f"{num_found:,}", _share(num_found, num_facts)]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "–"


def _graded(rows: Mapping[str, list[Difference]]) -> str:
    counts = {form: Counter(row.grade for row in found) for form, found in rows.items()}
    return table(
        ["items of", "peer's", *_GRADES],
        [[form, f"{sum(found.values()) - found['ours alone']:,}", *(f"{found[kind]:,}" for kind in _GRADES)]
         for form, found in counts.items()],
    )  # fmt: skip


def _listed(rows: list[Difference], kinds: tuple[str, ...]) -> str:
    def ends(text: str) -> str:
        words = " ".join(text.replace("|", " ").split())
        return f"{words[:60]} ... {words[-50:]} ({len(words):,})" if words else "–"

    return table(
        ["filing", "item", "grade", "read", "ours", "peer's"],
        [
            [row.filing, row.item, row.grade, _READ.get((row.filing, row.item), ""), ends(row.ours), ends(row.peer)]
            for row in rows
            if row.grade in kinds
        ],
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "filings", "Filings", ["finpile", "resiliparse", "apache-beam"])
    report.add(*__doc__.strip().split("\n\n")[2:])
    say("8-K")
    documents = dict(main_documents(arguments.data))
    rows = {"8-K": current_reports(arguments.data, documents)}
    say("10-K")
    rows["10-K, put together"] = annual_reports(arguments.data)
    report.add("## Items", _graded(rows))
    report.add("Sections that differ from the peer's, and those that it does not have:")
    report.add(_listed([row for found in rows.values() for row in found], ("wrong", "missing", "ours alone")))
    report.add("Items that are unsure:", _listed([row for found in rows.values() for row in found], ("unsure",)))
    report.add("## Headers", table(["field", "equal", "different", "not in the header"],
                                   header_rows(arguments.data, documents)))  # fmt: skip
    say("figures")
    with tempfile.TemporaryDirectory() as folder:
        report.add("## Figures", table(["texts", "bytes", "figures", "found", "share"],
                                       figure_rows(arguments.data, folder)))  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
