"""Multistream dumps of MediaWiki: ranges of streams give what the whole file gives."""

from __future__ import annotations

import bz2
import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import Account, InputFile, list_inputs, read_file
from finpile.sources.readers.accounting import account_batch, whole_accounts
from finpile.sources.readers.multistream import in_ranges, index_of
from tests.support.reading import split
from tests.support.real_data import find

SOURCE = SourceConfig(name="Wikipedia", dataset="Wikipedia", format="wikipedia", paths=("*multistream.xml.bz2",))
NAME = "x-pages-articles-multistream.xml.bz2"
HEAD = (
    "<mediawiki>\n  <siteinfo>\n    <base>https://x.org/wiki/Main</base>\n    <namespaces>\n"
    '      <namespace key="6" case="first-letter">Datei</namespace>\n    </namespaces>\n  </siteinfo>\n'
)
TAIL = "</mediawiki>\n"


def page(number: int, text: str) -> str:
    return (
        f"  <page>\n    <title>P{number}</title>\n    <ns>0</ns>\n    <id>{number}</id>\n    <revision>\n"
        f"      <id>{number}</id>\n      <timestamp>2022-03-04T05:06:07Z</timestamp>\n"
        f"      <text>{text}</text>\n    </revision>\n  </page>\n"
    )


def made_pages(count: int) -> list[str]:
    """Pages of words, of which every seventh is a redirect, and with a file of the dump's own namespace."""
    choice = random.Random(5)
    words = [f"w{number}" for number in range(3000)]
    pages = []
    for number in range(count):
        text = "#REDIRECT [[P1]]" if number % 7 == 3 else " ".join(choice.choices(words, k=200)) + " [[Datei:a.png|b]]"
        pages.append(page(number, text))
    return pages


def write_dump(
    folder: Path, pages: list[str], pages_of_stream: int = 10, head: str = HEAD, name: str = NAME
) -> list[int]:
    """Writes a dump and its index as WMF does; returns the offsets of its streams, with that of its end tag."""
    data = bz2.compress(head.encode())
    offsets, lines = [], []
    for first in range(0, len(pages), pages_of_stream):
        offsets.append(len(data))
        some = pages[first : first + pages_of_stream]
        lines += [f"{len(data)}:{first + number}:P: {first + number}\n" for number in range(len(some))]
        data += bz2.compress("".join(some).encode())
    offsets.append(len(data))
    (folder / name).write_bytes(data + bz2.compress(TAIL.encode()))
    (folder / index_of(name)).write_bytes(bz2.compress("".join(lines).encode()))  # type: ignore[arg-type]
    return offsets


def read(files: Iterable[InputFile]) -> tuple[list[RawDocument], list[Removal], list[Account]]:
    accounts: list[Account] = []
    items = [item for file in files for item in read_file(file, SOURCE, accounts.append)]
    assert not any(account.balance() for account in accounts)
    return *split(items), accounts


def ranges(folder: Path, range_bytes: int) -> tuple[list[InputFile], list[InputFile]]:
    """The dump as one file, and in ranges."""
    [file] = list_inputs(SOURCE, str(folder))
    return [file], in_ranges(file, SOURCE, range_bytes)


def sums(accounts: list[Account]) -> Counter[str]:
    total: Counter[str] = Counter()
    for account in accounts:
        numbers = {name: value for name, value in asdict(account).items() if isinstance(value, int)}
        total.update(numbers | {f"structure {kind}": size for kind, size in account.structure.items()})
    return total


@pytest.mark.parametrize("range_bytes", [1, 5_000, 12_000])
@pytest.mark.parametrize("pages_of_stream", [1, 10])
def test_ranges_give_the_items_of_the_whole_file_in_order(
    tmp_path: Path, range_bytes: int, pages_of_stream: int
) -> None:
    pages = made_pages(120)
    offsets = write_dump(tmp_path, pages, pages_of_stream)
    whole, parts = ranges(tmp_path, range_bytes)
    assert len(parts) > 2
    assert parts[0].span is not None and parts[0].span[0] == 0
    assert [part.span[0] for part in parts[1:] if part.span] == sorted({p.span[0] for p in parts[1:] if p.span})
    documents, rows, accounts = read(whole)
    assert read(parts)[:2] == (documents, rows)
    assert sums(read(parts)[2]) == sums(accounts)
    assert len(documents) + len(rows) == len(pages)
    assert documents[0].url == "https://x.org/wiki/P0" and documents[-1].url == "https://x.org/wiki/P119"
    assert "Datei" not in "".join(document.text for document in documents)
    if pages_of_stream == 1:  # two blanks precede a page in its stream
        assert [document.locator for document in documents] == [
            f"{NAME}#{offsets[number]}+2" for number in range(120) if number % 7 != 3
        ]


def test_account_of_ranges_has_the_sum_of_each_kind_of_structure() -> None:
    """Kinds of no bytes included, and counts of which one is negative."""
    parts = [
        Account("D", "S", NAME, documents=2, structure={"pages": 5, "white_space": 0}),
        Account("D", "S", NAME, documents=3, structure={"pages": -7, "archive": 1}),
        Account("D", "S", "other", structure={"pages": 0}),
    ]
    tables = list(whole_accounts([pa.Table.from_batches([account_batch(parts)])], {NAME}))
    rows = [{**row, "structure": dict(row["structure"])} for table in tables for row in table.to_pylist()]
    assert [(row["locator"], row["documents"], row["structure"]) for row in rows] == [
        (NAME, 5, {"archive": 1, "pages": -2, "white_space": 0}),
        ("other", 0, {"pages": 0}),
    ]


def test_locators_of_a_dump_in_one_stream_are_offsets(tmp_path: Path) -> None:
    pages = made_pages(3)
    (tmp_path / NAME).write_bytes(bz2.compress((HEAD + "".join(pages) + TAIL).encode()))
    [file] = list_inputs(SOURCE, str(tmp_path))
    assert in_ranges(file, SOURCE, 1) == [file]  # there is no index
    documents, [], _ = read([file])
    assert [document.locator for document in documents] == [
        f"{NAME}#{len((HEAD + ''.join(pages[:number])).encode()) + 2}" for number in range(3)
    ]


def test_real_pages_in_ranges(tmp_path: Path) -> None:
    dumps = sorted(find("wikipedia").glob("enwiki-*.bz2"))
    text = bz2.decompress(dumps[0].read_bytes()).decode()
    pages = re.findall(r"  <page>.*?</page>\n", text, re.DOTALL)
    assert len(pages) == 206
    write_dump(tmp_path, pages, head=text[: text.index("  <page>")])
    whole, parts = ranges(tmp_path, 100_000)
    assert len(parts) > 8
    documents, rows, accounts = read(whole)
    assert len(documents) + len(rows) == 206
    assert read(parts)[:2] == (documents, rows) and sums(read(parts)[2]) == sums(accounts)
    alone = list_inputs(SourceConfig(**{**_fields(SOURCE), "paths": (str(dumps[0]),)}), "/")
    assert [document.text for document in read(alone)[0]] == [document.text for document in documents]


def _fields(source: SourceConfig) -> dict[str, Any]:
    return {"name": source.name, "dataset": source.dataset, "format": source.format}


# --- indexes that cannot be used


def damaged(folder: Path, kind: str) -> None:
    """Spoils the index of a dump."""
    path = folder / str(index_of(NAME))
    text = bz2.decompress(path.read_bytes()).decode()
    lines = text.splitlines(keepends=True)
    data = {
        "cut": path.read_bytes()[:-40],
        "no bzip2": b"600:1:A\n",
        "other lines": bz2.compress(b"<html>not found</html>\n"),
        "other dump": bz2.compress("".join(f"{int(line.split(':')[0]) + 1}:1:A\n" for line in lines).encode()),
        "beyond": bz2.compress((text + f"{10**12}:1:A\n").encode()),
        "descending": bz2.compress("".join(reversed(lines)).encode()),
        "huge numbers": bz2.compress(b"9" * 5000 + b":1:A\n"),
    }[kind]
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("cut", "cut after"),
        ("no bzip2", "is not a .bz2 file"),
        ("other lines", "a line is not `offset:page id:title`"),
        ("other dump", "no stream of the dump begins with a page at its offset"),
        ("beyond", "in a dump of"),
        ("descending", "is behind"),
        ("huge numbers", "a line is not"),
    ],
)
def test_index_that_cannot_be_used_is_a_row_and_the_dump_is_read_whole(tmp_path: Path, kind: str, message: str) -> None:
    write_dump(tmp_path, made_pages(60))
    documents, rows, _ = read(list_inputs(SOURCE, str(tmp_path)))
    damaged(tmp_path, kind)
    [file] = ranges(tmp_path, 2_000)[1]
    assert file.span is None
    found, [*others, row], _ = read([file])
    assert (found, others) == (documents, rows)
    assert (row.reason, row.locator) == ("unusable_index", f"{NAME}#index")
    assert message in row.detail and row.detail.startswith(str(index_of(NAME)))


def test_stream_that_begins_inside_of_a_page_is_no_start_of_a_range(tmp_path: Path) -> None:
    """As in a dump that a parallel compressor cuts anywhere: the index of another dump could name such places."""
    text = HEAD + "".join(made_pages(60)) + TAIL
    third = len(text) // 3
    streams = [bz2.compress(text[start : start + third].encode()) for start in range(0, len(text), third)]
    (tmp_path / NAME).write_bytes(b"".join(streams))
    (tmp_path / str(index_of(NAME))).write_bytes(bz2.compress(f"{len(streams[0])}:1:A\n".encode()))
    [file] = ranges(tmp_path, 1_000)[1]
    documents, [*_, row], _ = read([file])
    assert row.reason == "unusable_index" and len(documents) > 50


def test_index_among_the_inputs_is_structure(tmp_path: Path) -> None:
    write_dump(tmp_path, made_pages(60))
    source = SourceConfig(**{**_fields(SOURCE), "paths": ("*.bz2",)})
    files = list_inputs(source, str(tmp_path))
    accounts: list[Account] = []
    for file in files:
        assert all(
            isinstance(item, RawDocument) or item.reason == "redirect"
            for item in read_file(file, source, accounts.append)
        )
    [index] = [account for account in accounts if account.locator == index_of(NAME)]
    assert index.structure == {"wikipedia_index": index.decompressed_bytes} and index.decompressed_bytes > 500


# --- damaged dumps


@pytest.mark.parametrize("seed", range(12))
def test_damaged_dump_gives_the_same_documents_in_ranges_and_whole(tmp_path: Path, seed: int) -> None:
    offsets = write_dump(tmp_path, made_pages(120), 5)
    choice = random.Random(seed)
    data = bytearray((tmp_path / NAME).read_bytes())
    _, parts = ranges(tmp_path, 5_000)
    starts = {part.span[0] for part in parts if part.span}
    for _ in range(3):  # in a stream that is not the first of a range, whose start is checked
        stream = choice.choice([number for number, offset in enumerate(offsets[:-1]) if offset not in starts])
        data[choice.randrange(offsets[stream] + 20, offsets[stream + 1] - 20)] ^= 1 << choice.randrange(8)
    (tmp_path / NAME).write_bytes(data)
    whole, again = ranges(tmp_path, 5_000)
    assert [part.span for part in again] == [part.span for part in parts]
    documents, rows, accounts = read(whole)
    found, others, parts_accounts = read(again)
    assert found == documents and len(found) + len(others) > 90
    assert len(rows) and len({row.locator for row in others}) == len(others)
    assert {row.reason for row in others} == {row.reason for row in rows}
    assert sums(parts_accounts)["decompressed_bytes"] == sums(accounts)["decompressed_bytes"]


def test_site_of_a_dump_is_known_behind_a_gap(tmp_path: Path) -> None:
    offsets = write_dump(tmp_path, made_pages(30))
    data = bytearray((tmp_path / NAME).read_bytes())
    data[offsets[1] + 60] ^= 255
    (tmp_path / NAME).write_bytes(data)
    documents, rows, _ = read(list_inputs(SOURCE, str(tmp_path)))
    assert any(row.reason == "corrupt_file" for row in rows)
    assert documents[-1].url == "https://x.org/wiki/P29"
