"""The cost of a page: the counts bound the parser's real tree, and a page above the bounds is scanned instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resiliparse.parse.html import HTMLTree, traverse_dom

from finpile.clean.html import _tag_kernels, markup
from finpile.clean.html.markup import TooComplex, measure, strip_markup
from finpile.clean.html.page import to_text

NAMES = sorted(
    {name for names in markup._NAMES.values() for name in names.split()} | {"div", "span", "x-y", "pre", "g"}
)
PIECES = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["<{}>", "<{}/>", "<{} id=%d>", "</{}>", "</{}>"])).map(
        lambda piece: piece[1].format(piece[0])
    ),
    st.sampled_from(["x", " ", "<", "<!--", "-->", "<![CDATA[", "]]>", '<p a="', "&amp;"]),
)


def tree_of(page: str) -> tuple[int, int]:
    """Depth and number of nodes of the parser's own tree."""
    depths: list[int] = []
    traverse_dom(HTMLTree.parse(page).document, lambda context: depths.append(context.depth))
    return max(depths), len(depths)


@settings(max_examples=400)
@given(st.lists(PIECES, min_size=1, max_size=7))
def test_counts_bound_the_depth_and_the_nodes_of_the_parsed_tree(pieces: list[str]) -> None:
    """The peer is the parser: a table brings three elements that are not counted, each paragraph one."""
    page = "".join("".join(pieces).replace("%d", str(number)) for number in range(50))
    counts = measure(page)
    if counts.num_unclear:
        return
    depth, num_nodes = tree_of(page)
    assert depth <= 4 * counts.max_depth + 10
    assert num_nodes <= 3 * (counts.num_nodes + counts.num_tags) + 10


@pytest.mark.parametrize(
    ("page", "depth"),
    [
        ("<div>" * 9 + "</div>" * 9, 9),
        ("<p>" * 50, 0),
        ("<ul>" + "<li>x" * 50 + "</ul>" + "<ul>" + "<li>x" * 50, 2),
        ("<table>" + "<tr><td>x" * 50 + "</table><div></div>", 1),
        ("<br><img><input><hr>" * 50, 0),
        ("<script>'<div>'; <!-- <script></script> <div> --></script>" * 3, 0),
        ("<!-- <div> --><title><div></title><style><div></style>" * 3, 0),
        ('<svg><title>t</title><path/><path/></svg><a title="<div><div>">x</a>' * 3, 2),
        ("<b>x</b>" * 50, 1),
        ("<p><font size=1>x</p>" * 50, 50),
    ],
)
def test_depth_counts_the_open_elements_of_a_parser(page: str, depth: int) -> None:
    assert measure(page).max_depth == depth


def test_counts_of_a_small_page_are_those_counted_by_hand() -> None:
    counts = measure('<div a b=1 c="2>">x<p>y</p></div>')
    assert (counts.num_tags, counts.max_attributes, counts.attribute_steps) == (4, 3, 9)
    assert counts.stack_steps == 1 + 2 + 2 + 2
    assert counts.num_names == 5
    assert counts.num_bytes == 33


#: What took quadratic time on some parser or search: one unit, repeated.
HOSTILE = {
    "nested blocks": "<div>",
    "nested lists": "<ul><li>",
    "nested tables": "<table><tr><td>",
    "nested unknown": "<x>",
    "unmatched ends": "<x></zz>",
    "nested links": "<a><div>",
    "attributes": " a%d=1",
    "unfinished meta": "<meta ",
    "meta": "<meta name=date>",
    "formatting": "<p><font size=%d>",
    "options": "<option>x",
    "names": "<n%d></n%d>",
    "svg": "<g></zz>",
    "comments": "<!--",
    "less than": "<",
    "scripts": "<script>",
    "json": '<script type="application/ld+json">',
    "time": "<time ",
    "itemprop": "<a itemprop=datePublished",
    "quotes": '<p a="',
    "empty cells": "<td></td>",
    "rows": "<tr><td>a<td>1",
    "tall cells": "<tr><td rowspan=9999><td>a<td>1",
    "wide cells": "<td colspan=9999>1",
    "tables": "<table><tr><td>a<td>1</table>",
    "tables in tables": "<table><tr><td>a<td>1<td>",
    "styles": "<td style='non",
    "ends of scripts": "<script></x",
}


def hostile(name: str, size: int) -> str:
    unit = HOSTILE[name]
    prefix = {
        "attributes": "<div",
        "options": "<select>",
        "svg": "<svg>",
        "empty cells": "<table><tr>",
        "rows": "<table>",
        "tall cells": "<table>",
        "wide cells": "<table><tr>",
        "styles": "<table><tr>",
    }.get(name, "")
    repeats = size // len(unit)
    return prefix + "".join(unit.replace("%d", str(number)) for number in range(repeats))


class Steps(np.ndarray):  # type: ignore[type-arg]
    """Bytes that count how often one of them is read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        Steps.reads += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("name", HOSTILE)
def test_bytes_read_grow_no_faster_than_the_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels run as Python over bytes that count their reads: twice the page, at most twice the reads."""
    from finpile_tokenizer.arrays import _array_kernels
    from finpile_tokenizer.arrays.jit import Compiled

    from finpile.clean.html import _cost_kernels, _strip_kernels, _table_kernels

    for module in (_array_kernels, _tag_kernels, _cost_kernels, _strip_kernels, _table_kernels):
        for key, value in list(vars(module).items()):
            if isinstance(value, Compiled):
                monkeypatch.setattr(module, key, value.__wrapped__)
    keys, classes = markup.name_classes()

    def reads(size: int) -> tuple[int, ...]:
        data = np.frombuffer(hostile(name, size).encode(), np.uint8).view(Steps)
        Steps.reads = 0
        with np.errstate(over="ignore"):
            _cost_kernels.measure(data, keys, classes, 1 << 30)
            measured, Steps.reads = Steps.reads, 0
            _strip_kernels.strip_markup(data, keys, classes, np.uint64(1))
            stripped, Steps.reads = Steps.reads, 0
            cells = _table_kernels.find_cells(data, keys, classes)
            _table_kernels.rewritten(data, cells, keys, classes, True)
        return measured, stripped, Steps.reads

    growth = len(hostile(name, 4000)) / len(hostile(name, 1000))
    for small, large in zip(reads(1000), reads(4000), strict=True):
        assert large <= 1.125 * growth * small + 200
        assert large <= 30 * 4000


@pytest.mark.parametrize("name", ["nested blocks", "nested links", "nested unknown"])
def test_a_page_beyond_the_bound_of_the_main_content_is_read_whole(name: str) -> None:
    page = to_text(hostile(name, 30_000 * len(HOSTILE[name])) + "deep", main_content=True)
    assert page.text.strip() == "deep"
    assert page.simplified is not None
    assert " > " in page.simplified


@pytest.mark.parametrize(
    ("page", "named"),
    [
        ("<div " + " ".join(f"a{number}=1" for number in range(40_000)) + ">text", "pairs of attributes"),
        ("".join(f"<p><font size={number}>" for number in range(3000)) + "text", "nodes"),
        ("<select>" + "<option>x" * 20_000 + "</select>text", "pairs of options"),
        ("".join(f"<n{number}></n{number}>" for number in range(20_000)) + "text", "names"),
        ("<svg>" + "<g>" * 20_000 + "</zz>" * 20_000 + "text", "open elements"),
        ("<p>x" * 1_100_000 + "<p>text", "tags"),
    ],
)
def test_a_page_beyond_the_bounds_of_the_parser_is_stripped(page: str, named: str) -> None:
    found = to_text(page, main_content=True)
    assert found.text.rsplit("\n", 1)[-1].endswith("text")
    assert found.simplified is not None
    assert named in found.simplified


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("<div>" * 1_000_000 + "deep", "65,537 elements inside each other > 65,536"),
        ("<div " + "a " * 70_000 + ">x", "70,000 attributes in one tag > 65,536"),
    ],
)
def test_a_page_beyond_all_bounds_is_too_complex(page: str, reason: str) -> None:
    with pytest.raises(TooComplex, match=re.escape(reason)):
        to_text(page, main_content=False)


def test_stripped_text_contains_the_text_of_a_parser() -> None:
    page = (
        "<title>Oil &amp; gas</title><style>p {}</style><div>Oil  rose\n on <b>Mon</b>day<p>by 5 &#37;"
        "<table><tr><td>Brent<td>12.5</table><script>if (a < b) {}</script>"
        "<!-- not this --><ul><li>one<li>two</ul>3 < 4</div>"
    )
    text, title = strip_markup(page)
    assert title == "Oil & gas"
    assert text == "Oil rose on Monday\n\nby 5 %\nBrent\t12.5\none\ntwo\n3 < 4"


@given(st.text(alphabet=st.sampled_from("<>/=\"'&;!-divtableprscnx#0: \n\0é")) | st.text())
def test_any_page_is_measured_and_stripped(page: str) -> None:
    text, title = strip_markup(page)
    assert (text + title).encode().decode() == text + title
    assert measure(page).num_tags <= page.count("<")


CHECKED = """
from hypothesis import given, settings, strategies as st
from test_markup import HOSTILE, PIECES, hostile
from finpile.clean.html.markup import measure, strip_markup


@settings(max_examples=600, database=None, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def check(page):
    measure(page)
    strip_markup(page)


check()
for name in HOSTILE:
    for size in (10, 100_000):
        measure(hostile(name, size))
        strip_markup(hostile(name, size))
print("within bounds")
"""


def test_kernels_stay_within_bounds(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(CHECKED, Path(__file__).parent)


CHECKED = """
import itertools
import numpy as np
from numba import config
from finpile.clean.html.markup import MAX_DEPTH, name_classes
from finpile.clean.html._cost_kernels import measure
assert config.BOUNDSCHECK == 1
depth = 1  # of what `measure` returns
tags = ["<b>", "<q>", "<p>", "<a>", "<svg>", "<svg><b>"]
for tag, number, most in itertools.product(tags, [0, 1, 2, 3, 4, 7, 300], [0, 1, 2, 5, MAX_DEPTH]):
    measure(np.frombuffer((tag * number).encode(), np.uint8), *name_classes(), most)
for tag in ("<b>", "<q>"):
    for number in (300, MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 9):
        found = measure(np.frombuffer((tag * number).encode(), np.uint8), *name_classes(), MAX_DEPTH)
        assert found[depth] == min(number, MAX_DEPTH + 1), (tag, number)
print("within bounds")
"""


def test_pages_of_the_shortest_tags_have_room(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(CHECKED)
