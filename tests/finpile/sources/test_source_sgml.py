"""Reuters-21578 stories."""

from __future__ import annotations

import gzip
import re
import tarfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import RawDocument
from tests.support.reading import Items, read_folder, read_input, split
from tests.support.real_data import DATA, find

REUTERS = "fin_news/reuters21578.tar.gz"

SOURCE = SourceConfig(name="News", dataset="FinPile", format="sgml", paths=("*",), members=("*.sgm",))


def story(newid: int, body: str, date: str = "26-FEB-1987 15:01:01.79", text: str | None = None) -> str:
    text = text or f"<TITLE>OIL &lt;OIL.N></TITLE>\n<DATELINE>  LONDON, Feb 26 - </DATELINE><BODY>{body}</BODY>"
    return (
        f'<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5{newid}" NEWID="{newid}">\n'
        f"<DATE>{date}</DATE>\n<TOPICS><D>crude</D><D>fuel</D></TOPICS>\n<PLACES></PLACES>\n"
        f"<UNKNOWN>&#5;&#5;F Y</UNKNOWN>\n<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


def read(*stories: str | bytes) -> Items:
    data = b"<!DOCTYPE lewis>\n" + b"".join(part if isinstance(part, bytes) else part.encode() for part in stories)
    return split(read_input(SOURCE, data, "a.sgm"))


def read_root(folder: Path, config: SourceConfig) -> Items:
    return read_folder(config, folder)[:2]


def test_a_story_is_a_document() -> None:
    [document], [] = read(story(7, "S&amp;P &lt;SPX> fell\n\tby &#36;1. Reuter\n&#3;"))
    assert document == RawDocument(
        locator="a.sgm#17",
        text="S&P <SPX> fell\n\tby $1. Reuter\n",
        timestamp=datetime(1987, 2, 26, 15, 1, 1, tzinfo=UTC),
        timestamp_origin="header",
        title="OIL <OIL.N>",
        meta={
            "newid": "7",
            "oldid": "57",
            "lewissplit": "TRAIN",
            "cgisplit": "TRAINING-SET",
            "topics_assigned": "YES",
            "topics": ["crude", "fuel"],
            "dateline": "LONDON, Feb 26 -",
        },
    )


def test_entities_are_undone_once_and_only_those_of_the_dtd() -> None:
    [document], [] = read(story(1, "&amp;lt; &copy; &#65; AT&T &#55296; &#9999999;"))
    assert document.text == "&lt; &copy; A AT&T &#55296; &#9999999;"


def test_entries_that_never_close_are_read_in_linear_time() -> None:
    [document], [] = read(story(1, "x").replace("<D>fuel</D>", "<D>" * 100_000))
    assert document.meta["topics"] == ["crude"]


@pytest.mark.parametrize(
    ("date", "moment"),
    [
        (" 2-MAR-1987 16:51:43.42", datetime(1987, 3, 2, 16, 51, 43, tzinfo=UTC)),
        ("3-MAR-1987  09:15:05.40", datetime(1987, 3, 3, 9, 15, 5, tzinfo=UTC)),
        ("31-MAR-1987 605:12:19.12", datetime(1987, 3, 31, tzinfo=UTC)),
        ("1-APR-1987 25:00:00.00", datetime(1987, 4, 1, tzinfo=UTC)),
        ("5-OCT-1987 10:00:00.00 T1:xx", datetime(1987, 10, 5, 10, tzinfo=UTC)),
    ],
)
def test_dates_are_found_between_junk(date: str, moment: datetime) -> None:
    [document], [] = read(story(1, "x", date))
    assert document.timestamp == moment and "unreadable_timestamp" not in document.meta


@pytest.mark.parametrize("date", ["30-FEB-1987 10:00:00.00", "26-FOO-1987", "soon"])
def test_a_date_that_is_none_is_handed_on(date: str) -> None:
    [document], [] = read(story(1, "x", date))
    assert (document.timestamp, document.timestamp_origin) == (None, "none")
    assert document.meta["unreadable_timestamp"] == date


@pytest.mark.parametrize("text", ["<BODY> \n&#3;</BODY>", "<TITLE>BRIEF</TITLE>", "unformatted"])
def test_a_story_without_body_is_a_row_with_all_of_it(text: str) -> None:
    empty = story(1, "", text=text).rstrip()
    [other], [row] = read(empty, story(2, "x"))
    assert other.locator == f"a.sgm#{17 + len(empty)}"
    assert (row.locator, row.reason) == ("a.sgm#17", "empty_text")
    assert row.removed_text == empty.encode()


def test_one_byte_that_is_no_utf8_makes_the_file_latin_1() -> None:
    body = story(1, "caf@", text="<BODY>caf@</BODY>").encode().replace(b"@", b"\xe9")
    [document], [] = read(body)
    assert document.text == "café"


def test_a_file_that_ends_inside_a_story_gives_the_whole_ones_and_a_row() -> None:
    half = story(2, "y")[:150]
    [document], [row] = read(story(1, "x"), half)
    assert document.locator == "a.sgm#17"
    where = f"a.sgm#{17 + len(story(1, 'x'))}"
    assert (row.locator, row.reason, row.removed_text) == (where, "truncated_file", half.encode())


def test_a_cut_compressed_file_gives_the_whole_stories_and_one_row(tmp_path: Path) -> None:
    bodies = [f"body {i} " * 40 + str(i * 7919) for i in range(2000)]
    data = gzip.compress("".join(story(i, body) for i, body in enumerate(bodies)).encode(), mtime=0)
    (tmp_path / "a.sgm.gz").write_bytes(data[: len(data) // 2])
    documents, [row] = read_root(tmp_path, SOURCE)
    assert [document.text for document in documents] == bodies[: len(documents)] and len(documents) > 500
    assert (row.locator, row.reason) == ("a.sgm.gz", "truncated_file")
    assert row.removed_text.lstrip().startswith(b"<REUTERS") and b"</REUTERS>" not in row.removed_text


def test_a_file_of_another_kind_is_a_row() -> None:
    documents, [row] = read("no stories")
    assert documents == [] and row.reason == "no_record"


# --- damage


def damaged(*changes: tuple[str, str]) -> tuple[bytes, list[str]]:
    """A file of five stories, its third changed, and the bodies of all."""
    bodies = [f"body {number}" for number in range(5)]
    stories = [story(number, body) for number, body in enumerate(bodies)]
    for before, after in changes:
        assert before in stories[2]
        stories[2] = stories[2].replace(before, after)
    return "".join(stories).encode(), bodies


@pytest.mark.parametrize("end", ["</REUTERZ>", "/REUTERS>", "", "</REUTERS"])
def test_a_story_with_a_damaged_end_is_read_up_to_the_next(end: str) -> None:
    """Its body is whole, and the next story is not swallowed."""
    data, bodies = damaged(("</REUTERS>", end))
    documents, [row] = read(data)
    assert [document.text for document in documents] == bodies
    assert row.reason == "unreadable_record" and row.locator == f"{documents[2].locator}/end"


@pytest.mark.parametrize(
    "changes",
    [
        (("</REUTERS>", ""), ("</BODY>", "</BODZ>")),
        (("</REUTERS>", ""), ("<BODY>", "<BOD>")),
        (("<REUTERS ", "<REUTERX "),),
        (("<REUTERS ", "REUTERS "),),
    ],
)
def test_a_story_without_clear_bounds_is_a_row_with_its_bytes(
    changes: tuple[tuple[str, str], ...],
) -> None:
    data, bodies = damaged(*changes)
    documents, [row] = read(data)
    assert [document.text for document in documents] == [*bodies[:2], *bodies[3:]]
    assert row.reason == "unreadable_record"
    assert b"body 2" in row.removed_text and row.removed_text in data


def test_two_stories_that_damage_has_joined_are_not_read_as_one() -> None:
    """The end tag of the third and the start tag of the fourth are damaged: which body is whose is a guess."""
    stories = [story(number, f"body {number}") for number in range(5)]
    stories[2] = stories[2].replace("</REUTERS>", "")
    stories[3] = stories[3].replace("<REUTERS ", "<REUTER ")
    documents, [row] = read("".join(stories))
    assert [document.text for document in documents] == ["body 0", "body 1", "body 4"]
    assert b"body 2" in row.removed_text and b"body 3" in row.removed_text


def test_repeated_newids_are_different_documents() -> None:
    documents, [] = read(story(7, "one"), story(7, "two"), story(7, "three"))
    assert [document.text for document in documents] == ["one", "two", "three"]
    assert len({document.locator for document in documents}) == 3
    assert [document.meta["newid"] for document in documents] == ["7", "7", "7"]


def test_a_locator_leads_to_the_story() -> None:
    data = b"<!DOCTYPE lewis>\n" + (story(1, "x") + story(2, "y")).encode()
    for document in read(story(1, "x"), story(2, "y"))[0]:
        offset = int(document.locator.rpartition("#")[2])
        assert data[offset:].startswith(b'<REUTERS TOPICS="YES"')
        assert document.text.encode() in data[offset : data.index(b"</REUTERS>", offset)]


def test_a_story_above_the_limit_is_a_row_with_its_beginning_and_the_next_is_read(tmp_path: Path) -> None:
    data = story(1, "x" * 300_000) + story(2, "y")
    (tmp_path / "a.sgm").write_text(data)
    config = replace(SOURCE, limits=LimitsConfig(record="200 KiB"))
    [document], [row] = read_root(tmp_path, config)
    assert document.text == "y" and row.reason == "too_large"
    assert str(len(story(1, "x" * 300_000)) - 1) in row.detail
    assert data.encode().startswith(row.removed_text) and 10_000 < len(row.removed_text) <= 1 << 16


@pytest.fixture(scope="module")
def reuters() -> Items:
    config = SourceConfig(name="News", dataset="FinPile", format="sgml", paths=(REUTERS,), members=("*.sgm",))
    find(REUTERS)
    return read_root(DATA, config)


def test_the_whole_collection_has_its_published_counts(reuters: Items) -> None:
    documents, rows = reuters
    assert len(documents) + len(rows) == 21_578  # README.txt of the collection
    assert len(documents) == 19_043
    assert {row.reason for row in rows} == {"empty_text"}
    moments = [document.timestamp for document in documents if document.timestamp is not None]
    assert len(moments) == len(documents)
    assert min(moments).date().isoformat() == "1987-02-26" and max(moments).date().isoformat() == "1987-10-20"


def test_bodies_are_those_of_the_files(reuters: Items) -> None:
    bodies: list[bytes] = []
    with tarfile.open(DATA / REUTERS) as archive:
        for member in archive:
            if member.name.endswith(".sgm"):
                content = archive.extractfile(member)
                assert content is not None
                bodies += re.findall(rb"<BODY>(.*?)</BODY>", content.read(), re.DOTALL)
    assert [letters(document.text) for document in reuters[0]] == [letters(body.decode("latin-1")) for body in bodies]


def letters(text: str) -> str:
    """What entities, control characters and encodings cannot change."""
    return re.sub(r"&(?:lt|gt|amp|#\d+);|[^A-Za-z]", "", text)


def test_duplicate_bodies_are_counted_by_their_words(reuters: Items) -> None:
    texts = [document.text for document in reuters[0]]
    assert len(texts) - len(set(texts)) == 262
    assert len(texts) - len({" ".join(text.split()) for text in texts}) == 281
