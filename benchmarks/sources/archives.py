"""The archives of the data: the format that reads each, and how another program counts its records."""

from __future__ import annotations

import csv
import gzip
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from finpile.config import CleanConfig


class Archive(NamedTuple):
    """A file of the data, its format, and how another program counts its records."""

    path: str
    format: str
    count: Callable[[Path], int]
    members: tuple[str, ...] = ()
    settings: dict[str, Any] = {}  # noqa: RUF012


def members_of(path: Path, pattern: str = "") -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the files of a .zip, or of a .tar, whatever its compression."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir() and re.search(pattern, info.filename):
                    yield info.filename, archive.read(info)
        return
    command = {".zst": ["zstd", "-dcq"], ".gz": ["gzip", "-dc"]}.get(path.suffix, ["cat"])
    packed = subprocess.run([*command, str(path)], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        for member in files:
            if member.isfile() and re.search(pattern, member.name):
                found = files.extractfile(member)
                yield member.name, found.read() if found else b""


def _is_archive(path: Path) -> bool:
    return ".tar" in path.name or path.suffix == ".zip"


def num_files(pattern: str = "") -> Callable[[Path], int]:
    return lambda path: sum(1 for _ in members_of(path, pattern)) if _is_archive(path) else 1


def num_matches(mark: bytes, pattern: str = "") -> Callable[[Path], int]:
    """Matches in all files; a file without any is a record, too."""

    def count(path: Path) -> int:
        if _is_archive(path):
            return sum(len(re.findall(mark, data)) or 1 for _, data in members_of(path, pattern))
        command = {".gz": ["gzip", "-dc"], ".bz2": ["bzip2", "-dc"]}.get(path.suffix, ["cat"])
        return len(re.findall(mark, subprocess.run([*command, str(path)], check=True, capture_output=True).stdout)) or 1

    return count


def num_rows(delimiter: str = ",") -> Callable[[Path], int]:
    def count(path: Path) -> int:
        if _is_archive(path):
            return sum(rows(data) for _, data in members_of(path))
        return rows(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())

    def rows(data: bytes) -> int:
        csv.field_size_limit(sys.maxsize)
        stream = io.StringIO(data.decode("utf-8"), newline="")
        return sum(1 for row in csv.reader(stream, delimiter=delimiter) if row) - 1

    return count


def num_pages(path: Path) -> int:
    """Responses, conversions and resources of web addresses."""
    from warcio.archiveiterator import ArchiveIterator

    with path.open("rb") as stream:
        found = [(one.rec_type, one.rec_headers.get_header("WARC-Target-URI") or "") for one in ArchiveIterator(stream)]
    kinds = ("response", "conversion", "resource")
    return sum(kind in kinds and (kind != "resource" or url.startswith("http")) for kind, url in found)


def _num_lines_of_zst(path: Path) -> int:
    unpack = ["zstd", "-dcq"]
    packed = [data for _, data in members_of(path)]
    return sum(subprocess.run(unpack, input=one, check=True, capture_output=True).stdout.count(b"\n") for one in packed)


_DATED = {"date_pattern": "%Y-%m-%d"}
_LATIN = ("utf-8", "latin-1")
_HTML: dict[str, Any] = {"clean": CleanConfig(html="always")}
#: The turns of a hearing.
_TURNS = (
    "{{#transcript.sections}}{{#turns}}{{#text_blocks}}{{text}} {{/text_blocks}}\n\n{{/turns}}{{/transcript.sections}}"
)
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
    Archive("fin_news/finer_ord_news_2018/test_input_df.csv.gz", "csv", num_rows()),
    Archive("fin_news/finer_ord_news_2018/val_input_df.csv.gz", "csv", num_rows()),
    Archive("fin_filings/edgar_full_submission_sgml.tar.zst", "edgar", num_matches(rb"<DOCUMENT>\s*<TYPE>")),
    Archive("fin_filings/edgar_10k10q_ixbrl_html.tar.zst", "text", num_files(), (), _HTML),
    Archive("fin_filings/edgar_other_forms_html.tar.zst", "text", num_files(), (), _HTML),
    Archive("fin_filings/edgar_crawler/EXTRACTED_10-K.zip", "json", num_files(), ("*.json",),
            {"fields": {"text": "{{item_1}}{{item_7}}", "timestamp": "filing_date"}}),
    Archive("fin_filings/edgar_crawler/EXTRACTED_8-K.zip", "json", num_files(), ("*.json",),
            {"fields": {"text": "{{item_2.02}}{{item_9.01}}{{item_5}}{{item_7}}", "timestamp": "filing_date"}}),
    Archive("fin_filings/edgar_crawler/RAW_8-K.zip", "text", num_files(), (), {**_HTML, "encoding": _LATIN}),
    Archive("fin_filings/edgar_crawler/FILINGS_METADATA_TEST.csv", "csv", num_rows(), (),
            {"fields": {"text": "Company", "timestamp": "Date"}}),
    Archive("fin_centralbank/fed_speeches_html_sample.tar.zst", "text", num_files(), (), _HTML),
    Archive("fin_centralbank/fomc_minutes_txt.tar.zst", "text", num_files()),
    Archive("fin_centralbank/fomc_pressconf_csv.tar.zst", "csv", num_rows(), (), {"fields": {"text": "sentence"}}),
    Archive("freelaw/cap_fastcase_opinions.tar.zst", "text", num_files(), (), _HTML),
    Archive("freelaw/oyez_oral_arguments_json.tar.zst", "json", num_files(), (), {"fields": {"text": _TURNS}}),
    Archive("freelaw/opinion.txt", "text", num_files()),
    Archive("freelaw/opinion_text.txt", "text", num_files()),
    Archive("dm_mathematics/dm_mathematics_generated.tar.zst", "text", num_files()),
    Archive("blimp/BLiMP.zip", "jsonl", num_matches(rb"\n", r"data/[^._][^/]*\.jsonl$"), ("data/[!._]*.jsonl",),
            {"fields": {"text": "sentence_good"}}),
    Archive("clams/clams_en_de_fr.tar.zst", "text", num_files()),
    *(Archive(f"europarl/{language}-europarl.test.conll02", "text", num_files(), (), {"encoding": _LATIN})
      for language in ("de", "en", "es", "it")),
    *(Archive(f"eval_tasks/finer_ord/{part}_gold_data.csv.gz", "csv", num_rows(), (),
              {"fields": {"text": "gold_token"}})
      for part in ("test", "train", "val")),
    *(Archive(f"eval_tasks/general/{name}.jsonl", "jsonl", num_matches(rb"\n"), (), {"fields": {"text": key}})
      for name, key in (("arc_easy", "query"), ("boolq", "query"), ("copa", "query"), ("lambada_openai", "context"),
                        ("openbook_qa", "query"), ("piqa", "query"), ("pubmed_qa_labeled", "context"))),
    *(Archive(f"eval_tasks/{name}", "text", num_files(), (), {"encoding": _LATIN})
      for name in ("convfinqa/convfinqa_dataset.json", "fiqa_sa/task1_headline_ABSA_test.json",
                   "fiqa_sa/task1_headline_ABSA_train.json", "fiqa_sa/task1_post_ABSA_test.json",
                   "fiqa_sa/task1_post_ABSA_train.json", "fpb/Sentences_50Agree.txt",
                   "fpb_latin1/Sentences_50Agree.txt", "ner_sec/FIN3.txt", "ner_sec/FIN5.txt",
                   "tatqa/tatqa_dataset_dev.json")),
    *(Archive(f"multilingual/{name}", "text", num_files(), (), {"encoding": _LATIN})
      for name in ("abc.zip", "inaugural.zip", "state_union.zip", "udhr2.zip", "webtext.zip", "botchan.txt",
                   "wagahaiwa_nekodearu.txt")),
    *(Archive(f"pile_format/{name}", "text", num_files())
      for name in ("blns.txt", "blns.txt.tar.gz", "blns.txt.zip", "testtarfile.tar")),
    Archive("pile_format/blns.jsonl.zst.tar", "jsonl", _num_lines_of_zst),
    Archive("c4_like/000.json.gz", "jsonl", num_matches(rb"\n")),
    Archive("c4_like/cc_en_head-0174.jsonl.gz", "jsonl", num_matches(rb"\n")),
    Archive("c4_like/dclm_cc/agreement_data.jsonl", "jsonl", num_matches(rb"\n")),
    Archive("wikipedia/bgwiki-latest-pages-articles-shortened.xml.bz2", "wikipedia", num_matches(rb"<page>")),
    Archive("wikipedia/tinywiki-latest-pages-articles.xml", "wikipedia", num_matches(rb"<page>")),
    Archive("wikipedia/wikitext_pages.tar.zst", "text", num_files()),
    Archive("wikipedia/wikitext2/test.txt", "text", num_files()),
    Archive("wikipedia/wikitext2/valid.txt", "text", num_files()),
    Archive("webarchive/dolma/sample-0001.warc.gz", "warc", num_pages),
    Archive("webarchive/example.docs.warc.gz", "warc", num_pages),
    Archive("webarchive/whirlwind/whirlwind.warc.gz", "warc", num_pages),
    Archive("webarchive/whirlwind/whirlwind.warc.wat.gz", "warc", num_pages),
)  # fmt: skip
