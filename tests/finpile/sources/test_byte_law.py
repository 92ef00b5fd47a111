"""Bytes read = bytes of records + in the ledger + of members + of structure, for whole files and damaged ones."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from finpile.config import SourceConfig, load_config
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.errors import RunError
from finpile.plugins.format import Format
from finpile.sources import Account, list_inputs, read_file, read_stream
from finpile.sources.formats import jsonl
from finpile.sources.readers import reading
from finpile.sources.readers.accounting import Books, Claim, Lost, Record, Structure
from finpile.sources.readers.base import removal
from tests.support.reading import Item, read_folder

Mutations = Any


def source(format_name: str = "jsonl", **keys: Any) -> SourceConfig:
    return SourceConfig(name="News", dataset="FinPile", format=format_name, paths=("*",), **keys)


# --- whole files


def test_every_file_of_the_samples_adds_up_to_its_last_byte(sample_config: Path, mutations: Mutations) -> None:
    config = load_config(sample_config)
    num_plain = 0
    for one in config.sources:
        for format_name in {one.format, "text"}:
            entry = SourceConfig(
                name=one.name, dataset=one.dataset, format=format_name, paths=one.paths, members=one.members,
                fields=one.fields if format_name == one.format else {},
            )  # fmt: skip
            for file in list_inputs(entry, config.root):
                accounts: list[Account] = []
                items = list(read_file(file, entry, accounts.append))
                assert mutations.problems(items, accounts, entry) == [], file.locator
                if Path(file.url).suffix in (".txt", ".jsonl", ".sgm", ".nc"):
                    num_plain += 1
                    assert accounts[-1].decompressed_bytes == Path(file.url).stat().st_size
    assert num_plain > 70


@pytest.mark.slow
@pytest.mark.parametrize("format_name", ["text", "own"])
def test_every_real_file_adds_up_to_its_last_byte(
    real_data: Callable[[str], Path], mutations: Mutations, format_name: str
) -> None:
    wrong, num_files = [], 0
    for path in sorted(path for path in real_data(".").rglob("*") if path.is_file() and path.stat().st_size):
        own = _FORMATS.get(next((suffix for suffix in _FORMATS if suffix in path.name), ""), "text")
        entry = SourceConfig(
            name="News", dataset="FinPile", format="text" if format_name == "text" else own, paths=(str(path),)
        )
        accounts: list[Account] = []
        counts: Counter[str] = Counter()
        for file in list_inputs(entry, "/"):
            for item in read_file(file, entry, accounts.append):
                counts["removals" if isinstance(item, Removal) else "documents"] += 1
                counts["unclaimed_bytes"] += isinstance(item, Removal) and item.reason == "unclaimed_bytes"
        num_files += 1
        wrong += [f"{account.locator}: {account.balance()}" for account in accounts if account.balance()]
        wrong += [f"{path.name}: a reader left bytes out"] * bool(counts["unclaimed_bytes"])
        wrong += [
            f"{path.name}: {name}"
            for name in ("documents", "removals")
            if sum(getattr(account, name) for account in accounts) != counts[name]
        ]
    assert wrong == [] and num_files > 50


#: The content that a name in the folder of real corpora implies.
_FORMATS = {
    "reuters21578": "sgml", "edgar_full_submission": "edgar", ".warc": "warc", ".wet": "warc", ".arc": "warc",
    ".jsonl": "jsonl", ".parquet": "parquet",
}  # fmt: skip


# --- damaged files


@pytest.mark.parametrize("number", range(8))
def test_no_byte_of_a_damaged_file_is_unaccounted_for(number: int, tmp_path: Path, mutations: Mutations) -> None:
    """304 files in all; benchmarks.sources.mutations reads 20,000."""
    for whole in mutations.wholes():
        for repeat in range(2):
            data = mutations.mutate(whole.data, random.Random(f"{number} {repeat} {whole.name}"))
            assert mutations.read_damaged(whole, data, tmp_path).problems == [], whole.name


@pytest.mark.parametrize(("name", "number"), [("jsonl.gz", 531), ("zip", 430)])
def test_damaged_files_that_were_once_not_read_to_their_end(
    name: str, number: int, tmp_path: Path, mutations: Mutations
) -> None:
    """A cut gzip header was searched for and found again, for ever; a folder of a .zip that has content ended it."""
    [whole] = [whole for whole in mutations.wholes() if whole.name == name]
    data = mutations.mutate(whole.data, random.Random(f"1 {name} {number}"))
    assert mutations.read_damaged(whole, data, tmp_path).problems == []


def test_whole_files_of_the_mutations_are_read_without_a_row(tmp_path: Path, mutations: Mutations) -> None:
    """Else the damaged ones would show nothing."""
    numbers = {"edgar, txt": 6, "edgar, nc": 6} | dict.fromkeys(
        ("text", "json", "jats", "tei", "subtitles", "pdf", "eml", "code", "markdown", "latex"), 1
    )
    for whole in mutations.wholes():
        found = mutations.read_damaged(whole, whole.data, tmp_path)
        assert (found.problems, found.reasons) == ([], Counter()), whole.name
        assert found.num_documents == numbers.get(whole.name, 12), whole.name


def test_a_gap_in_compressed_data_is_counted_as_skipped(tmp_path: Path) -> None:
    words = [random.Random(number).randbytes(40).hex().encode() for number in range(3)]
    lines = [b'{"text": "%d %s"}\n' % (number, word) for number, word in enumerate(words)]
    frames = [bytearray(gzip.compress(line, mtime=0)) for line in lines]
    frames[1][12:20] = bytes(8)
    (tmp_path / "a.jsonl.gz").write_bytes(b"".join(frames))
    documents, [row], [account] = read_folder(source(), tmp_path)
    assert [document.text[0] for document in documents] == ["0", "2"]
    assert row.reason == "corrupt_file" and account.balance() == 0
    assert account.record_bytes == len(lines[0]) + len(lines[2])
    assert 0 < account.skipped_bytes <= len(frames[1])


# --- readers that fail


class Faulty:
    """Reads lines; the one that is `bad` makes it raise, here or in its parsing, or is passed over."""

    def __init__(self, fault: str) -> None:
        self._fault = fault

    def read(self, stream: BinaryIO, locator: str, config: SourceConfig) -> Iterator[Claim]:
        start = stream.tell()
        for line in stream:
            end = start + len(line)
            is_bad = line.startswith(b"bad")
            if is_bad and self._fault == "reader":
                raise KeyError("a reader's own error")
            if not is_bad or self._fault != "passed over":
                yield Record(start, end, f"{locator}#{start}", line, lambda line=line: self._parse(line, locator))
            start = end

    def _parse(self, line: bytes, locator: str) -> RawDocument:
        if not line.startswith(b"bad"):
            return RawDocument(locator=locator, text=line.decode())
        if self._fault == "recursion":
            return self._parse(line, locator)
        if self._fault == "meta":
            return RawDocument(locator=locator, text="x", meta={"a": {1, 2}})
        if self._fault == "surrogate":
            return RawDocument(locator=locator, text="x", title="\ud800")
        raise OverflowError("date value out of range")


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        ("parse", "reader_error", "OverflowError: date value out of range"),
        ("recursion", "reader_error", "RecursionError"),
        ("meta", "reader_error", "TypeError: Object of type set"),
        ("surrogate", "reader_error", "UnicodeEncodeError"),
        ("reader", "reader_error", 'KeyError: "a reader\'s own error"'),
        ("passed over", "unclaimed_bytes", "between two records: 4 bytes"),
    ],
)
def test_any_reader_error_on_one_record_is_one_row(fault: str, reason: str, detail: str) -> None:
    data = b"first\nbad\nthird\n"
    accounts: list[Account] = []
    stream: Any = reading.ByteStream(iter([data]), "a")
    items = list(read_stream(Format(name="faulty", read=Faulty(fault).read), stream, "a", source(), accounts.append))
    documents = [item for item in items if isinstance(item, RawDocument)]
    [row] = [item for item in items if isinstance(item, Removal)]
    assert [document.text for document in documents] == ["first\n", "third\n"]
    assert row.reason == reason and row.detail.startswith(detail) and row.locator.startswith("a#6")
    assert row.removed_text == b"bad\n"
    assert accounts[0].balance() == 0 and accounts[0].ledger_bytes == 4


def test_a_lack_of_memory_ends_the_run_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhaust(*arguments: Any) -> Any:
        raise MemoryError

    (tmp_path / "a.jsonl").write_bytes(b'{"text": "x"}\n')
    monkeypatch.setattr("finpile.sources.formats.jsonl.to_document", exhaust)
    with pytest.raises(RunError, match=r"memory ran out while a\.jsonl was read"):
        read_folder(source(), tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "x", "timestamp": %s}' % (b"9" * 400),
        b'{"text": "x", "timestamp": "%s"}' % (b"9" * 400),
        b'{"text": "x", "timestamp": "Fri, 31 Dec 9999 23:59:59 -0100"}',
        b'{"text": "x", "deep": ' + b"[" * 490 + b"]" * 490 + b"}",
        b'{"text": "x", "deep": ' + b'{"a":' * 490 + b"1" + b"}" * 490 + b"}",
    ],
)
def test_no_value_of_one_record_ends_the_build(tmp_path: Path, line: bytes) -> None:
    whole = json.dumps({"text": "whole"}).encode()
    (tmp_path / "a.jsonl").write_bytes(b"\n".join([whole, line, whole]) + b"\n")
    documents, rows, [account] = read_folder(source(), tmp_path)
    assert [document.text for document in documents if document.text != "x"] == ["whole", "whole"]
    assert len(documents) + len(rows) == 3 and account.balance() == 0
    for row in rows:
        assert row.removed_text == line + b"\n" and row.detail


@pytest.mark.parametrize(("depth", "is_read"), [(99, True), (100, False)])
def test_how_deep_a_record_may_be_nested_does_not_depend_on_who_reads_it(depth: int, is_read: bool) -> None:
    """The object itself is one level."""
    line = b'{"text": "x", "deep": ' + b"[" * depth + b"]" * depth + b"}\n"

    def read_at(level: int) -> list[Item]:
        if level:
            return read_at(level - 1)
        stream: Any = reading.ByteStream(iter([line]), "a")
        return list(read_stream(jsonl.FORMAT, stream, "a", source()))

    for level in (0, 200):
        [item] = read_at(level)
        assert isinstance(item, RawDocument) == is_read
        assert is_read or (isinstance(item, Removal) and item.detail == "nested more than 100 deep")


# --- the books


def test_a_claim_of_bytes_that_are_claimed_already_is_refused() -> None:
    books = Books("FinPile", "News", "a")
    books.take(10, "white_space")
    assert books.gap(12, 20) == 2 and books.gap(10, 10) == 0 and books.gap(4, 4) == 0
    with pytest.raises(ValueError, match="bytes 9 to 12 are claimed twice, up to 10"):
        books.gap(9, 12)


def test_structure_of_no_known_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="'noise' is not a kind of structure; known: white_space"):
        Books("FinPile", "News", "a").take(1, "noise")


def test_claims_of_all_kinds_add_up() -> None:
    config = source()
    row = removal(config, "a#4", "broken_json", "", b"bad\n")

    def claims(*arguments: Any) -> Iterator[Claim]:
        yield Record(0, 4, "a#0", b"one\n", lambda: RawDocument(locator="a#0", text="one"))
        yield Lost(4, 8, row)
        yield Structure(8, 9, "white_space")

    accounts: list[Account] = []
    stream: Any = reading.ByteStream(iter([b"one\nbad\n\n"]), "a")
    found = list(read_stream(Format(name="claims", read=claims), stream, "a", config, accounts.append))
    assert found[1] == row
    [account] = accounts
    assert (account.record_bytes, account.ledger_bytes, account.structure) == (4, 4, {"white_space": 1})
    assert (account.documents, account.removals, account.removed_bytes, account.balance()) == (1, 1, 4, 0)
