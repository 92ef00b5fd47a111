"""Archives in their own formats: documents, bytes, rows and speed of each, and an independent count of its records.

    python -m benchmarks.sources.formats [--data ../shared/data] [--only FORMAT] [--results FOLDER]

A record is a document or a row of the ledger. Counts of the peer are those of another program: names in an archive,
matches of a regular expression, rows of the module `csv`, records of warcio. Times are CPU seconds of reading, packing
included, children's too (a PDF's has the start of its process). `pypdf`, `pdfminer.six` and `pylatexenc` are compared
where they are installed.
"""

from __future__ import annotations

import argparse
import csv
import email
import io
import re
import resource
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from email.parser import BytesParser
from email.policy import compat32
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.common.report import RESULTS, ROOT, Report, say, table
from finpile.config import SourceConfig
from finpile.document import RawDocument
from finpile.format import FORMATS
from finpile.ledger import Removal
from finpile.sources import Account, list_inputs, read_file, read_stream

#: Rows beside a document of the same record.
_NOTE = re.compile(r"(/attachment-\d+|#scanned|#broken)\Z")


class Archive(NamedTuple):
    """A file of the data, its format, and how another program counts its records."""

    path: str
    format: str
    count: Callable[[Path], int]
    members: tuple[str, ...] = ()
    settings: dict[str, Any] = {}  # noqa: RUF012


def members_of(path: Path, pattern: str = "") -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files of a .tar, whatever its compression."""
    command = ["zstd", "-dcq"] if path.suffix == ".zst" else ["gzip", "-dc"]
    packed = subprocess.run([*command, str(path)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            if member.isfile() and re.search(pattern, member.name):
                found = files.extractfile(member)
                yield member.name, found.read() if found else b""


def num_files(pattern: str = "") -> Callable[[Path], int]:
    return lambda path: sum(1 for _ in members_of(path, pattern)) if ".tar" in path.name else 1


def num_matches(mark: bytes, pattern: str = "") -> Callable[[Path], int]:
    """Matches in all files of an archive; a file without any is a record, too."""

    def count(path: Path) -> int:
        if ".tar" in path.name:
            return sum(len(re.findall(mark, data)) or 1 for _, data in members_of(path, pattern))
        command = {".gz": ["gzip", "-dc"], ".bz2": ["bzip2", "-dc"]}.get(path.suffix, ["cat"])
        return len(re.findall(mark, subprocess.run([*command, str(path)], check=True, capture_output=True).stdout))

    return count


def num_rows(delimiter: str = ",") -> Callable[[Path], int]:
    def count(path: Path) -> int:
        with path.open(encoding="utf-8", newline="") as stream:
            return sum(1 for row in csv.reader(stream, delimiter=delimiter) if row) - 1

    return count


def num_pages(path: Path) -> int:
    """Responses, conversions and resources of web addresses."""
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as stream:
        found = [(one.rec_type, one.rec_headers.get_header("WARC-Target-URI") or "") for one in ArchiveIterator(stream)]
    kinds = ("response", "conversion", "resource")
    return sum(kind in kinds and (kind != "resource" or url.startswith("http")) for kind, url in found)


_DATED = {"date_pattern": "%Y-%m-%d"}
ARCHIVES = (
    Archive("eval_tasks/fiqa_sa/Readme.pdf", "pdf", num_files()),
    Archive("enron/enron1_subset.tar.zst", "mail", num_files(), ("*.txt",), _DATED),
    Archive("stackexchange/stackexchange_dumps_xml.tar.zst", "stackexchange",
            num_matches(rb'<row [^>]*PostTypeId="[3-9]|<row [^>]*PostTypeId="1"', "Posts.xml"), ("*Posts.xml",)),
    Archive("ubuntu_irc/ubuntu_irc_raw.tar.zst", "irc", num_files(), ("*.txt",), _DATED),
    Archive("github_code/git_source.tar.zst", "code", num_files()),
    Archive("github_code/thealgorithms_python.tar.zst", "code", num_files()),
    Archive("books/classic_books_markdown.tar.zst", "markdown", num_files(), ("*.md",)),
    Archive("arxiv/hott_book_tex.tar.zst", "latex", num_files(r"\.tex$"), ("*.tex",)),
    Archive("arxiv/stacks_project_tex.tar.zst", "latex", num_files(r"\.tex$"), ("*.tex",)),
    Archive("youtube_subtitles/3b1b_captions_srt.tar.zst", "subtitles", num_files(), ("*.srt",)),
    Archive("europarl/parlamint_tei.tar.zst", "tei", num_files(), ("*.xml",)),
    Archive("pubmed_central/plos_jats_xml.tar.zst", "jats", num_files(), ("*.xml",)),
    Archive("pubmed_central/pmc_nxml_samples.tar.zst", "jats", num_files(), ("*xml",)),
    Archive("uspto/uspto_grant_xml.tar.zst", "uspto", num_matches(rb"<\?xml\s"), ("*.xml",)),
    Archive("hackernews/hacker_news.csv", "csv", num_rows(), (),
            {"fields": {"text": "title", "timestamp": "created_at"}}),
    Archive("eval_tasks/headline/gold-dataset-sinha-khandait.csv", "csv", num_rows("\t"), (),
            {"fields": {"text": "News", "timestamp": "Dates"}}),
    Archive("wikipedia/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2", "wikipedia",
            num_matches(rb"<page>")),
    Archive("fin_news/reuters21578.tar.gz", "sgml", num_matches(rb"<REUTERS ", r"\.sgm$"), ("*.sgm",),
            {"encoding": ("utf-8", "latin-1")}),
    Archive("fin_centralbank/fed_speeches_txt.tar.zst", "text", num_files(), ("*.txt",)),
    Archive("arxiv/arxiv.jsonl", "jsonl", num_matches(rb"\n")),
    Archive("c4_like/cc_en_head-0091.jsonl.gz", "jsonl", num_matches(rb"\n")),
    Archive("c4_like/dclm_cc/majority_data.jsonl", "jsonl", num_matches(rb"\n")),
    Archive("webarchive/example.arc.gz", "warc", num_pages),
    Archive("webarchive/example.warc.gz", "warc", num_pages),
    Archive("webarchive/pywb/iana.warc.gz", "warc", num_pages),
    Archive("webarchive/dolma/sample-0000.warc.gz", "warc", num_pages),
    Archive("webarchive/whirlwind/whirlwind.warc.wet.gz", "warc", num_pages),
)  # fmt: skip


def measure(archive: Archive, data: Path) -> list[str]:
    """A row of the table."""
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
    return [
        archive.path,
        archive.format,
        f"{num_documents:,}",
        f"{num_bytes:,}",
        f"{num_bytes_out:,}",
        ", ".join(f"{count:,} {reason}" for reason, count in reasons.most_common()) or "none",
        f"{num_bytes / 1e6 / max(seconds, 1e-6):.1f}",
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


def _read(format_name: str, data: bytes) -> str:
    source = SourceConfig(name="N", dataset="D", format=format_name, paths=("*",))
    items: Iterable[RawDocument | Removal] = read_stream(FORMATS.get(format_name), io.BytesIO(data), "a", source)
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

    runs: list[tuple[str, Callable[[], str]]] = [("finpile", lambda: _read("latex", source)), ("pylatexenc", peer)]
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

    import finpile.sources.pdf_pages as pdf_pages

    def ours() -> str:
        return "\n\n".join(pdf_pages.extract(whole)["pages"])

    runs: list[tuple[str, Callable[[], str]]] = [
        ("finpile, in its process", ours), ("pypdfium2 alone", pdfium), ("pypdf", pypdf), ("pdfminer.six", pdfminer)
    ]  # fmt: skip
    rows = []
    for name, work in runs:
        _timed_or_none(work)  # imports
        text, seconds = _timed_or_none(work)
        if text is not None:
            words = re.findall(r"[^\W_]+", text)
            rows.append([name, f"{3 / seconds:.0f}", f"{len(words):,}"])
    return rows


def mail_rows(data: Path) -> list[list[str]]:
    """MB/s of the format, and of the parser of the standard library alone."""
    mails = [one for _, one in members_of(data / "enron/enron1_subset.tar.zst")]
    size = sum(map(len, mails)) / 1e6

    def parser() -> str:
        return "".join(str(BytesParser(policy=compat32).parsebytes(one).get_payload()) for one in mails)

    def modern() -> str:
        return "".join(str(email.message_from_bytes(one, policy=email.policy.default).get_payload()) for one in mails)

    runs: list[tuple[str, Callable[[], str]]] = [
        ("finpile", lambda: "".join(_read("mail", one) for one in mails)),
        ("email, policy compat32", parser),
        ("email, policy default", modern),
    ]
    return [[name, f"{size / _timed(work)[1]:.1f}"] for name, work in runs]


def _timed_or_none(work: Callable[[], str]) -> tuple[str | None, float]:
    try:
        return _timed(work)
    except ImportError as error:
        say(f"left out: {error}")
        return None, 1.0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    parser.add_argument("--only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    packages = ["finpile", "pypdfium2", "pypdf", "pdfminer.six", "pylatexenc", "markdown-it-py", "warcio"]
    report = Report(arguments.results, "formats", "Archives in their own formats", packages)
    rows = []
    for archive in ARCHIVES:
        if arguments.only in (None, archive.format):
            say(archive.path)
            rows.append(measure(archive, arguments.data))
    head = ["archive", "format", "documents", "bytes in", "text out", "rows by reason", "MB/s", "counted", "records"]
    report.add(__doc__.strip().split("\n\n")[2], table(head, rows))
    if arguments.only is None:
        report.add("LaTeX: MB/s, and marks left in 1,000 characters outside of formulas (HoTT book, basics.tex).",
                   table(["library", "MB/s", "marks left"], latex_rows(arguments.data)))  # fmt: skip
        report.add("PDF: pages in a second of CPU time, and words found (three pages).",
                   table(["library", "pages/s", "words"], pdf_rows(arguments.data)))  # fmt: skip
        report.add("Mail: MB/s of 5,172 mails.", table(["library", "MB/s"], mail_rows(arguments.data)))
    return 0 if all(row[-1] == "equal" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
