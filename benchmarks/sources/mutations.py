"""Damaged files of every format: no byte may be unaccounted for, and nothing may be raised.

    python -m benchmarks.sources.mutations [--num 20000] [--seed 1] [--only NAME] [--results FOLDER]

A small whole file of each format, plain, compressed and in archives, is damaged at random (bits flipped, bytes cut out,
inserted, doubled, exchanged, the end cut off) and read by `read_file`. What must hold of each is in `problems`; a file
that takes more than 10 s of CPU time, or 512 MiB of memory, is a problem, too.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import random
import resource
import sys
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import lz4.frame
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.common.report import RESULTS, Report, say, table
from finpile.config import SourceConfig
from finpile.documents.document import DocumentBuilder, RawDocument, document_id
from finpile.documents.ledger import Removal, ledger_table
from finpile.plugins.format import FORMATS
from finpile.sources import Account, ByteStream, list_inputs, read_file
from finpile.sources.readers.accounting import Content, Lost, Record, Structure

_WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel".split()  # noqa: SIM905
_NUM_RECORDS = 12
_MAX_CHANGE_BYTES = 40
#: Bounds of one file: CPU time, and growth of this process and its children.
_MAX_SECONDS = 10.0
_MAX_GROWTH_BYTES = 512 << 20
#: What structural bytes must look like, if their content can be checked.
_FORMS: dict[str, Callable[[bytes], bool]] = {
    "white_space": lambda data: not data.strip(),
    "sgml_prolog": lambda data: b"<REUTERS" not in data and b"<BODY" not in data,
    "edgar_header": lambda data: b"<DOCUMENT>\n<TYPE>" not in data and b"<TEXT>" not in data,
}


@dataclass(frozen=True, slots=True)
class Whole:
    """A file that nothing is wrong with."""

    name: str
    suffix: str
    format: str
    data: bytes
    members: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Neither compressed nor an archive."""
        return self.suffix.count(".") == 1 and self.suffix not in (".tar", ".zip")


def wholes() -> list[Whole]:
    """One file of each format, and of each container around one."""
    draw = random.Random(7)
    texts = [" ".join(draw.choices(_WORDS, k=30)) + f" {number}" for number in range(_NUM_RECORDS)]
    lines = _jsonl(texts)
    files = {f"{number:02}.txt": text.encode() for number, text in enumerate(texts)} | {"notes.md": b"no text"}
    plain = [
        Whole("jsonl", ".jsonl", "jsonl", lines),
        Whole(
            "json", ".json", "json", json.dumps({"text": "\n".join(texts), "n": [1, {"a": None}]}, indent=4).encode()
        ),
        Whole("text", ".txt", "text", "\n".join(texts).encode()),
        Whole("sgml", ".sgm", "sgml", _sgml(texts)),
        Whole("edgar, txt", ".txt", "edgar", _edgar(texts, is_feed=False)),
        Whole("edgar, nc", ".nc", "edgar", _edgar(texts, is_feed=True)),
        Whole("parquet", ".parquet", "parquet", _parquet(texts)),
        Whole("warc", ".warc", "warc", b"".join(_warc(texts))),
        Whole("arc", ".arc", "warc", _arc(texts)),
        Whole("wikipedia", ".xml", "wikipedia", _wikipedia(texts)),
        Whole("csv", ".csv", "csv", _csv(texts)),
        Whole("jats", ".xml", "jats", _jats(texts)),
        Whole("uspto", ".xml", "uspto", _uspto(texts)),
        Whole("tei", ".xml", "tei", _tei(texts)),
        Whole("subtitles", ".srt", "subtitles", _srt(texts)),
        Whole("eml", ".eml", "mail", _mail(texts)),
        Whole("mbox", ".mbox", "mail", _mbox(texts)),
        Whole("stackexchange", ".xml", "stackexchange", _posts(texts)),
        Whole("irc", ".log", "irc", _irc(texts)),
        Whole("code", ".py", "code", "\n".join(texts).replace(" ", " =\n").encode()),
        Whole("markdown", ".md", "markdown", _markdown(texts)),
        Whole("latex", ".tex", "latex", _latex(texts)),
        Whole("pdf", ".pdf", "pdf", _pdf(texts)),
    ]
    packed = [
        Whole(f"jsonl{suffix}", f".jsonl{suffix}", "jsonl", pack(lines[:900]) + pack(lines[900:]))
        for suffix, pack in _PACK.items()
    ]
    return [
        *plain,
        *packed,
        Whole("warc.gz", ".warc.gz", "warc", b"".join(gzip.compress(one, mtime=0) for one in _warc(texts))),
        Whole("tar", ".tar", "text", tar_of(files), ("*.txt",)),
        Whole("tar.gz", ".tar.gz", "text", gzip.compress(tar_of(files), mtime=0), ("*.txt",)),
        Whole("tar of jsonl.gz", ".tar", "jsonl", tar_of({"a.jsonl.gz": gzip.compress(lines, mtime=0)})),
        Whole("zip", ".zip", "text", _zip(files), ("*.txt",)),
        Whole("zip of parquet", ".zip", "parquet", _zip({"a.parquet": _parquet(texts)})),
    ]


_PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lz4": lambda data: bytes(lz4.frame.compress(data, content_checksum=True)),
}


def _jsonl(texts: list[str]) -> bytes:
    rows = [{"text": text, "timestamp": "2022-03-04", "title": "t", "more": [1, {"a": None}]} for text in texts]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _sgml(texts: list[str]) -> bytes:
    stories = (
        f'<REUTERS TOPICS="YES" NEWID="{number}">\n<DATE>26-FEB-1987 15:01:01.79</DATE>\n<TOPICS><D>oil</D></TOPICS>\n'
        f"<TEXT>&#2;\n<TITLE>OIL &lt;{number}></TITLE>\n<BODY>{text}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
        for number, text in enumerate(texts)
    )
    return b'<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(stories).encode()


def _edgar(texts: list[str], *, is_feed: bool) -> bytes:
    documents = "".join(
        f"<DOCUMENT>\n<TYPE>8-K\n<SEQUENCE>{number}\n<FILENAME>a.txt\n<TEXT>\n{text}\n</TEXT>\n</DOCUMENT>\n"
        for number, text in enumerate(texts[:6])
    )
    if is_feed:
        head = "<SUBMISSION>\n<ACCESSION-NUMBER>0000000001-99-000001\n<TYPE>8-K\n<FILING-DATE>19990302\n"
        return (head + documents + "</SUBMISSION>\n").encode()
    head = (
        "<SEC-DOCUMENT>0000000001-99-000001.txt : 19990302\n<SEC-HEADER>a.hdr.sgml : 19990302\n"
        "ACCESSION NUMBER:\t\t0000000001-99-000001\nFILED AS OF DATE:\t\t19990302\n</SEC-HEADER>\n"
    )
    return (head + documents + "</SEC-DOCUMENT>\n").encode()


def _parquet(texts: list[str]) -> bytes:
    columns: dict[str, Any] = {
        "text": texts,
        "timestamp": ["2022-03-04"] * len(texts),
        "title": [f"title {number}" for number in range(len(texts))],
        "price": [1.5] * len(texts),
        "embedding": [[0.5, 1.5]] * len(texts),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=5, compression="zstd")
    return sink.getvalue()


def _wikipedia(texts: list[str]) -> bytes:
    pages = (
        f"<page>\n<title>T {number}</title>\n<ns>0</ns>\n<id>{number}</id>\n<revision>\n<id>1</id>\n"
        f"<timestamp>2022-03-04T05:06:07Z</timestamp>\n<text>''{number}'' {{{{cn}}}} [[{text}|a]] {text}</text>\n"
        "</revision>\n</page>\n"
        for number, text in enumerate(texts)
    )
    return b"<mediawiki>\n" + "".join(pages).encode() + b"</mediawiki>\n"


def _csv(texts: list[str]) -> bytes:
    rows = (f'{number},"{text}, ""said""\nhe",2022-03-04\r\n' for number, text in enumerate(texts))
    return ("id,text,timestamp\r\n" + "".join(rows)).encode()


def _jats(texts: list[str]) -> bytes:
    body = "".join(f"<sec><title>{number}</title><p>{text}</p></sec>" for number, text in enumerate(texts))
    meta = "<article-meta><pub-date><year>2012</year></pub-date></article-meta>"
    return f"<?xml version='1.0'?><article><front>{meta}</front><body>{body}</body></article>".encode()


def _uspto(texts: list[str]) -> bytes:
    patents = (
        f'<?xml version="1.0"?>\n<us-patent-grant><publication-reference><document-id><doc-number>{number}</doc-number>'
        f"<date>20090421</date></document-id></publication-reference><abstract><p>{text}</p></abstract>"
        "</us-patent-grant>\n"
        for number, text in enumerate(texts)
    )
    return "".join(patents).encode()


def _tei(texts: list[str]) -> bytes:
    body = "".join(f"<u><seg>{text}</seg></u>" for text in texts)
    head = "<teiHeader><sourceDesc><date when='2015-10-26'/></sourceDesc></teiHeader>"
    return f"<TEI>{head}<text><body>{body}</body></text></TEI>".encode()


def _srt(texts: list[str]) -> bytes:
    cues = (
        f"{number}\n00:00:{number:02},000 --> 00:00:{number:02},900\n{text}\n\n" for number, text in enumerate(texts)
    )
    return "".join(cues).encode()


def _mail(texts: list[str]) -> bytes:
    text = "".join(f"> {text}\n" for text in texts)
    head = "From: a@x.com\nDate: Mon, 14 May 2001 16:39:00 -0700\nSubject: =?utf-8?q?=C3=96l?=\nMIME-Version: 1.0\n"
    kind = 'Content-Type: multipart/mixed; boundary="b"\n\n'
    part = "--b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n"
    return f"{head}{kind}{part}{text}\n--b--\n".encode()


def _mbox(texts: list[str]) -> bytes:
    messages = (
        f"From a@x.com Sat Jan  3 01:05:34 1996\nSubject: {number}\nFrom: b@x.com\n\n{text}\n>From here on\n\n"
        for number, text in enumerate(texts)
    )
    return "".join(messages).encode()


def _posts(texts: list[str]) -> bytes:
    rows = (
        f'  <row Id="{2 * number}" PostTypeId="1" CreationDate="2014-03-13T20:32:04.033" Score="3" Title="{number}" '
        f'Body="&lt;p&gt;{text}&lt;/p&gt;" />\n'
        f'  <row Id="{2 * number + 1}" PostTypeId="2" ParentId="{2 * number}" Score="{number}" Body="{text}" />\n'
        for number, text in enumerate(texts)
    )
    return ("<posts>\n" + "".join(rows) + "</posts>\n").encode()


def _irc(texts: list[str]) -> bytes:
    days = (
        f"--- Day changed Sun May {number + 1} 2022\n00:01 < nick> {text}\n00:02 -!- a [b@c] has joined #d\n"
        for number, text in enumerate(texts)
    )
    return "".join(days).encode()


def _markdown(texts: list[str]) -> bytes:
    parts = (
        f"# {number}\n\n- *{text}*\n\n|a|b|\n|-|-|\n|`{number}`|<b>c</b>|\n\n" for number, text in enumerate(texts)
    )
    return ("---\ntitle: T\ndate: 2022-03-04\n---\n" + "".join(parts)).encode()


def _latex(texts: list[str]) -> bytes:
    parts = (f"\\section{{a}} % c\n{{\\em {text}}} $x_1$~\\cite{{a}}\n\n" for text in texts)
    return f"\\documentclass{{article}}\n\\begin{{document}}\n{''.join(parts)}\\end{{document}}\n".encode()


def _pdf(texts: list[str]) -> bytes:
    """Without a table of its objects, which readers then search for."""
    kids = " ".join(f"{number} 0 R" for number in range(10, 10 + len(texts)))
    font = "/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    objects = {1: "<< /Type /Catalog /Pages 2 0 R >>", 2: f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>"}
    for number, text in enumerate(texts, start=10):
        content = f"BT /F 9 Tf 72 700 Td ({text}) Tj ET"
        objects[number] = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 900 792] {font} /Contents {number + 100} 0 R >>"
        objects[number + 100] = f"<< /Length {len(content)} >>\nstream\n{content}\nendstream"
    body = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in objects.items())
    return f"%PDF-1.4\n{body}trailer\n<< /Root 1 0 R >>\n%%EOF\n".encode()


def _http(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}</p>".encode()


def _warc(texts: list[str]) -> list[bytes]:
    def record(kind: str, block: bytes) -> bytes:
        head = (
            f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://example.com/a\r\n"
            f"WARC-Date: 2024-05-18T01:58:10Z\r\nContent-Type: application/http; msgtype={kind}\r\n"
            f"Content-Length: {len(block)}\r\n\r\n"
        )
        return head.encode() + block + b"\r\n\r\n"

    return [record("warcinfo", b"software: x\r\n"), *(record("response", _http(text)) for text in texts)]


def _arc(texts: list[str]) -> bytes:
    version = b"1 0 Example\nURL IP-address Archive-date Content-type Archive-length\n"
    parts = [b"filedesc://a.arc 0.0.0.0 20240518015810 text/plain %d\n" % len(version) + version + b"\n"]
    for text in texts:
        block = _http(text)
        parts.append(b"http://example.com/a 192.0.2.1 20240518015810 text/html %d\n" % len(block) + block + b"\n")
    return b"".join(parts)


def tar_of(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def _zip(files: dict[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return data.getvalue()


# --- damage


def mutate(data: bytes, draw: random.Random) -> bytes:
    """The data with one to three random changes."""
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(_CHANGES)(bytearray(data), draw)
    return data


def _span(data: bytearray, draw: random.Random) -> slice:
    start = draw.randrange(max(1, len(data)))
    return slice(start, start + draw.randint(1, _MAX_CHANGE_BYTES))


def _flip(data: bytearray, draw: random.Random) -> bytes:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def _overwrite(data: bytearray, draw: random.Random) -> bytes:
    span = _span(data, draw)
    data[span] = draw.randbytes(len(data[span]))
    return bytes(data)


def _delete(data: bytearray, draw: random.Random) -> bytes:
    del data[_span(data, draw)]
    return bytes(data)


def _insert(data: bytearray, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    data[place:place] = draw.choice((draw.randbytes(draw.randint(1, _MAX_CHANGE_BYTES)), b"\n", b"\0" * 512, b"<"))
    return bytes(data)


def _double(data: bytearray, draw: random.Random) -> bytes:
    start, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
    data[end:end] = data[start : min(end, start + 4000)]
    return bytes(data)


def _cut(data: bytearray, draw: random.Random) -> bytes:
    return bytes(data[: draw.randrange(len(data) + 1)])


def _exchange(data: bytearray, draw: random.Random) -> bytes:
    first, second, third = sorted(draw.randrange(len(data) + 1) for _ in range(3))
    return bytes(data[:first] + data[second:third] + data[first:second] + data[third:])


_CHANGES = (_flip, _flip, _flip, _overwrite, _delete, _insert, _double, _cut, _exchange)


# --- what must hold


@dataclass(slots=True)
class Found:
    """What became of a damaged file."""

    problems: list[str] = field(default_factory=list)
    num_documents: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


def read_damaged(whole: Whole, data: bytes, folder: Path) -> Found:
    """Reads the data as a file like `whole`, and checks the accounts of it."""
    found = Found()
    path = folder / f"a{whole.suffix}"
    path.write_bytes(data)
    source = _source(whole)
    accounts: list[Account] = []
    items: list[RawDocument | Removal] = []
    try:
        for file in list_inputs(source, str(folder)):
            items += read_file(file, source, accounts.append)
        _store(source, items)
    except Exception as error:
        found.problems.append(f"{type(error).__name__}: {error}")
        return found
    found.num_documents = sum(isinstance(item, RawDocument) for item in items)
    found.reasons.update(item.reason for item in items if isinstance(item, Removal))
    found.problems += problems(items, accounts, source)
    if whole.is_plain and whole.format != "parquet":  # the records of Parquet have no bytes of their own
        found.problems += claim_problems(whole, data)
    return found


def _source(whole: Whole) -> SourceConfig:
    return SourceConfig(
        name="News", dataset="FinPile", format=whole.format, paths=(f"a{whole.suffix}",), members=whole.members
    )


def _store(source: SourceConfig, items: list[RawDocument | Removal]) -> None:
    builder = DocumentBuilder(source.dataset, source.name)
    for item in items:
        if isinstance(item, RawDocument):
            builder.append(item)
    builder.flush()
    ledger_table(item for item in items if isinstance(item, Removal))


def problems(items: list[RawDocument | Removal], accounts: list[Account], source: SourceConfig) -> list[str]:
    """What is wrong with the accounts of one file."""
    wrong = [f"{account.locator}: {account.balance()} bytes" for account in accounts if account.balance()]
    rows = [item for item in items if isinstance(item, Removal)]
    for name, expected in (
        ("documents", len(items) - len(rows)),
        ("removals", len(rows)),
        ("removed_bytes", sum(len(row.removed_text) for row in rows)),
    ):
        if (counted := sum(getattr(account, name) for account in accounts)) != expected:
            wrong.append(f"{name}: {counted} in the accounts, {expected} read")
    ids = Counter(document_id(source.name, item.locator) for item in items)
    wrong += [f"{count} items have one id" for count in ids.values() if count > 1]
    if any(row.reason == "unclaimed_bytes" for row in rows):
        wrong.append("a reader left bytes out")
    return wrong


def claim_problems(whole: Whole, data: bytes) -> list[str]:
    """Where the claims of a reader are not the bytes of the file, or not all of them."""
    source, wrong, position = _source(whole), [], 0
    stream: Any = ByteStream(iter([data] if data else []), "a")
    for claim in FORMATS.get(whole.format).read(stream, "a", source):
        if claim.start != position and claim.start != claim.end:
            wrong.append(f"byte {position} to {claim.start} left out")
        position = max(position, claim.end)
        wrong += _differences(claim, data[claim.start : claim.end])
    if position != len(data):
        wrong.append(f"byte {position} to the end left out")
    return wrong


def _differences(claim: Record | Lost | Structure | Content, data: bytes) -> Iterator[str]:
    if isinstance(claim, Record) and claim.start < claim.end and claim.raw != data:
        yield f"the record at {claim.start} is not its bytes"
    if isinstance(claim, Lost) and claim.start < claim.end and claim.row.removed_text != data:
        yield f"the row at {claim.start} does not hold its bytes ({claim.row.reason})"
    if isinstance(claim, Structure) and not _FORMS.get(claim.kind, lambda _: True)(data):
        yield f"structure at {claim.start} is not a {claim.kind}"


class Result(NamedTuple):
    """What became of the damaged files of one format."""

    whole: Whole
    num_files: int
    problems: list[tuple[int, str]]
    """With the number of the file."""
    reasons: Counter[str]
    """Rows of the ledger."""
    num_documents: int
    most_seconds: float
    """CPU time of the slowest file."""
    growth_bytes: int
    """Of the resident memory of the process and its children, at its peak."""


def run(num: int, seed: int, only: str | None = None) -> Iterator[Result]:
    """What became of `num` damaged files, by format."""
    chosen = [whole for whole in wholes() if only in (None, whole.name)]
    for whole in chosen:
        wrong: list[tuple[int, str]] = []
        num_documents = 0
        reasons: Counter[str] = Counter()
        each = -(-num // len(chosen))
        most_seconds, before = 0.0, _peak_bytes()
        with tempfile.TemporaryDirectory() as folder:
            for number in range(each):
                data = mutate(whole.data, random.Random(f"{seed} {whole.name} {number}"))
                start = time.process_time()
                found = read_damaged(whole, data, Path(folder))
                seconds, growth = time.process_time() - start, _peak_bytes() - before
                most_seconds = max(most_seconds, seconds)
                if seconds > _MAX_SECONDS:
                    wrong.append((number, f"{seconds:.1f} s"))
                if growth > _MAX_GROWTH_BYTES:
                    wrong.append((number, f"{growth:,} bytes of memory"))
                    before += growth
                wrong += [(number, problem) for problem in found.problems]
                reasons.update(found.reasons)
                num_documents += found.num_documents
        yield Result(whole, each, wrong, reasons, num_documents, most_seconds, _peak_bytes() - before)


def _peak_bytes() -> int:
    """The largest resident memory that this process had, and what its children have."""
    children = sum(child.memory_info().rss for child in psutil.Process().children())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 + children


_ABOUT = (
    "Each file is read by `read_file`. A problem is: an exception; an account whose bytes are not those of records, "
    "ledger, members and structure; documents, rows or bytes of rows that the accounts count otherwise; two items of "
    "one id; bytes that a reader left out; a claim, of a file neither packed nor Parquet, that is not the file's "
    "bytes; more than 10 s of CPU time or 512 MiB more memory for a file. Slowest: CPU time of this process; memory: "
    "its growth and that of its children."
)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows, total, num_wrong = [], 0, 0
    for one in run(arguments.num, arguments.seed, arguments.only):
        say(one.whole.name)
        for number, problem in one.problems[:5]:
            say(f"    {number}: {problem}")
        named = ", ".join(f"{count:,} {reason}" for reason, count in one.reasons.most_common(4))
        bounds = [f"{one.most_seconds:.2f}", f"{max(0, one.growth_bytes) / 1e6:.0f}"]
        counts = [f"{one.num_files:,}", f"{len(one.problems)}", f"{one.num_documents:,}"]
        rows.append([one.whole.name, *counts, *bounds, named])
        total, num_wrong = total + one.num_files, num_wrong + len(one.problems)
    report = Report(
        arguments.results, "mutations", "Damaged files of every format", ["finpile", "pyarrow", "zstandard"]
    )
    report.add(_ABOUT, f"{total:,} damaged files, {num_wrong} problems.", table(_HEAD, rows))
    return 1 if num_wrong else 0


_HEAD = ["format", "damaged files", "problems", "documents", "slowest, s", "memory, MB", "rows of the ledger"]

if __name__ == "__main__":
    sys.exit(main())
