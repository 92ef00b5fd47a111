"""The normal form of text, and HTML to text."""

from __future__ import annotations

import itertools
import re
import sys
import tarfile
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zstandard import ZstdDecompressor

from finpile.clean.html._tag_kernels import has_preformatted, may_have_facts
from finpile.clean.html.markup import TooComplex, strip_markup
from finpile.clean.html.page import to_text
from finpile.clean.stage import _normal_kernels
from finpile.clean.stage.normalise import MAX_MARKS, _is_mark, _is_special, normal_texts, normalise, normalise_any
from tests.support.real_data import find

TEXT = st.text(alphabet=st.sampled_from("ab \t\n\r\v\f\0\x1b\x7f\u00a0\u2003e\u0301\u00e9\u212b.")) | st.text()


@given(TEXT)
def test_to_normalise_again_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(TEXT)
def test_normal_form_has_its_documented_properties(text: str) -> None:
    found = normalise(text)
    assert unicodedata.is_normalized("NFC", found)
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in found)
    assert "\n\n\n" not in found
    assert not found.startswith("\n")
    assert not any(line.endswith((" ", "\t", "\u00a0")) for line in found.split("\n"))


@given(TEXT)
def test_only_white_space_and_controls_are_removed(text: str) -> None:
    def bare(value: str) -> str:
        kept = "".join(sign for sign in value if ord(sign) > 32 and sign not in "\x7f\u00a0")
        return unicodedata.normalize("NFC", kept)

    assert bare(normalise(text)) == bare(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\r\nb\rc\fd\ve", "a\nb\nc\nd\ne"),
        ("\n\n  def f():\n\t\treturn  1 \t\u00a0\n\n\n\n\n  x\n\n", "  def f():\n\t\treturn  1\n\n  x"),
        ("cafe\u0301 \x00\x1b", "caf\u00e9"),
        ("e\x00\u0301", "\u00e9"),
        (" \t\u00a0\r\n ", ""),
        ("", ""),
    ],
)
def test_examples_of_the_normal_form(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(
    st.lists(
        st.sampled_from(["a", "\u0300", "\u0316", "\u20d0", "\U0001e94a", "\u00e9", "\u65e5", "\U0001f600"]),
        max_size=40,
    )
)
def test_the_longest_run_of_marks_is_that_of_unicodedata(signs: list[str]) -> None:
    text = "".join(signs)
    runs = [
        len(list(run)) for is_mark, run in itertools.groupby(text, lambda s: unicodedata.combining(s) > 0) if is_mark
    ]
    found = _normal_kernels.most_marks_in_a_row(np.frombuffer(text.encode(), np.uint8), _is_mark())
    assert found == max(runs, default=0)


SIGNS = st.text(
    alphabet=st.sampled_from(
        "ab \t\n\n\n\r\v\f\0\x1b\x7f\u00a0\u00c2\u2003\u0301\u1161\uac00\u65e5\U0001f600\U00020000"
    )
)


@settings(max_examples=500)
@given(st.lists(SIGNS | TEXT, max_size=5), st.integers(0, 2))
def test_normal_forms_of_a_batch_are_those_of_each_text(texts: list[str], first: int) -> None:
    found = normal_texts(pa.array(texts, pa.large_string())[first:])
    found.texts.validate(full=True)
    for text, form, is_done in zip(texts[first:], found.texts.to_pylist(), found.is_done, strict=True):
        assert form == (normalise_any(text) if is_done else "")
        assert is_done or not text.isascii()


CHECKED = """
import itertools
import pyarrow as pa
from numba import config
from finpile.clean.stage.normalise import normal_texts, normalise_any
assert config.BOUNDSCHECK == 1
signs = ["a", " ", "\\n", "\\r", "\\x00", "\\u00a0", "\\u2003", "\\U0001f600"]
texts = ["".join(text) for size in range(5) for text in itertools.product(signs, repeat=size)]
found = normal_texts(pa.array(texts, pa.large_string()))
for text, form, is_done in zip(texts, found.texts.to_pylist(), found.is_done, strict=True):
    assert form == (normalise_any(text) if is_done else ""), text
print("within bounds")
"""


def test_normal_forms_of_all_short_texts_are_found_within_bounds(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(CHECKED)


def test_characters_that_nfc_changes_or_joins_with_others_are_special() -> None:
    is_special = _is_special()
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.normalize("NFD", chr(code))
        seconds = (ord(sign) for sign in parts[1:] if ord(sign) < len(is_special))
        assert all(map(is_special.__getitem__, seconds)), hex(code)
    others = [code for code in np.flatnonzero(is_special == 0).tolist() if not 0xD800 <= code < 0xE000]
    assert unicodedata.is_normalized("NFC", "".join(map(chr, others)))
    assert not is_special[:0x300].any()


def test_marks_in_a_row_are_bounded() -> None:
    """NFC sorts them by insertion: a million would take hours."""
    assert normalise("a" + "\u0316\u0300" * (MAX_MARKS // 2)) == "\u00e0" + "\u0316" * 128 + "\u0300" * 127
    with pytest.raises(TooComplex, match="1,000,000 combining marks in a row > 256"):
        normalise("a" + "\u0300\u0316" * 500_000)


PAGE = (
    "<html><head><title>Oil \n rose</title></head><body><nav><a href=/>Home</a></nav><article><h1>Oil</h1>"
    "<p>Oil rose on Monday after the producers met in Vienna to talk about output.</p>"
    "<table><tr><td>Brent</td><td></td><td>12.5</td></tr></table></article></body></html>"
)


def test_main_content_leaves_the_menu_out() -> None:
    page = to_text(PAGE, main_content=False)
    main = to_text(PAGE, main_content=True).text
    assert page.title == "Oil rose"
    assert "Home" in page.text
    assert "Home" not in main
    assert "Oil rose on Monday" in main


def test_rows_of_a_table_are_lines_with_tabs() -> None:
    assert "Brent\t12.5" in to_text(PAGE, main_content=False).text.split("\n")


def test_indentation_in_pre_stays() -> None:
    assert "\t\treturn 1" in to_text("<pre>def f():\n\t\treturn 1</pre>", main_content=False).text


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><tr><td>a<td><td>b</table>", "a\tb"),
        ("<table><tr><td>a<td><td>b</table><PRE>c</pre>", "a\t\t\t\tb\nc"),
        ("<table><tr><td>a<td><td>b</table><!-- <pre", "a\t\t\t\tb"),
        ("<table><tr><td>a<td><td>b</table><!-- <prE", "a\tb"),
    ],
)
def test_empty_cells_stay_in_a_page_with_preformatted_text(page: str, text: str) -> None:
    assert to_text(page, main_content=False).text == text


@given(st.text(alphabet="<pPrReEx:iIXnN ", max_size=40))
def test_searches_without_branches_find_what_a_pattern_finds(page: str) -> None:
    data = np.frombuffer(page.encode(), np.uint8)
    assert has_preformatted(data) == (re.search("<pre|<PRE", page) is not None)
    assert may_have_facts(data) == (re.search("<ix:n", page, re.IGNORECASE) is not None)


@pytest.mark.parametrize(
    "hidden",
    [
        "<div hidden>a</div>",
        "<p style='x;display: NONE'>b</p>",
        '<i style="display:&#110;one">c</i>',
        "<ix:header><ix:hidden>d</ix:hidden></ix:header>",
        "<div style='Display:none'><p>e</div>",
    ],
)
def test_hidden_elements_are_left_out_of_whole_pages(hidden: str) -> None:
    assert to_text(f"{hidden}<p>shown", main_content=False).text == "shown"


def test_a_page_without_main_content_is_taken_whole() -> None:
    assert to_text("<nav>Only a menu</nav>", main_content=True).text.strip() == "Only a menu"


def test_the_hidden_data_of_inline_xbrl_is_not_text() -> None:
    page = "<body><div style='display:none'><ix:header><ix:hidden>us-gaap</ix:hidden></ix:header></div><p>Oil rose.</p>"
    assert to_text(page, main_content=False).text.strip() == "Oil rose."


@given(st.text(alphabet=st.sampled_from("<>/=\"'&;!-divtableprscnx:? \n\0é")) | st.text(), st.booleans())
def test_broken_html_gives_some_text(html: str, main_content: bool) -> None:
    text = to_text(html, main_content=main_content).text
    assert text.encode().decode() == text


@pytest.mark.parametrize(
    "page", ["<div>" * 20_000 + "deep", "<table><tr><td>" * 2_000 + "deep", "<b><p>" * 200 + "deep"]
)
def test_deep_nesting_is_no_harm(page: str) -> None:
    assert to_text(page, main_content=False).text.strip() == "deep"


def members(archive: Path, marks: str) -> dict[str, str]:
    """The files whose names hold one of the marks, by their day."""
    with archive.open("rb") as stream, tarfile.open(fileobj=ZstdDecompressor().stream_reader(stream), mode="r|") as tar:
        return {
            found[0]: tar.extractfile(member).read().decode("utf-8", "replace")  # type: ignore[union-attr]
            for member in tar
            if (found := re.search(marks, member.name)) and member.isfile()
        }


def test_words_of_real_pages_are_found_without_parsing() -> None:
    """The peer is the parser."""
    folder = find("fin_centralbank")
    for day, page in members(folder / "fed_speeches_html_sample.tar.zst", r"2022\d{4}").items():
        parsed = re.findall(r"\w+", to_text(page, main_content=False).text)
        stripped = re.findall(r"\w+", strip_markup(page)[0])
        assert len(set(parsed) - set(stripped)) <= 0.01 * len(set(parsed)), day
        assert abs(len(parsed) - len(stripped)) <= 0.02 * len(parsed), day


def test_real_speeches_as_html_hold_the_words_of_their_text() -> None:
    """An oracle: the same speeches, extracted by other hands."""
    folder = find("fin_centralbank")
    pages = members(folder / "fed_speeches_html_sample.tar.zst", r"2022\d{4}")
    speeches = members(folder / "fed_speeches_txt.tar.zst", r"2022\d{4}")
    assert len(pages.keys() & speeches.keys()) > 3
    for day in sorted(pages.keys() & speeches.keys()):
        words = set(re.findall("[a-z]+", speeches[day].lower()))
        found = set(re.findall("[a-z]+", to_text(pages[day], main_content=False).text.lower()))
        assert len(words & found) >= 0.95 * len(words), day
