"""Markdown as plain text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from tests.support.reading import read_as, read_folder

WRITTEN = """---
title: "Oil"
date: 2022-03-04
tags: a, b
---
<!-- note -->
Heading
=======

A *line*
of **text** with [a link](http://x.com "t") &amp; `code`.\\
Next ![an image](i.png)<br>

1. one
2. two
   - nested

> quoted

| a | b |
|---|---|
| 1 | *2* |

```python
x = 1

y = 2
```

<div>Kept &lt;
text</div>
"""


def read(written: str) -> RawDocument | Removal:
    [item] = read_as("markdown", written, "a.md")
    return item


def test_marks_are_left_out_and_text_is_kept() -> None:
    document = read(WRITTEN)
    assert isinstance(document, RawDocument)
    assert document.text == (
        "Heading\n\nA line of text with a link & code.\nNext an image\n\n1. one\n2. two\n- nested\n\nquoted\n\n"
        "a\tb\n1\t2\n\nx = 1\n\ny = 2\n\nKept <\ntext"
    )
    assert (document.title, document.timestamp) == ("Oil", datetime(2022, 3, 4, tzinfo=UTC))
    assert document.meta == {"date": "2022-03-04", "tags": "a, b"}


@pytest.mark.parametrize(
    ("front", "day"),
    [
        ("date: 2022-03-04\nlastmod: 2023-05-06", (2023, 5, 6)),
        ("date: 2022-03-04\npublishDate: 2022-04-01", (2022, 4, 1)),
        ("last_modified_at: 2023-05-06\ndate: 2022-03-04", (2023, 5, 6)),
        ("date: 2022-03-04\nupdated: 2021-01-01", (2022, 3, 4)),
        ("date: 2022-03-04\npublished: true\nlastmod: 3021-01-01", (2022, 3, 4)),
        ("modified: 2023-05-06", (2023, 5, 6)),
    ],
)
def test_a_text_is_of_its_last_change(front: str, day: tuple[int, int, int]) -> None:
    document = read(f"---\n{front}\n---\nOil")
    assert isinstance(document, RawDocument) and document.timestamp == datetime(*day, tzinfo=UTC)


def test_title_is_the_first_heading() -> None:
    document = read("---\n\ntext\n\n## *One*\n\n# Two\n")
    assert isinstance(document, RawDocument) and (document.title, document.text) == ("One", "text\n\nOne\n\nTwo")


def test_text_between_two_rules_is_text_and_metadata_may_have_lists() -> None:
    document = read("---\nOil rose.\nWhy: demand.\n\n---\nmore")
    assert isinstance(document, RawDocument) and document.text == "Oil rose. Why: demand.\n\nmore"
    document = read("---\n# c\ntags:\n- a\n  b: c\nlist: [\n]\ndate: 2022-03-04\n\n'k': v\n---\nOil")
    assert isinstance(document, RawDocument) and (document.text, document.meta["date"]) == ("Oil", "2022-03-04")
    assert read("---\n" + "-a: b\n" * 300) is not None


def test_scripts_and_styles_are_no_text() -> None:
    document = read("a\n\n<SCRIPT>\nvar x = 1;\n</script>\n<style>p {}</style>\n\nb <i>c</i>")
    assert isinstance(document, RawDocument) and document.text == "a\n\nb c"


def test_deep_nesting_costs_linear_time() -> None:
    for mark in (">", "- ", "[", "*", "<"):
        assert read(mark * 20_000 + "x") is not None


def test_books(real_data: Callable[[str], Path]) -> None:
    """All words of the files, marks aside."""
    archive = real_data("books") / "classic_books_markdown.tar.zst"
    source = SourceConfig(name="N", dataset="D", format="markdown", paths=(archive.name,), members=("*Dickens*.md",))
    unpack = ["tar", "-I", "zstd", "--wildcards", "-xOf", str(archive), "*Dickens*.md"]
    documents, _, _ = read_folder(source, archive.parent)
    whole = subprocess.run(unpack, check=True, capture_output=True).stdout.decode()
    expected = len(re.findall(r"[^\W_]+", whole))
    found = sum(len(re.findall(r"[^\W_]+", document.text)) for document in documents)
    assert documents and abs(found - expected) < expected / 10_000
