"""Filings that EDGAR has twice: in both dialects of its full submissions, byte for byte, and under two companies."""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import CorpusConfig, NearConfig, SourceConfig
from finpile.dedup import find_near_duplicates
from finpile.verify import verify
from tests.support.trees import rows_below

SUBMISSIONS = "fin_filings/edgar_full_submission_sgml.tar.zst"
EXTRACTED = "fin_filings/edgar_crawler/EXTRACTED_10-K.zip"
#: Sent as .txt and as .nc, and the documents of either that are text. The .nc of the first lacks its cover.
IN_TWO_DIALECTS = {
    "0001193125-24-100942": {"485APOS", "EX-99.(Q3)", "COVER"},
    "0001104659-25-002604": {"SC TO-T/A", "EX-99.(A)(5)(C)"},
}
#: One file under two names; all it holds is a form in XML.
BYTE_IDENTICAL = "0001398344-24-000491"
UNDER_TWO_COMPANIES = "0000891618-02-005524"
NUM_REPORTS = 62

Row = dict[str, Any]
Find = Callable[[str], Path]

pytestmark = pytest.mark.slow


def filings(root: Path, out: Path, **source: Any) -> tuple[list[Row], list[Row]]:
    """A corpus of one source, deduplicated as by default: its documents and its ledger, in which every law holds."""
    entry = SourceConfig(name="Filings", dataset="FinPile", **source)
    build(CorpusConfig(name="filings", root=str(root), sources=(entry,)), str(out), Engine(), until="split")
    assert [check for check in verify(str(out)) if not check.ok] == []
    return rows_below(out / "documents"), rows_below(out / "removed")


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with (
        archive.open("rb") as stream,
        zstandard.ZstdDecompressor().stream_reader(stream) as raw,
        tarfile.open(fileobj=raw, mode="r|") as tar,
    ):
        for member in tar:
            if (file := tar.extractfile(member)) is not None:
                yield member.name, file.read()


def dialects(rows: list[Row]) -> set[str]:
    return {row["locator"].split("#")[0].rsplit(".", 1)[1] for row in rows}


@pytest.fixture(scope="module")
def submissions(real_data: Find, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], list[Row]]:
    root = real_data(SUBMISSIONS).parents[1]
    members = tuple(f"*{accession}.*" for accession in (*IN_TWO_DIALECTS, BYTE_IDENTICAL))
    out = tmp_path_factory.mktemp("submissions")
    return filings(root, out, format="edgar", paths=(SUBMISSIONS,), members=members)


def test_a_submission_in_both_dialects_is_kept_once(submissions: tuple[list[Row], list[Row]]) -> None:
    kept, ledger = submissions
    dropped = {row["duplicate_of"]: row for row in ledger if row["stage"] != "ingest"}
    types: Counter[tuple[str, str]] = Counter()
    for row in kept:
        meta = json.loads(row["meta"])
        types[meta["accession"], meta["document_type"]] += 1
        assert row["num_copies"] == (1 if meta["document_type"] == "COVER" else 2)
        if row["num_copies"] == 2:
            copy = dropped.pop(row["id"])
            assert meta["accession"] in copy["locator"]
            assert dialects([row, copy]) == {"txt", "nc"}
    assert dropped == {}
    assert types == {(accession, name): 1 for accession, names in IN_TWO_DIALECTS.items() for name in names}


@pytest.mark.parametrize("accession", IN_TWO_DIALECTS)
def test_whole_submissions_are_near_duplicates_but_for_the_numbers_of_their_headers(
    accession: str, real_data: Find
) -> None:
    """So it is the reader that makes their documents equal: what is not text, and each header's own dialect, is out."""
    found = [data.decode("latin-1") for name, data in members(real_data(SUBMISSIONS)) if accession in name]
    assert len(found) == 2
    texts = pa.array(found, pa.large_string())
    [row] = find_near_duplicates(texts, NearConfig(numbers="any"))
    assert row.edit_similarity > 0.99
    assert find_near_duplicates(texts, NearConfig(numbers="keep")) == []


def test_a_file_under_two_names_is_kept_once(
    submissions: tuple[list[Row], list[Row]], real_data: Find, tmp_path: Path
) -> None:
    """As a submission it has no text, and the ledger records that for both; as plain text it is one document."""
    ledger = [row for row in submissions[1] if BYTE_IDENTICAL in row["locator"]]
    assert [(row["stage"], row["reason"]) for row in ledger] == [("ingest", "not_text")] * 2
    root, pattern = real_data(SUBMISSIONS).parents[1], f"*{BYTE_IDENTICAL}.*"
    kept, ledger = filings(root, tmp_path, format="text", paths=(SUBMISSIONS,), members=(pattern,))
    assert [row["num_copies"] for row in kept] == [2]
    assert [(row["reason"], row["duplicate_of"]) for row in ledger] == [("exact_duplicate", kept[0]["id"])]
    assert dialects([*kept, *ledger]) == {"nc", "txt"}


@pytest.mark.parametrize("with_company", [False, True], ids=["items", "company and items"])
def test_a_report_under_two_companies_is_kept_once(with_company: bool, real_data: Find, tmp_path: Path) -> None:
    """Its items are equal. With the company's name above them the two are near duplicates, and exact ones no more."""
    lines = tmp_path / "reports.jsonl"
    with zipfile.ZipFile(real_data(EXTRACTED)) as archive, lines.open("w") as out:
        for name in sorted(name for name in archive.namelist() if name.endswith(".json")):
            report = json.loads(archive.read(name))
            items = [text for key, text in report.items() if re.match(r"item_\d", key) and text]
            text = "\n\n".join([report["company"], *items] if with_company else items)
            out.write(json.dumps({"text": text, "cik": report["cik"], "file": name}) + "\n")

    def record_of(row: Row) -> Row:
        line: Row = json.loads(lines.read_bytes()[int(row["locator"].rsplit("#", 1)[1]) :].split(b"\n", 1)[0])
        return line

    kept, ledger = filings(tmp_path, tmp_path / "out", format="jsonl", paths=(lines.name,))
    assert len(kept) + len(ledger) == NUM_REPORTS
    [copy] = ledger
    [stays] = [row for row in kept if row["id"] == copy["duplicate_of"]]
    assert copy["stage"] == ("near" if with_company else "exact")
    assert stays["num_copies"] == 2
    pair = [record_of(copy), record_of(stays)]
    assert all(UNDER_TWO_COMPANIES in record["file"] for record in pair)
    assert {record["cik"] for record in pair} == {"1000564", "1000654"}
