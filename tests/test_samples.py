"""The sample corpus matches its description, by independent counts from its files."""

from __future__ import annotations

import email.utils
import hashlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from rapidfuzz.distance import Levenshtein

from finpile.config import load_config
from tests.support.trees import files_below

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "data_samples"
EXPECTED: dict[str, Any] = json.loads((SAMPLES / "expected.json").read_text(encoding="utf-8"))
ROWS = {(row["dataset"], row["source"]): row for row in EXPECTED["sources"]}

#: Any two documents that were not planted as a pair are further apart than this; all pairs planted are closer.
MOST_ALIKE_JACCARD, MOST_ALIKE_EDIT = 0.3, 0.6
NEAR_JACCARD, NEAR_EDIT = 0.85, 0.9
LOOKALIKE_JACCARD = 0.7


@dataclass
class Naive:
    """What the simplest reading of a row finds."""

    documents: list[Document] = field(default_factory=list)
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    spans: Counter[tuple[str, str]] = field(default_factory=Counter)
    markup: list[str] = field(default_factory=list)


@dataclass
class Document:
    raw: str
    text: str
    day: date | None
    second: float
    fate: str = "kept"

    @cached_property
    def words(self) -> list[str]:
        return self.text.lower().split()

    @cached_property
    def numbers(self) -> list[str]:
        return re.findall(r"\d+", self.text)


# --- reading -------------------------------------------------------------------------------------------------------


def inflate(data: bytes, wbits: int = 31) -> tuple[bytes, bytes, bool]:
    """What one gzip member holds, what follows it, and whether it was whole."""
    decoder = zlib.decompressobj(wbits)
    out = decoder.decompress(data)
    return out, decoder.unused_data, decoder.eof


def unzstd(data: bytes) -> tuple[bytes, bool]:
    out, eof = b"", True
    while data:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        out += decoder.decompress(data)
        data, eof = decoder.unused_data, decoder.eof
    return out, eof


def lines_of(path: Path, naive: Naive) -> list[bytes]:
    """Whole lines of a JSONL file, plain or compressed."""
    data, whole = path.read_bytes(), True
    if not data:
        naive.removed["ingest", "empty_file"] += 1
        return []
    try:
        if path.suffix == ".gz":
            data, _, whole = inflate(data)
        elif path.suffix == ".zst":
            data, whole = unzstd(data)
    except zlib.error:
        naive.removed["ingest", "unreadable_file"] += 1
        return []
    *lines, rest = data.split(b"\n")
    assert not (rest and whole), path
    naive.removed["ingest", "truncated_file"] += not whole
    return lines


def jsonl(naive: Naive, pattern: str, text_key: str, day_key: str) -> None:
    for path in files(pattern):
        for line in lines_of(path, naive):
            reason, record = "", {}
            try:
                record = json.loads(line.decode())
                text = record.get(text_key)
                reason = "no_text" if text is None else "wrong_type" if not isinstance(text, str) else ""
                reason = "empty_text" if text == "" else reason
            except UnicodeDecodeError:
                reason = "undecodable"
            except ValueError:
                reason = "broken_json"
            if reason:
                naive.removed["ingest", reason] += 1
            else:
                add(naive, record[text_key], moment_of(record.get(day_key) or record["meta"]["created"], naive))


def parquet(naive: Naive, pattern: str, text_key: str, day_key: str) -> None:
    for path in files(pattern):
        try:
            table = pq.read_table(path)
        except pa.ArrowInvalid:
            naive.removed["ingest", "unreadable_file"] += 1
            continue
        for row in table.to_pylist():
            add(naive, row[text_key], moment_of(row[day_key], naive))


def text_files(naive: Naive, pattern: str) -> None:
    for path in files(pattern):
        data = path.read_bytes()
        if not data:
            naive.removed["ingest", "empty_file"] += 1
            continue
        try:
            digits = re.search(r"\d{8}", path.name)
            assert digits
            add(naive, data.decode(), datetime.strptime(digits[0], "%Y%m%d").replace(tzinfo=UTC))
        except UnicodeDecodeError:
            naive.removed["ingest", "undecodable"] += 1


def tar(naive: Naive, name: str) -> None:
    data, _ = unzstd((SAMPLES / name).read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive.getmembers():
            if found := re.search(r"(\d{4}-\d\d-\d\d)_help\.txt$", member.name):
                stream = archive.extractfile(member)
                assert stream
                add(naive, stream.read().decode(), datetime.fromisoformat(found[1]).replace(tzinfo=UTC))


def sgml(naive: Naive, pattern: str) -> None:
    for path in files(pattern):
        for item in re.findall(r"<REUTERS.*?</REUTERS>", path.read_text("ascii"), re.DOTALL):
            body, day = re.search(r"<BODY>(.*?)</BODY>", item, re.DOTALL), re.search(r"<DATE>(.*?) ", item)
            assert body
            assert day
            add(naive, html.unescape(body[1]), datetime.strptime(day[1], "%d-%b-%Y").replace(tzinfo=UTC))


def edgar(naive: Naive, *patterns: str) -> None:
    for path in (path for pattern in patterns for path in files(pattern)):
        submission = path.read_text(encoding="utf-8")
        accepted = re.search(r"<ACCEPTANCE-DATETIME>(\d{14})", submission)
        filed = re.search(r"(?:FILED AS OF DATE:\s*|<FILING-DATE>)(\d{8})", submission)
        assert filed
        moment = datetime.strptime(filed[1], "%Y%m%d").replace(tzinfo=UTC)
        if accepted:
            opened = f"{filed[1]}060000"  # the morning of the filing date, if it was accepted before
            moments = [datetime.strptime(written, "%Y%m%d%H%M%S") for written in (accepted[1], opened)]
            moment = max(moments).replace(tzinfo=ZoneInfo("America/New_York"))
        for body in re.findall(r"<TEXT>\n(.*?)\n</TEXT>", submission, re.DOTALL):
            if body.startswith("begin 644"):
                naive.removed["ingest", "not_text"] += 1
            else:
                naive.markup.append(body)
                add(naive, without_tags(body), moment.astimezone(UTC))


def warc(naive: Naive, pattern: str) -> None:
    for path in files(pattern):
        data = path.read_bytes()
        while data:
            record, data, whole = inflate(data)
            naive.removed["ingest", "truncated_file"] += not whole
            if whole and b"WARC-Type: response" in record:
                response(naive, record)


def response(naive: Naive, record: bytes) -> None:
    head, http, body = record.split(b"\r\n\r\n", 2)
    if b" 200 OK" not in http:
        naive.removed["ingest", "http_status"] += 1
    elif b"text/html" not in http:
        naive.removed["ingest", "not_text"] += 1
    else:
        page = body.decode()
        naive.markup.append(page)
        stated = re.search(r'article:published_time" content="(\S+?)"', page)
        in_url = re.search(r"/(\d{4})/(\d\d)/(\d\d)/", head.decode())
        day = stated[1] if stated else "-".join(in_url.groups()) + "T00:00:00Z" if in_url else None
        article = re.search(r"<article>(.*?)</article>", page, re.DOTALL)
        add(naive, without_tags(article[1]) if article else "", moment_of(day, naive))


def files(pattern: str) -> list[Path]:
    found = sorted(SAMPLES.glob(pattern))
    assert found, pattern
    return found


def without_tags(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "\n", markup)).strip("\n")


def moment_of(value: Any, naive: Naive) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int):
        return datetime.fromtimestamp(value, UTC)
    try:
        moment = datetime.fromisoformat(value) if value[0].isdigit() else email.utils.parsedate_to_datetime(value)
    except ValueError:
        naive.notes["clean", "unreadable_timestamp"] += 1
        return None
    if moment.year > 2100:
        naive.notes["clean", "implausible_timestamp"] += 1
        return None
    return moment.astimezone(UTC)


def add(naive: Naive, raw: str, moment: datetime | None) -> None:
    text = unicodedata.normalize("NFC", raw.replace("\r\n", "\n"))
    text = "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")
    if not text:
        naive.removed["clean", "empty_text"] += 1
        return
    second = moment.timestamp() if moment else float("inf")
    naive.documents.append(Document(raw, text, moment.date() if moment else None, second))


# --- cleaning and deduplication ------------------------------------------------------------------------------------


def line_fault(line: str) -> str | None:
    if not line.endswith((".", "?", "!", '"')):
        return "c4_no_end_mark"
    if line.endswith("..."):
        return "c4_ellipsis"
    if len(line.split()) < 5:
        return "c4_short_line"
    if "javascript" in line.lower():
        return "c4_javascript"
    return "c4_policy" if re.search("privacy policy|uses cookies", line.lower()) else None


def c4_rules(naive: Naive) -> None:
    documents, naive.documents = naive.documents, []
    for document in documents:
        faults = [line_fault(line) for line in document.text.split("\n")]
        kept = [line for line, fault in zip(document.text.split("\n"), faults, strict=True) if fault is None]
        if "lorem ipsum" in document.text.lower():
            naive.removed["clean", "c4_lorem_ipsum"] += 1
        elif "{" in document.text:
            naive.removed["clean", "c4_curly_bracket"] += 1
        elif len(re.findall(r"[.?!]+", " ".join(kept))) < 3:
            naive.removed["clean", "c4_few_sentences"] += 1
        else:
            naive.spans.update(("clean", fault) for fault in faults if fault)
            document.text = "\n".join(kept)
            naive.documents.append(document)


def jaccard(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> float:
    common = len(a & b)
    return common / (len(a) + len(b) - common)


def shingles(document: Document) -> set[tuple[str, ...]]:
    words = document.words
    return {tuple(words[start : start + 5]) for start in range(len(words) - 4)}


def edit_similarity(a: Document, b: Document) -> float:
    return float(Levenshtein.normalized_similarity(a.words, b.words))


@cache
def naive_rows() -> dict[tuple[str, str], Naive]:
    """The whole corpus, read, cleaned and deduplicated (first source, then earliest date) within each dataset."""
    rows: dict[tuple[str, str], Naive] = {key: Naive() for key in ROWS}
    warc(rows["FinPile", "Web"], "web/*.warc.gz")
    jsonl(rows["FinPile", "News"], "news/*.jsonl*", "body", "published_at")
    sgml(rows["FinPile", "News"], "news/*.sgm")
    edgar(rows["FinPile", "Filings"], "filings/*.txt", "filings/*.nc")
    jsonl(rows["FinPile", "Press"], "press/*.jsonl.gz", "text", "date")
    parquet(rows["FinPile", "Press"], "press/*.parquet", "release", "issued")
    text_files(rows["FinPile", "Bloomberg"], "bloomberg/*.txt")
    jsonl(rows["The Pile", "StackExchange"], "stackexchange/*", "text", "created")
    tar(rows["The Pile", "Ubuntu IRC"], "ubuntu_irc/logs.tar.zst")
    parquet(rows["The Pile", "FreeLaw"], "freelaw/*", "opinion", "decided")
    jsonl(rows["C4", "C4"], "c4/*.json.gz", "text", "timestamp")
    c4_rules(rows["C4", "C4"])
    for dataset in {dataset for dataset, _ in rows}:
        deduplicate([naive for key, naive in rows.items() if key[0] == dataset])
    return rows


def deduplicate(group: list[Naive]) -> None:
    ordered = [(naive, doc) for naive in group for doc in sorted(naive.documents, key=lambda doc: doc.second)]
    seen: set[str] = set()
    kept: list[tuple[Document, set[tuple[str, ...]]]] = []
    for naive, document in ordered:
        mine = shingles(document)
        if document.text in seen:
            document.fate = "exact"
            naive.removed["exact", "exact_duplicate"] += 1
            continue
        seen.add(document.text)
        if any(jaccard(mine, other) > LOOKALIKE_JACCARD and is_near(document, twin) for twin, other in kept):
            document.fate = "near"
            naive.removed["near", "near_duplicate"] += 1
        else:
            kept.append((document, mine))


def is_near(a: Document, b: Document) -> bool:
    return a.numbers == b.numbers and edit_similarity(a, b) > 0.8


def every_document() -> Iterator[tuple[tuple[str, str], Document]]:
    return ((key, document) for key, naive in naive_rows().items() for document in naive.documents)


def nested(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for (stage, reason), count in counts.items():
        if count:
            found[stage][reason] = count
    return dict(found)


# --- the laws ------------------------------------------------------------------------------------------------------


def test_files_match_their_checksums_and_none_is_unlisted() -> None:
    lines = (SAMPLES / "checksums.txt").read_text().splitlines()
    listed = {path: digest for digest, path in (line.split("  ") for line in lines)}
    for path, digest in listed.items():
        assert hashlib.sha256((SAMPLES / path).read_bytes()).hexdigest() == digest, path
    folders = {path.split("/")[0] for path in listed if "/" in path}
    there = {str(path.relative_to(SAMPLES)) for folder in folders for path in (SAMPLES / folder).rglob("*")}
    assert there | {"expected.json"} == set(listed)


def test_generator_writes_the_same_bytes_again(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Pacific/Auckland"}
    script = [sys.executable, str(SAMPLES / "make_samples.py"), "--into", str(tmp_path)]
    subprocess.run(script, check=True, env=environment)
    again = files_below(tmp_path)
    made_with = json.loads(again["expected.json"])["made_with"]
    for path, data in again.items():
        is_plain = path.endswith((".txt", ".nc", ".sgm", ".jsonl")) and path != "checksums.txt"
        if is_plain or made_with == EXPECTED["made_with"]:  # other versions of zlib or zstd may pack otherwise
            assert data == (SAMPLES / path).read_bytes(), path


def test_configuration_names_every_file_and_every_row_in_order() -> None:
    config = load_config(ROOT / "pipelines" / "configs" / "sample.yaml")
    assert list(dict.fromkeys((source.dataset, source.name) for source in config.sources)) == list(ROWS)
    assert config.heldout.after == date(2022, 7, 31)
    named = {path for source in config.sources for pattern in source.paths for path in files(pattern)}
    listed = {SAMPLES / line.split("  ")[1] for line in (SAMPLES / "checksums.txt").read_text().splitlines()}
    assert named | {SAMPLES / "expected.json"} == listed


def test_readme_shows_the_expected_numbers() -> None:
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (SAMPLES / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| dataset")
    ]
    table = {(row[0], row[1]): row[2:] for row in cells if (row[0], row[1]) in ROWS}
    assert list(table) == list(ROWS)
    for key, (read, removed, train, heldout, cut, first, last) in table.items():
        row = ROWS[key]
        names = ("read", "kept_train", "kept_heldout", "cut_documents", "first_day", "last_day")
        assert [read, train, heldout, cut, first, last] == [str(row[name]) for name in names], key
        counts = re.findall(r"(\d+) (\w+)", re.sub(r"\w+: ", "", removed))
        assert Counter({reason: int(count) for count, reason in counts}) == sum(
            (Counter(reasons) for reasons in row["removed"].values()), Counter()
        ), key


@pytest.mark.parametrize("key", ROWS, ids=" ".join)
def test_expected_numbers_agree_with_a_naive_count(key: tuple[str, str]) -> None:
    naive, row = naive_rows()[key], ROWS[key]
    kept = [document.day for document in naive.documents if document.fate == "kept"]
    heldout = [day for day in kept if day and day > date(2022, 7, 31)]
    days = sorted(day for day in kept if day)
    years = Counter(str(day.year) if day else "undated" for day in kept)
    assert row["read"] == len(kept) + naive.removed.total()
    assert row["removed"] == nested(naive.removed)
    assert row["removed_spans"] == nested(naive.spans)
    assert row["notes"] == nested(naive.notes)
    assert (row["kept_train"], row["kept_heldout"]) == (len(kept) - len(heldout), len(heldout))
    assert (row["first_day"], row["last_day"]) == (days[0].isoformat(), days[-1].isoformat())
    assert row["kept_by_year"] == dict(years)


def test_documents_that_repeat_an_earlier_passage_are_counted() -> None:
    """Of each dataset, in the order of its sources, then of time: the first document with a passage keeps it."""
    length = load_config(ROOT / "pipelines/configs/sample.yaml").dedup.substring.min_length  # type: ignore[union-attr]
    seen: defaultdict[str, set[bytes]] = defaultdict(set)
    num_cut: Counter[tuple[str, str]] = Counter()
    for key in ROWS:
        kept = [document for document in naive_rows()[key].documents if document.fate == "kept"]
        for document in sorted(kept, key=lambda document: document.second):
            text = document.text.encode()
            windows = {text[at : at + length] for at in range(len(text) - length + 1)}
            num_cut[key] += not windows.isdisjoint(seen[key[0]])
            seen[key[0]] |= windows
    assert num_cut == {key: row["cut_documents"] for key, row in ROWS.items()}


@pytest.mark.parametrize("key", ROWS, ids=" ".join)
def test_planted_copies_are_there(key: tuple[str, str]) -> None:
    naive, planted = naive_rows()[key], Counter(ROWS[key]["planted"])
    raw = Counter(document.raw for other, document in every_document() if other[0] == key[0])
    exact = [document for document in naive.documents if document.fate == "exact"]
    normalised = [document for document in exact if raw[document.raw] == 1]
    assert planted["exact_duplicate"] + planted["exact_after_normalisation"] == len(exact)
    assert planted["exact_after_normalisation"] == len(normalised)
    assert planted["near_duplicate"] == naive.removed["near", "near_duplicate"]
    elsewhere = {document.text for other, document in every_document() if other[0] != key[0]}
    shared = sum(document.text in elsewhere and document.fate == "kept" for document in naive.documents)
    assert planted["also_in_C4"] + planted["also_in_News"] == shared
    texts = naive.markup or [document.raw for document in naive.documents]
    for name, paragraph in EXPECTED["boilerplate"].items():
        assert planted[name] == sum(html.escape(paragraph) in text or paragraph in text for text in texts)


def test_unplanted_documents_differ_clearly_and_planted_ones_do_not() -> None:
    documents = [(key, document) for key, document in every_document() if document.fate != "exact"]
    sets = [shingles(document) for _, document in documents]
    lookalikes: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    num_near = 0
    for a, b in combinations(range(len(documents)), 2):
        (key, one), (other_key, two) = documents[a], documents[b]
        likeness = jaccard(sets[a], sets[b])
        if likeness > LOOKALIKE_JACCARD and one.numbers != two.numbers:
            lookalikes[key] |= {a, b}
        elif likeness > LOOKALIKE_JACCARD and one.text != two.text:
            assert likeness > NEAR_JACCARD
            assert edit_similarity(one, two) >= NEAR_EDIT
            num_near += 1
        elif one.text != two.text:
            assert likeness < MOST_ALIKE_JACCARD, (key, one.text[:50], other_key, two.text[:50])
            cutoff = Levenshtein.normalized_similarity(one.words, two.words, score_cutoff=MOST_ALIKE_EDIT)
            assert cutoff < MOST_ALIKE_EDIT, (key, one.text[:50], other_key, two.text[:50])
    assert {key: len(members) for key, members in lookalikes.items()} == {
        key: row["planted"]["lookalikes_kept"] for key, row in ROWS.items() if "lookalikes_kept" in row["planted"]
    }
    assert num_near == sum(row["removed"].get("near", {}).get("near_duplicate", 0) for row in ROWS.values())


def test_corpus_is_small_and_can_feed_a_tokenizer() -> None:
    num_bytes = sum(len(document.text.encode()) for _, document in every_document())
    assert 700_000 < num_bytes < 3_000_000
    assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 2_000_000
    assert EXPECTED["totals"]["kept_train"] + EXPECTED["totals"]["kept_heldout"] > 200
