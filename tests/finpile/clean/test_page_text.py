"""The text of a page read in one pass is that of the parser's tree, for any markup that the pass does not refuse."""

from __future__ import annotations

import random
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zstandard import ZstdDecompressor

from finpile.clean import html
from finpile.clean import page_text as page_text_module
from finpile.clean._tag_kernels import has_preformatted, may_have_facts
from finpile.clean.html import to_text
from finpile.clean.page_text import PageText, page_text
from finpile.clean.page_words import _KINDS

NAMES = sorted({name for names in _KINDS.values() for name in names.split()} | {"x-y", "span", "ix:header", "label"})
COMMON = [
    "div", "p", "table", "tr", "td", "th", "tbody", "font", "b", "i", "a", "ul", "ol", "li", "br", "h1", "h5", "pre",
    "hr", "span", "center",
]  # fmt: skip
ATTRIBUTES = [
    "", "", "", ' style="display:none"', " style='Display: None;x'", ' style="a&quot;b;display:none"', " hidden",
    ' style="display:&#110;one"', " size=2", ' size="2"', ' alt="a  &lt;b &copy"', " alt=x hidden=1", "/", ' a=">"',
    " A=1 a=2",
]  # fmt: skip
TEXTS = [
    "x", "y ", " ", "\n", " z\n", "\r\n", "\t", "\f", "é", "•", "<", "< ", "</", "<!-- c -->", "<?pi?>", "<!x>", "</ >",
    "</>", "<!doctype html>", "<![CDATA[x]]>", "&amp;", "&nbsp;", "&#160;", "&#32;", "&lt;b", "&", "&x;", "a&b",
    "&#x41;", "&#65 ", "&#150;", "&NewLine;", "&#9;", "&#10;", "&nGt;", "&notit;", "&not", "&#0;", "&#x1F600;",
]  # fmt: skip
STARTS = [
    "", "", "<html><head><title>T &amp; u</title></head>\n<body>", "<!DOCTYPE html>",
    "<head><script>x<y</script><meta>",
    '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">', "<TYPE>8-K\n<TEXT>\n<html><body>\n",
]  # fmt: skip
ENDS = ["", "", "</body>", "</body> </html>\n", "</body><!-- x -->", "</html>x", "<td", '<a href="', "&am", "<!--"]


def tags(names: list[str]) -> st.SearchStrategy[str]:
    start = st.tuples(st.sampled_from(names), st.sampled_from(ATTRIBUTES)).map(lambda pair: f"<{pair[0]}{pair[1]}>")
    return start | st.sampled_from(names).map(lambda name: f"</{name}>")


def pages(names: list[str]) -> st.SearchStrategy[str]:
    content = st.lists(tags(names) | st.sampled_from(TEXTS), max_size=30).map("".join)
    return st.tuples(st.sampled_from(STARTS), content, st.sampled_from(ENDS)).map("".join)


PAGES = st.one_of(
    pages(COMMON),
    pages(NAMES),
    pages(["table", "tr", "td", "th", "tbody", "thead", "colgroup", "col", "p", "b"]),
    pages(["ul", "ol", "li", "p", "dl", "dd", "dt", "pre", "div"]),
    pages(["p", "font", "b", "i", "a", "div", "tt"]),
)
FILING = """<DOCUMENT>
<TYPE>8-K
<TEXT>
<HTML><HEAD><TITLE>Form 8-K &#150; Oil</TITLE></HEAD>
<BODY bgcolor="#FFFFFF">
<!-- PAGEBREAK -->
<DIV style="font-family: &quot;Times&quot;"><P align="center"><FONT size="5"><B>UNITED STATES<BR>SECURITIES</B></FONT>
<P>AT&T &amp; Co.&nbsp;rose<font size=2> by 5&#37;<P>on <i>Mon</i>day.
<TABLE width="100%"><TR valign=top><TD nowrap>Item 1.01</TD><TD>&nbsp;</TD>
<TD><P>Entry</P></TD></TR><TR><TD></TD><TD colspan=2><DIV>x</DIV> y</TABLE>
<UL><LI>one<LI>two <OL><LI>a</LI></OL></UL><HR size=1><IMG src="a.jpg" alt="Signature &amp; seal">
<ix:header style="display:none"><ix:hidden>0001</ix:hidden></ix:header>
<span style="display: none">hidden</span><pre>
  a   b
</pre><H3>SIGNATURES</H3></DIV></BODY></HTML>
</TEXT>
</DOCUMENT>
"""


@pytest.fixture(scope="module", autouse=True)
def in_use() -> Iterator[None]:
    """`to_text` reads pages in one pass, as in a process that has loaded the kernels."""
    page_text_module.compile_kernels()
    yield
    page_text_module._IN_USE[0] = False


def reference(page: str) -> PageText:
    return html._parsed(page, main_content=False, search=False)


def assert_equal_if_read(page: str) -> bool:
    found = page_text(page)
    if found is None:
        return False
    expected = reference(page)
    assert found.text == expected.text
    assert (found.title or "").split() == (expected.title or "").split()
    return True


@settings(max_examples=1500)
@given(PAGES)
def test_text_is_that_of_the_tree(page: str) -> None:
    assert_equal_if_read(page)


@settings(max_examples=300)
@given(st.randoms(use_true_random=False), st.integers(0, 12))
def test_text_of_a_damaged_filing_is_that_of_the_tree(random_: random.Random, num_changes: int) -> None:
    parts = re.findall(r"<[^>]*>|[^<]+", FILING)
    for _ in range(num_changes):
        at, other = random_.randrange(len(parts)), random_.randrange(len(parts))
        action = random_.randrange(3)
        if action == 0:
            del parts[at]
        elif action == 1:
            parts.insert(at, parts[other])
        else:
            parts[at], parts[other] = parts[other], parts[at]
    assert_equal_if_read("".join(parts))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (FILING, None),
        ("", ""),
        ("<p>a<p>b<br>c", "a\n\nb\nc"),
        ("<p><font size=2>a</p><p>b<i>c</font>d</i>e", "a\n\nbcde"),
        ("<p><font><font><font><font>a<p>b</font></font>c", None),
        ("<table><td>a<td>b<tr><td>c<table><tr><th>d</table>e</table>f", "a\t\tb\nc\nd\ne\nf"),
        ("<table><colgroup><col><col><thead><tr><td>a<tbody><td>b</table>", "a\nb"),
        ("<p>a<table><tr><td>b</table>c", "a\nb\nc"),
        ("<!DOCTYPE html><p>a<table><tr><td>b</table>c", "a\n\nb\nc"),
        ("<ul><li>a<li>b<ol><li>c<li>d</ol></ul><li>e", None),
        ("<dl><dt>a<dd>b<dd>c</dl>", "a\nb\nc"),
        ("<h1>a<h2>b</h3>c", "a\n\nb\n\nc"),
        ("<div hidden>a</div><p style='x;display: NONE'>b</p><i hidden>c</i><p>d", "d"),
        ("a<script>b</script><style>c</style><input value=d><label>e</label>f", "af"),
        ("<pre>\n a\r\n  b\n</pre>c", " a\n  b\nc"),
        ("<pre>\n\n a</pre>", None),
        ("a&amp;b &lt; &eacute;&#233;&#150;&#x1F600; AT&T &nosuch;", "a&b < éé\u2013\U0001f600 AT&T &nosuch;"),
        ("<body>a</body></html> <!-- b --> c", "a c"),
        ("<img alt='a &amp; b'>c", "a & bc"),
        ("<div>a</p>b</div>", None),
        ("<form>a</form>b", "a\nb"),
    ],
)
def test_markup_of_filings_is_read_in_one_pass(page: str, text: str | None) -> None:
    assert assert_equal_if_read(page)
    if text is not None:
        assert reference(page).text == text


@pytest.mark.parametrize(
    "page",
    [
        "<b><p>a</b>b",  # the adoption agency moves nodes
        "<table>a<tr><td>b</table>",  # foster parenting
        "<table><tr><p>a</table>",
        "<select><option>a</select>",
        "<svg><text>a</svg>",
        "<noscript>a</noscript>",
        "a&copy b",
        "a\0b",
        "\ufeffa",
        "<div style='display:n&#111;ne'>a</div>",
        "<p hidden style='a' style='display:none'>a",
        "<div>" * 5000 + "a",
        "<ul>" * 100 + "a",
        "<table>" + "<tr></tr>" * 5000 + "</table>",
        "<i>" + "".join(f"<b a={number}>" for number in range(2000)) + "a",
        '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 3.2//EN"><p>a<table><tr><td>b</table>',
    ],
)
def test_other_markup_is_left_to_the_parser(page: str) -> None:
    assert page_text(page) is None
    assert to_text(page, main_content=False).text == reference(page).text


def test_text_that_outgrows_its_room_is_left_to_the_parser() -> None:
    """Each line is indented by the depth of its list, which is many times the page's own bytes."""
    page = "<ul>" * 60 + "<br>x" * 2000
    assert page_text(page) is None
    assert page_text("<ul>" * 60 + "<br>x" * 20) is not None


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


PROGRAM = """
from hypothesis import given, settings
from test_page_text import PAGES, assert_equal_if_read

settings.register_profile("bounds", max_examples=600, database=None, deadline=None)
settings.load_profile("bounds")


@given(PAGES)
def check(page):
    assert_equal_if_read(page)


check()
for page in ("<ul>" * 64 + "<br>x" * 2000, "<b><i>" * 700 + "x" * 5000, "<div>" * 4096, "<p>" + "<br>" * 9999 + "x"):
    assert_equal_if_read(page)
print("within bounds")
"""


def test_kernels_stay_within_bounds(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(PROGRAM, Path(__file__).parent)


def filings(folder: Path) -> Iterator[str]:
    """Real documents up to 1 MB."""
    with zipfile.ZipFile(folder / "edgar_crawler" / "RAW_8-K.zip") as archive:
        for member in archive.infolist()[::2]:
            if member.file_size < 1_000_000:
                yield archive.read(member).decode("utf-8", "replace")
    for name in ("edgar_other_forms_html.tar.zst", "edgar_10k10q_ixbrl_html.tar.zst"):
        with (
            (folder / name).open("rb") as packed,
            ZstdDecompressor().stream_reader(packed) as data,
            tarfile.open(fileobj=data, mode="r|") as archive,
        ):
            for entry in archive:
                file = archive.extractfile(entry) if entry.isfile() and entry.size < 1_000_000 else None
                if file is not None:
                    yield file.read().decode("utf-8", "replace")


def test_real_filings_have_the_text_of_the_tree_and_most_are_read_in_one_pass(
    real_data: Callable[[str], Path],
) -> None:
    pages = [page for page in filings(real_data("fin_filings")) if "<html" in page.lower()]
    num_read = sum(assert_equal_if_read(page) for page in pages)
    assert num_read >= 0.9 * len(pages)
