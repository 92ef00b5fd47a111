"""Subtitles: the text of cues."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from tests.support.reading import read_as, read_folder

SRT = """1
00:00:00,100 --> 00:00:04,640
Oil &amp; <i>gas</i>
rose.

2
00:00:04,640 --> 00:00:09,260
rose.

2022
3
00:00:20,000 --> 00:00:21,000 X1:1
{\\an8}In the end
1984

"""
VTT = """WEBVTT - talk

NOTE a comment
of two lines

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.000 align:start
<v Ann>Hello <00:01.500><c>there</c>

00:02.000 --> 00:03.000
Bye.
"""


def read(data: str | bytes) -> list[RawDocument | Removal]:
    return read_as("subtitles", data, "a.srt")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_cues_are_lines_and_pauses_paragraphs(end: str) -> None:
    [document] = read(SRT.replace("\n", end))
    assert isinstance(document, RawDocument)
    assert document.text == "Oil & gas\nrose.\n2022\n\nIn the end\n1984"
    assert document.meta == {"cues": 3}


def test_webvtt_has_no_comments_styles_and_names_of_cues() -> None:
    [document] = read(VTT)
    assert isinstance(document, RawDocument) and document.text == "Hello there\nBye."


@pytest.mark.parametrize(
    ("data", "reason"),
    [("no times", "no_record"), ("1\n00:00:00,100 --> 00:00:04,640\n\n", "empty_text"), (b"\xff", "undecodable")],
)
def test_file_without_text_of_cues_is_a_row(data: str | bytes, reason: str) -> None:
    [row] = read(data)
    assert isinstance(row, Removal) and row.reason == reason


def test_captions_of_a_channel(real_data: Callable[[str], Path]) -> None:
    archive = real_data("youtube_subtitles") / "3b1b_captions_srt.tar.zst"
    source = SourceConfig(name="N", dataset="D", format="subtitles", paths=(archive.name,), members=("*.srt",))
    documents, rows, _ = read_folder(source, archive.parent)
    whole = subprocess.run(["tar", "-I", "zstd", "-xOf", str(archive)], check=True, capture_output=True).stdout
    assert len(documents) + len(rows) == 559
    cues = sum(document.meta["cues"] for document in documents)
    assert cues == sum(b" --> " in line for line in whole.splitlines())
    assert not any(" --> " in document.text for document in documents)
