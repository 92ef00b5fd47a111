"""Mail: headers, parts, mailboxes, and messages whose headers nothing separates from their text."""

from __future__ import annotations

import email
import email.parser
import email.policy
import io
import mailbox
import random
import subprocess
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP, default
from pathlib import Path
from typing import IO, Any, cast

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import HTML
from finpile.sources.formats import mail
from finpile.sources.readers.converted import Refused
from tests.support.reading import Items, damaged_copies, read_as, read_folder, split


def read(data: bytes, **settings: Any) -> Items:
    return split(read_as("mail", data, "a.eml", **settings))


def message(text: str, **headers: str) -> EmailMessage:
    made = EmailMessage(policy=default)
    for name, value in {"From": "Ann <a@x.com>", "To": "b@x.com", "Subject": "Öl", **headers}.items():
        made[name] = value
    made["Date"] = "Mon, 14 May 2001 16:39:00 -0700 (PDT)"
    made.set_content(text)
    return made


@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "cp1252", "utf-7"])
@pytest.mark.parametrize("encoding", ["base64", "quoted-printable"])
def test_message_of_any_charset(charset: str, encoding: str) -> None:
    made = message("")
    made.set_content("Öl stieg.\n\n> Gas?\n", charset=charset, cte=encoding)
    [document], [] = read(made.as_bytes(policy=SMTP))
    assert document.text == "Öl\n\nÖl stieg.\n\n> Gas?"
    assert (document.title, document.timestamp) == ("Öl", datetime(2001, 5, 14, 23, 39, tzinfo=UTC))
    assert document.meta == {"from": "Ann <a@x.com>", "to": "b@x.com"}


@pytest.mark.parametrize(
    ("date", "year", "month", "day"),
    [
        ("21 Nov 1997 09:55:06 GMT", 1997, 11, 21),
        ("21 Nov 97 09:55:06 GMT", 1997, 11, 21),
        ("03 Nov 04 09:55:06 +0000", 2004, 11, 3),
        ("Tue, 2 Nov 04 09:55:06 GMT", 2004, 11, 2),
        ("Fri, 02 Nov 04 09:55:06 GMT (no Friday)", 2004, 11, 2),
        ("Fri, 21 Nov 1997 04:55:06 (EST)", 1997, 11, 21),
        ("Fri, 21 Nov 1997 09:55:06 +0000 (Öst)", 1997, 11, 21),
        ("Thurs 4 Nov 49 09:55:06 GMT", 2049, 11, 4),
        ("04 Nov 50 09:55:06 GMT", 1950, 11, 4),
        ("Sat, 1 Dec 101 09:55:06 GMT", 2001, 12, 1),
    ],
)
def test_obsolete_dates_are_read_as_rfc_5322_says(date: str, year: int, month: int, day: int) -> None:
    [document], [] = read(f"Subject: x\nDate: {date}\n\nOil rose.\n".encode())
    assert document.timestamp == datetime(year, month, day, 9, 55, 6, tzinfo=UTC)


def test_plain_part_is_the_text_and_attachments_are_rows() -> None:
    made = message("Plain.")
    made.add_alternative("<p>Rich.</p>", subtype="html")
    made.add_attachment(b"%PDF-1.4", maintype="application", subtype="pdf", filename="réport.pdf")
    made.add_attachment(message("inner"))
    [document], rows = read(made.as_bytes())
    assert (document.text, document.meta["attachments"]) == ("Öl\n\nPlain.", 2)
    assert [(row.locator, row.reason) for row in rows] == [(f"a.eml/attachment-{n}", "attachment") for n in (1, 2)]
    assert {row.timestamp for row in rows} == {document.timestamp} != {None}  # for corpora as of a day
    assert (rows[0].detail, rows[0].removed_text) == ("application/pdf réport.pdf, 8 bytes", b"%PDF-1.4")
    assert b"inner" in rows[1].removed_text


@pytest.mark.parametrize("boundary", ["", "; boundary=b"])
def test_a_message_without_the_parts_that_it_says_is_text(boundary: str) -> None:
    [document], [] = read(f"Subject: Oil\nContent-Type: multipart/mixed{boundary}\n\nIt rose.\n".encode())
    assert document.text == "Oil\n\nIt rose."


def test_html_alone_is_html() -> None:
    made = message("")
    made.set_content("<p>Rich</p>", subtype="html")
    [document], [] = read(made.as_bytes())
    assert (document.media_type, document.text.split("\n")[:2]) == (HTML, ["<p>Öl</p>", "<p>Rich</p>"])


def test_headers_that_nothing_separates_end_at_the_first_line_of_text() -> None:
    [document], [] = read(b"Subject: oil\nnote : all\nre: gas\nmore\n")
    assert document.text == "oil\n\nnote : all\nre: gas\nmore"
    assert (
        read(b"Subject: oil\nto: a@x.com\ngary ,\nsubject: x\n\nend")[0][0].text == "oil\n\ngary ,\nsubject: x\n\nend"
    )


def test_mailbox_is_read_as_the_standard_library_reads_it(tmp_path: Path) -> None:
    box = mailbox.mbox(tmp_path / "box")
    texts = [f"Line {number}\nFrom here on\n\nFrom 12:00 there was oil.\n" for number in range(20)]
    for text in texts:
        box.add(message(text))
    box.flush()
    data = (tmp_path / "box").read_bytes()
    documents, [] = read(data)
    assert [document.text for document in documents] == [f"Öl\n\n{text.strip()}" for text in texts]
    offsets = [int(document.locator.partition("#")[2]) for document in documents]
    assert all(data[offset:].startswith(b"From MAILER-DAEMON") for offset in offsets)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no header\n\ntext", "no_record"),
        (b"Subject: x\n\n \n", "empty_text"),
        (b"Subject: x\nContent-Type: text/plain\n\n\xff", "undecodable"),
        (b"Subject: x\n" + b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n)
                                     for n in range(3000)), "unreadable_record"),
    ],
)  # fmt: skip
def test_file_without_text_is_a_row_with_its_bytes(data: bytes, reason: str) -> None:
    [], [row] = read(data, **({"encoding": ("utf-8",)} if reason == "undecodable" else {}))
    assert (row.reason, row.removed_text) == (reason, data)


def test_damaged_messages_lose_nothing_silently() -> None:
    made = message("Oil and gas.\n" * 9, Subject="=?utf-8?q?=C3=96l?= =?iso-8859-1?b?5g==?=")
    made.add_alternative("<p>Rich</p>", subtype="html")
    made.add_attachment(b"\0" * 99, maintype="application", subtype="pdf", filename="a.pdf")
    whole, start = made.as_bytes(), b"From a@x.com Sat Jan  3 01:05:34 1996\n"
    for data in (*damaged_copies(whole, 3), *damaged_copies(b"\n".join([start + whole] * 2), 3, len(start))):
        assert all(row.reason != "reader_error" for row in read(data)[1])


def test_mails_of_enron(real_data: Callable[[str], Path]) -> None:
    """Each file is a document or a row; texts have every word of the files, as split by Python's own library."""
    archive = real_data("enron") / "enron1_subset.tar.zst"
    source = SourceConfig(
        name="N", dataset="D", format="mail", paths=(archive.name,), members=("*.txt",), date_pattern="%Y-%m-%d"
    )
    documents, removals, _ = read_folder(source, archive.parent)
    packed = subprocess.run(["unzstd", "-c", str(archive)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        members = [cast(IO[bytes], files.extractfile(member)).read() for member in files if member.isfile()]
    assert len(documents) + len(removals) == len(members) == 5172 and {row.reason for row in removals} == {"empty_text"}
    assert all(email.message_from_bytes(row.removed_text).get_payload() in ("", "\n") for row in removals)
    lost = sum(len(row.removed_text.split()) for row in removals)
    words = sum(len(document.text.encode("latin-1", "replace").split()) for document in documents)
    expected = sum(len(member.split()) for member in members) - len(documents)  # `Subject:` is not a word of a document
    assert abs(words + lost - expected) < 30  # 15 files are not UTF-8
    assert all(document.timestamp for document in documents)


# --- the parser of the standard library, of which texts without parts need only the headers ---------------------------

PARTS = (
    b"From: a@x.com\n", b"Subject: s\n t\n", b"To: b@x.com\r\n", b"Date: Mon, 14 May 2001 16:39:00 -0700\n",
    b"X: y\rz\n",
    b"\n", b"\r\n", b" \n", b"\r", b"text\n", b"text: more\r\n", b"From here\n", b"\xe9\xff\n", b"--b\n", b"--b--\n",
    b'Content-Type: multipart/mixed; boundary="b"\n', b"Content-Type: text/html\n", b"Content-Type: message/rfc822\n",
    b"Content-Transfer-Encoding: base64\n", b"Zm9v\n", b"no end", b"", b":\n", b"Content-Type: x\n",
)  # fmt: skip


def seen(message: email.message.Message) -> object:
    """All that a message holds."""
    payload = message.get_payload()
    return (
        message.get_unixfrom(),
        list(message.raw_items()),
        [seen(part) for part in payload] if isinstance(payload, list) else payload,
    )


def test_messages_are_those_of_the_standard_library() -> None:
    draw = random.Random(3)
    num_read = 0
    for _ in range(5000):
        data = b"".join(draw.choices(PARTS, k=draw.randint(1, 12)))
        try:
            separated, _ = mail._separated(data)
        except Refused:
            continue
        num_read += 1
        reference = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(separated)
        assert seen(mail.parse(data)) == seen(reference), data
    assert num_read > 500
