"""Full submissions: both dialects, text and other documents, cut files, and the 23 real ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import HTML, PLAIN, RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import list_inputs, read_file, read_stream
from finpile.sources.bytes.streams import BrokenStream, ByteStream
from finpile.sources.formats.edgar import format as edgar
from tests.support.reading import Item, read_input
from tests.support.real_data import find

SOURCE = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=("*",))

TXT_HEADER = """-----BEGIN PRIVACY-ENHANCED MESSAGE-----
Proc-Type: 2001,MIC-CLEAR

<SEC-DOCUMENT>0000000001-99-000001.txt : 19990302
<SEC-HEADER>0000000001-99-000001.hdr.sgml : 19990302
ACCESSION NUMBER:\t\t0000000001-99-000001
CONFORMED SUBMISSION TYPE:\t4
CONFORMED PERIOD OF REPORT:\t19990228
FILED AS OF DATE:\t\t19990302

REPORTING-OWNER:

\tOWNER DATA:
\t\tCOMPANY CONFORMED NAME:\t\t\tDOE JANE
\t\tCENTRAL INDEX KEY:\t\t\t0000000009

ISSUER:

\tCOMPANY DATA:
\t\tCOMPANY CONFORMED NAME:\t\t\tSMITH & SONS
\t\tCENTRAL INDEX KEY:\t\t\t0000000007
\t\tSTANDARD INDUSTRIAL CLASSIFICATION:\tMETALWORKING [3540]
</SEC-HEADER>
"""
NC_HEADER = (
    "<SUBMISSION>\n<ACCESSION-NUMBER>0000000001-99-000001<TYPE>4<PERIOD>19990228<FILING-DATE>19990302\r"
    "<REPORTING-OWNER>\r<OWNER-DATA>\r<CONFORMED-NAME>DOE JANE\r<CIK>0000000009\r</OWNER-DATA>\r</REPORTING-OWNER>\r"
    "<ISSUER>\r<COMPANY-DATA>\r<CONFORMED-NAME>SMITH &amp; SONS\r<CIK>0000000007\r<ASSIGNED-SIC>3540\r"
    "</COMPANY-DATA>\r</ISSUER>\r"
)


def document(text: str, document_type: str = "4", filename: str = "a.txt") -> str:
    return (
        f"<DOCUMENT>\n<TYPE>{document_type}\n<SEQUENCE>1\n<FILENAME>{filename}\n<DESCRIPTION>OWNERSHIP\n"
        f"<TEXT>{text}</TEXT>\n</DOCUMENT>\n"
    )


def txt(*documents: str) -> bytes:
    return (TXT_HEADER + "".join(documents) + "</SEC-DOCUMENT>\n-----END PRIVACY-ENHANCED MESSAGE-----\n").encode()


def read(data: bytes, source: SourceConfig = SOURCE) -> list[Item]:
    return read_input(source, data, "a/0000000001-99-000001.txt")


def reasons(found: list[Item]) -> list[str]:
    return [entry.reason if isinstance(entry, Removal) else entry.media_type for entry in found]


def one(data: bytes) -> RawDocument:
    (found,) = read(data)
    assert isinstance(found, RawDocument)
    return found


def test_both_dialects_give_the_same_documents() -> None:
    first = one(txt(document("\nShares were sold.\n")))
    second = one((NC_HEADER + document("\nShares were sold.\n") + "</SUBMISSION>").encode())
    assert first.text == second.text == "\nShares were sold.\n"
    assert first.meta == second.meta
    assert first.title == second.title == "SMITH & SONS 4 OWNERSHIP"
    assert first.timestamp == second.timestamp == datetime(1999, 3, 2, tzinfo=UTC)
    assert first.meta == {
        "accession": "0000000001-99-000001", "form_type": "4", "period": "19990228", "filed": "19990302",
        "company": "SMITH & SONS", "cik": "0000000007", "ciks": ["0000000009", "0000000007"], "sic": "3540",
        "document_type": "4", "sequence": "1", "filename": "a.txt",
    }  # fmt: skip


def test_long_lines_of_a_header_are_read_in_linear_time() -> None:
    blanks = " " * 200_000
    data = txt(document("\nShares were sold.\n"))
    assert one(data.replace(b"ISSUER:", f"A{blanks}x\nNOTE: a{blanks}b\nISSUER:".encode(), 1)).meta == one(data).meta


@pytest.mark.parametrize(
    ("accepted", "moment"),
    [
        ("20240418171550", datetime(2024, 4, 18, 21, 15, 50, tzinfo=UTC)),  # daylight saving time
        ("20241227162940", datetime(2024, 12, 27, 21, 29, 40, tzinfo=UTC)),
        ("20061102210000", datetime(2006, 11, 3, 2, 0, 0, tzinfo=UTC)),  # before 2007 it ended in October
        ("20071102210000", datetime(2007, 11, 3, 1, 0, 0, tzinfo=UTC)),
        ("20241103013000", datetime(2024, 11, 3, 6, 30, 0, tzinfo=UTC)),  # occurs twice: the later one
    ],
)
def test_the_timestamp_is_the_moment_of_acceptance_in_new_york(accepted: str, moment: datetime) -> None:
    found = one(txt(document("one")).replace(b"ACCESSION", f"<ACCEPTANCE-DATETIME>{accepted}\nACCESSION".encode(), 1))
    assert (found.timestamp, found.timestamp_origin) == (moment, "header")
    assert (found.meta["accepted"], found.meta["filed"]) == (accepted, "19990302")


@pytest.mark.parametrize(
    ("accepted", "moment"),
    [
        ("19990301180000", datetime(1999, 3, 2, 11, 0, 0, tzinfo=UTC)),  # after 17:30: public from 6:00 the day after
        ("19990226214500", datetime(1999, 3, 2, 11, 0, 0, tzinfo=UTC)),  # over a week's end
        ("19990302060000", datetime(1999, 3, 2, 11, 0, 0, tzinfo=UTC)),
        ("19990302093000", datetime(1999, 3, 2, 14, 30, 0, tzinfo=UTC)),
        ("19990302214500", datetime(1999, 3, 3, 2, 45, 0, tzinfo=UTC)),  # forms that are filed until 22:00
    ],
)
def test_a_filing_accepted_before_its_filing_date_is_public_from_that_morning_on(
    accepted: str, moment: datetime
) -> None:
    found = one(txt(document("one")).replace(b"ACCESSION", f"<ACCEPTANCE-DATETIME>{accepted}\nACCESSION".encode(), 1))
    assert (found.timestamp, found.meta["filed"]) == (moment, "19990302")


@pytest.mark.parametrize("accepted", ["20240418", "20241341000000", "99999999999999", "2024\u0661418171550"])
def test_an_acceptance_that_cannot_be_read_leaves_the_filing_date_and_is_reported(accepted: str) -> None:
    found = one(txt(document("one")).replace(b"ACCESSION", f"<ACCEPTANCE-DATETIME>{accepted}\nACCESSION".encode(), 1))
    assert found.timestamp == datetime(1999, 3, 2, tzinfo=UTC)
    assert found.meta["unreadable_timestamp"] == accepted and "accepted" not in found.meta


def test_a_filing_that_was_confidential_is_dated_by_its_release() -> None:
    data = txt(document("one")).replace(b"hdr.sgml : 19990302\n", b"hdr.sgml : 19990302\n<PRIVATE-TO-PUBLIC>\n")
    data = data.replace(b"ACCESSION", b"<ACCEPTANCE-DATETIME>19990302120000\nACCESSION", 1)
    assert one(data).timestamp == datetime(1999, 3, 2, tzinfo=UTC)
    assert one(data.replace(b"01.txt : 19990302", b"01.txt : 19991004")).timestamp == datetime(1999, 10, 4, tzinfo=UTC)


def test_declared_items_are_kept_in_their_order() -> None:
    header = b"ITEM INFORMATION:\t\tOther events\nITEM INFORMATION:\t\nITEM INFORMATION: 7\nFILED AS"
    assert one(txt(document("one")).replace(b"FILED AS", header, 1)).meta["declared_items"] == ["Other events", "7"]


def test_a_locator_leads_to_the_document() -> None:
    data = txt(document("one"), document("two"))
    for found in read(data):
        offset = int(found.locator.rpartition("#")[2])
        assert data[offset:].startswith(b"<DOCUMENT>\n<TYPE>4")
    assert len({found.locator for found in read(data)}) == 2


@pytest.mark.parametrize(
    ("text", "document_type", "filename", "expected"),
    [
        ("plain words", "8-K", "", PLAIN),
        ("<PAGE>\n<TABLE>\n<S> <C>\nRevenue 12\n</TABLE>", "10-K", "a.txt", PLAIN),
        ("\n<html><body>x", "EX-99.1", "a.txt", HTML),
        ("\n<P>x</P>", "8-K", "a.htm", HTML),
        ("\n<!-- made by x --><!DOCTYPE html PUBLIC '-//W3C'>\n<HTML>x", "8-K", "", HTML),
        ("\n<XBRL>\n<?xml version='1.0'?>\n<!--a--><html xmlns='x'>x</html>\n</XBRL>\n", "10-K", "a.htm", HTML),
        ("\n<XML>\n<?xml version='1.0'?>\n<ownershipDocument>x", "4", "a.xml", "not_text"),
        ("\n<?xml version='1.0'?>\n<informationTable>x", "INFORMATION TABLE", "a.txt", "not_text"),
        ("\n<html><body>R1", "XML", "R1.htm", "not_text"),
        ('\n{\n "version": "2.2"', "OTHER", "a.txt", "not_text"),
        ("\nbegin 644 a.jpg\nM_]C_X", "OTHER", "a.txt", "not_text"),
        ("\n<PDF>\nbegin 644 a.pdf\nMJVBE\n</PDF>\n", "8-K", "a.pdf", "not_text"),
        ("\n<ARTICLE> 5\n<CASH> 12", "EX-27", "a.txt", "not_text"),
        ("\n<XBRL>x", "EX-101.LAB", "a.xml", "not_text"),
        (" \n ", "8-K", "a.txt", "empty_text"),
    ],
)
def test_text_for_reading_is_distinguished_from_other_content(
    text: str, document_type: str, filename: str, expected: str
) -> None:
    (found,) = read(txt(document(text, document_type, filename)))
    assert reasons([found]) == [expected]
    if isinstance(found, Removal):
        assert text.encode() in found.removed_text
        assert found.timestamp == datetime(1999, 3, 2, tzinfo=UTC)  # of the filing, for corpora as of a day


def test_a_removed_part_of_a_filing_of_an_implausible_day_has_no_date() -> None:
    (found,) = read(txt(document("\n<XBRL>x", "EX-101.LAB")).replace(b"DATE:\t\t19990302", b"DATE:\t\t18500302"))
    assert isinstance(found, Removal) and found.timestamp is None


def test_the_wrapper_around_a_text_is_not_text() -> None:
    assert one(txt(document("\n<XBRL>\n<html>x</html>\n</XBRL>\n"))).text == "\n<html>x</html>\n"


def test_each_document_has_its_own_encoding() -> None:
    data = txt(document("caf\u00e9"), document("PLACE")).replace(b"PLACE", b"caf\xe9 \x93q\x94")
    assert [found.text for found in read(data) if isinstance(found, RawDocument)] == ["café", "café “q”"]


def test_a_damaged_byte_does_not_change_the_encoding_of_a_document() -> None:
    text = "It\u2019s a \u201ccaf\u00e9\u201d "
    assert one(txt(document(f"{text}PLACE")).replace(b"PLACE", b"\x96")).text == f"{text}\ufffd"
    assert one(txt(document(text)).replace(text.encode(), text.encode("cp1252") + b"\x9d")).text == f"{text}\ufffd"


def test_bytes_that_no_encoding_reads_are_kept_in_the_ledger() -> None:
    source = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=("*",), encoding=("ascii",))
    (found,) = read(txt(document("caf\u00e9")), source)
    assert isinstance(found, Removal)
    assert found.reason == "undecodable" and found.removed_text == document("café").rstrip().encode()
    assert found.timestamp == datetime(1999, 3, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b" \n", "empty_text"),
        (TXT_HEADER.encode(), "empty_text"),
        (b"<html><body>a page</body></html>", "not_a_submission"),
        (b"<DOCUMENT> in prose", "not_a_submission"),
        (bytes(range(256)), "not_a_submission"),
    ],
)
def test_a_file_without_documents_is_one_row_that_holds_it(data: bytes, reason: str) -> None:
    (found,) = read(data)
    assert isinstance(found, Removal)
    assert (found.reason, found.removed_text) == (reason, data)


def test_every_cut_is_noticed_and_nothing_before_it_is_lost() -> None:
    data = txt(document("first text"), document("second text"))
    texts = ["first text", "second text"]
    end = data.index(b"</SEC-DOCUMENT>") + len(b"</SEC-DOCUMENT>")
    first_whole = data.index(b"</DOCUMENT>") + len(b"</DOCUMENT>")
    for cut in range(data.index(b"<DOCUMENT>") + 20, end):
        found = read(data[:cut])
        assert "truncated_file" in reasons(found), cut
        assert len({entry.locator for entry in found}) == len(found)
        kept = [entry.text for entry in found if isinstance(entry, RawDocument)]
        assert all(whole.startswith(part.split("<")[0]) for whole, part in zip(texts, kept, strict=False))
        assert cut < first_whole or kept[0] == texts[0]
    assert "truncated_file" not in reasons(read(data[:end]))


def test_a_document_that_is_not_closed_does_not_swallow_the_next() -> None:
    found = read(txt(document("one").replace("</DOCUMENT>", ""), document("two")))
    assert reasons(found) == [PLAIN, "truncated_file", PLAIN]


@pytest.mark.parametrize(
    ("before", "after"),
    [("<DOCUMENT>", "<DOCUMENU>"), ("<DOCUMENT>", "<DOCUMENT"), ("<DOCUMENT>\n", "\n"), ("<TYPE>", "")],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_document_whose_start_is_damaged_is_a_row_with_its_bytes(before: str, after: str, place: int) -> None:
    parts = [document(f"text {number}") for number in range(3)]
    parts[place] = parts[place].replace(before, after)
    found = read(txt(*parts))
    texts = [entry.text for entry in found if isinstance(entry, RawDocument)]
    assert texts == [f"text {number}" for number in range(3) if number != place]
    [row] = [entry for entry in found if isinstance(entry, Removal)]
    assert row.reason == "unreadable_record" and f"text {place}".encode() in row.removed_text
    assert row.timestamp == datetime(1999, 3, 2, tzinfo=UTC)


def test_two_documents_that_damage_has_joined_are_not_read_as_one() -> None:
    data = txt(document("one"), document("two").replace("</DOCUMENT>", ""), document("three").replace("<DOC", "<D"))
    found = read(data)
    assert [entry.text for entry in found if isinstance(entry, RawDocument)] == ["one", "two"]
    rows = [entry for entry in found if isinstance(entry, Removal)]
    assert [row.reason for row in rows] == ["truncated_file", "unreadable_record"]
    assert b"three" in rows[1].removed_text


def test_each_of_two_submissions_in_one_file_has_its_own_header() -> None:
    second = txt(document("second")).replace(b"19990302", b"20010203")
    dates = [entry.timestamp for entry in read(txt(document("first")) + second) if isinstance(entry, RawDocument)]
    assert dates == [datetime(1999, 3, 2, tzinfo=UTC), datetime(2001, 2, 3, tzinfo=UTC)]


def test_a_document_above_the_limit_is_a_row_and_the_next_is_read() -> None:
    source = replace(SOURCE, limits=LimitsConfig(record="200 KiB"))
    found = read(txt(document("x" * 300_000), document("two")), source)
    assert reasons(found) == ["too_large", PLAIN]
    assert isinstance(found[0], Removal) and len(found[0].removed_text) == 1 << 16
    assert found[0].timestamp == datetime(1999, 3, 2, tzinfo=UTC)


def test_a_broken_stream_raises_after_its_intact_part() -> None:
    def blocks():  # type: ignore[no-untyped-def]
        yield txt(document("one"), document("two"))[:-60]
        raise BrokenStream("truncated_file", "a.gz", "cut")

    found: list[RawDocument | Removal] = []
    with pytest.raises(BrokenStream):
        found.extend(read_stream(edgar.FORMAT, ByteStream(blocks()), "a", SOURCE))  # type: ignore[arg-type]
    assert [entry.text for entry in found if isinstance(entry, RawDocument)] == ["one", "two"]


def test_a_date_that_cannot_be_read_is_kept_in_meta() -> None:
    found = one(txt(document("one")).replace(b"FILED AS OF DATE:\t\t19990302", b"FILED AS OF DATE:\t\t199"))
    assert found.timestamp is None
    assert found.timestamp_origin == "none"
    assert found.meta["unreadable_timestamp"] == "199"


def test_real_submissions() -> None:
    """Counted by hand in the archive's 23 files: 85 <DOCUMENT>s, one header alone, one file without header."""
    archive = find("fin_filings/edgar_full_submission_sgml.tar.zst")
    source = SourceConfig(name="Filings", dataset="FinPile", format="edgar", paths=(archive.name,))
    found = [entry for file in list_inputs(source, str(archive.parent)) for entry in read_file(file, source)]
    documents = [entry for entry in found if isinstance(entry, RawDocument)]
    assert Counter(reasons(found)) == {"not_text": 57, HTML: 21, PLAIN: 7, "empty_text": 1}
    assert len({entry.locator for entry in found}) == len(found)
    for entry in documents:
        if entry.timestamp is None:
            assert "0000899681-95-000096" in entry.locator
        else:  # a filing is filed in the year of its accession number, or in the first days of the next
            assert entry.timestamp.year % 100 - int(entry.meta["accession"][11:13]) in (0, 1)
    dated = {Path(entry.locator.rpartition("#")[0]).name: entry.timestamp for entry in documents}
    assert dated["0000943374-24-000509.txt"] == datetime(2024, 12, 27, 21, 29, 40, tzinfo=UTC)
    assert dated["0001193125-24-100942.txt"] == datetime(2024, 10, 4, tzinfo=UTC)  # filed in April, confidential
