"""Archives in their own formats: documents, bytes, rows and speed of each, and an independent count of its records.

    python -m benchmarks.sources.formats [--data DATA] [--only FORMAT] [--results FOLDER]

A record is a document or a row of the ledger. Counts of the peer are those of another program: names in an archive,
matches of a regular expression, rows of the module `csv`, records of warcio. Times are CPU seconds of reading, packing
included, children's too (a PDF's has the start of its process). Each archive is read in a process of its own; memory is
the largest that it had, with that of its children. `pypdf`, `pdfminer.six` and `pylatexenc` are compared where they are
installed.
"""

from __future__ import annotations

import argparse
import contextlib
import email
import io
import multiprocessing
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from email.parser import BytesParser
from email.policy import compat32
from pathlib import Path

import psutil

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import ARCHIVES, members_of
from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import FORMATS
from finpile.sources import Account, list_inputs, read_file, read_stream

#: Rows beside a document of the same record.
_NUM_ROUNDS, _NUM_REPEATED = 5, 20
_MAIL = "Mail: CPU time of 5,172 mails as they are, and of 500 with texts 30 times as long; the best of 5 rounds."
_NOTE = re.compile(r"(/attachment-\d+|#scanned|#broken)\Z")


def measure(number: int, data: Path) -> list[str]:
    """A row of the table: that of the archive with this number."""
    archive = ARCHIVES[number]
    source = SourceConfig(
        name="N", dataset="D", format=archive.format, paths=(archive.path,), members=archive.members, **archive.settings
    )
    accounts: list[Account] = []
    reasons: Counter[str] = Counter()
    num_documents = num_notes = num_bytes_out = 0
    start = _cpu_seconds()
    for file in list_inputs(source, str(data)):
        for item in read_file(file, source, accounts.append):
            if isinstance(item, RawDocument):
                num_documents += 1
                num_bytes_out += len(item.text.encode())
            else:
                reasons[item.reason] += 1
                num_notes += _NOTE.search(item.locator) is not None
    seconds = _cpu_seconds() - start
    num_bytes = sum(account.decompressed_bytes for account in accounts if not account.member_bytes)
    balance = sum(map(abs, (account.balance() for account in accounts)))
    records, counted = num_documents + reasons.total() - num_notes, archive.count(data / archive.path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak += sum(child.memory_info().rss for child in psutil.Process().children())
    return [
        archive.path,
        archive.format,
        f"{num_documents:,}",
        f"{num_bytes:,}",
        f"{num_bytes_out:,}",
        ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common()) or "none",
        f"{num_bytes / 1e6 / max(seconds, 1e-6):.1f}",
        f"{peak / 1e6:.0f}",
        f"{counted:,}",
        "equal" if records == counted and not balance else f"{records - counted:+,}, balance {balance}",
    ]


def _cpu_seconds() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = [child.cpu_times() for child in psutil.Process().children()]
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(one.user + one.system for one in running)


# --- libraries


def _timed(work: Callable[[], str]) -> tuple[str, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def _source(format_name: str) -> SourceConfig:
    return SourceConfig(name="N", dataset="D", format=format_name, paths=("*",))


def _read(source: SourceConfig, data: bytes) -> str:
    items: Iterable[RawDocument | Removal] = read_stream(FORMATS.get(source.format), io.BytesIO(data), "a", source)
    return "".join(item.text for item in items if isinstance(item, RawDocument))


def latex_rows(data: Path) -> list[list[str]]:
    """Speed, and commands and braces outside of formulas that are left in 1,000 characters."""
    [(_, source)] = members_of(data / "arxiv/hott_book_tex.tar.zst", r"^basics\.tex$")

    def left(text: str) -> float:
        rest = re.sub(r"\$[^$]*\$|\\\[.*?\\\]|\\begin\{([\w*]+)\}.*?\\end\{\1\}", "", text, flags=re.DOTALL)
        return 1000 * len(re.findall(r"\\[a-zA-Z]+|[{}]", rest)) / max(1, len(rest))

    def peer() -> str:
        from pylatexenc.latex2text import LatexNodes2Text

        return str(LatexNodes2Text(math_mode="verbatim").latex_to_text(source.decode()))

    runs: list[tuple[str, Callable[[], str]]] = [
        ("finpile", lambda: _read(_source("latex"), source)),
        ("pylatexenc", peer),
    ]
    return [
        [name, f"{len(source) / 1e6 / seconds:.2f}", f"{left(text):.2f}"]
        for name, work in runs
        for text, seconds in [_timed_or_none(work)]
        if text is not None
    ]


def pdf_rows(data: Path) -> list[list[str]]:
    """Pages in a second, and the words found of those that all readers find together."""
    path = data / "eval_tasks/fiqa_sa/Readme.pdf"
    whole = path.read_bytes()

    def pypdf() -> str:
        import pypdf as library

        return "\n".join(page.extract_text() for page in library.PdfReader(io.BytesIO(whole)).pages)

    def pdfminer() -> str:
        from pdfminer.high_level import extract_text

        return str(extract_text(io.BytesIO(whole)))

    def pdfium() -> str:
        import pypdfium2

        return "\n".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(whole))

    import finpile.sources.formats.pdf.pages as pdf_pages

    def ours() -> str:
        return "\n\n".join(pdf_pages.extract(whole)["pages"])

    runs: list[tuple[str, Callable[[], str]]] = [
        ("finpile, in its process", ours), ("pypdfium2 alone", pdfium), ("pypdf", pypdf), ("pdfminer.six", pdfminer)
    ]  # fmt: skip
    rows = []
    for name, work in runs:
        text, _ = _timed_or_none(work)  # imports
        if text is not None:
            seconds = (
                min(_timed(lambda work=work: "".join(work() for _ in range(20)))[1] for _ in range(_NUM_ROUNDS)) / 20
            )
            words = re.findall(r"[^\W_]+", text)
            rows.append([name, f"{3 / seconds:.0f}", f"{len(words):,}"])
    return rows


def _repeated(work: Callable[[], str]) -> str:
    return "".join(work() for _ in range(_NUM_REPEATED))


def mail_rows(data: Path) -> list[list[str]]:
    """MB/s of the format, and of the parser of the standard library alone, of mails and of ones 30 times as long."""
    short = [one for _, one in members_of(data / "enron/enron1_subset.tar.zst")]
    long = [one + one.partition(b"\n")[2] * 29 for one in short[:500]]
    return [row for mails in (short, long) for row in _mail_rows(mails)]


def _mail_rows(mails: list[bytes]) -> list[list[str]]:
    size = sum(map(len, mails))
    source = _source("mail")

    def parser() -> str:
        return "".join(str(BytesParser(policy=compat32).parsebytes(one).get_payload()) for one in mails)

    def modern() -> str:
        return "".join(str(email.message_from_bytes(one, policy=email.policy.default).get_payload()) for one in mails)

    def fields() -> str:
        return "".join(map(_fields, mails))

    runs: list[tuple[str, Callable[[], str]]] = [
        ("finpile", lambda: "".join(_read(source, one) for one in mails)),
        ("finpile, without the account of a file", lambda: "".join(_message_texts(mails, source))),
        ("email, policy compat32", parser),
        ("email, policy default", modern),
        ("email, policy default: subject, date, sender and decoded text", fields),
    ]
    rows = []
    for name, work in runs:
        seconds = min(_timed(work)[1] for _ in range(_NUM_ROUNDS))
        rows.append(
            [name, f"{size // len(mails):,}", f"{1e6 * seconds / len(mails):.0f}", f"{size / 1e6 / seconds:.1f}"]
        )
    return rows


def _fields(mail: bytes) -> str:
    """What a document has, by the calls that the library's documentation names for it."""
    message = BytesParser(policy=email.policy.default).parsebytes(mail)
    found = [str(message[name]) for name in ("subject", "date", "from")]
    body = message.get_body(("plain", "html"))
    with contextlib.suppress(LookupError, KeyError):  # an unknown charset, a part without text
        found.append(str(body.get_content()) if body is not None else "")
    return "".join(found)


def _message_texts(mails: Iterable[bytes], source: SourceConfig) -> Iterable[str]:
    from finpile.sources.formats.mail import _message
    from finpile.sources.readers.converted import Refused

    for one in mails:
        with contextlib.suppress(Refused):
            yield _message(one, source).text


def _timed_or_none(work: Callable[[], str]) -> tuple[str | None, float]:
    try:
        return _timed(work)
    except ImportError as error:
        say(f"left out: {error}")
        return None, 1.0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    packages = ["finpile", "pypdfium2", "pypdf", "pdfminer.six", "pylatexenc", "markdown-it-py", "warcio"]
    report = Report(arguments.results, "formats", "Archives in their own formats", packages)
    rows = []
    context = multiprocessing.get_context("fork")  # without another start of Python and its imports
    for number, archive in enumerate(ARCHIVES):
        if arguments.only in (None, archive.format):
            say(archive.path)
            with context.Pool(1) as processes:
                rows.append(processes.apply(measure, (number, arguments.data)))
            say("    " + " | ".join(rows[-1][2:]))
    head = [
        "archive",
        "format",
        "documents",
        "bytes in",
        "text out",
        "rows by reason",
        "MB/s",
        "memory, MB",
    ]
    report.add(__doc__.strip().split("\n\n")[2], table([*head, "counted", "records"], rows))
    if arguments.only is None:
        report.add("LaTeX: MB/s, and marks left in 1,000 characters outside of formulas (HoTT book, basics.tex).",
                   table(["library", "MB/s", "marks left"], latex_rows(arguments.data)))  # fmt: skip
        report.add("PDF: pages in a second of CPU time (the best of 5 rounds), and words found (three pages).",
                   table(["library", "pages/s", "words"], pdf_rows(arguments.data)))  # fmt: skip
        report.add(_MAIL, table(["library", "bytes of a mail", "us of a mail", "MB/s"], mail_rows(arguments.data)))
    return 0 if all(row[-1] == "equal" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
