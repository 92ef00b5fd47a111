"""The definition of an empty text, in the library's own patterns and in Arrow's."""

from __future__ import annotations

import sys
import unicodedata

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.documents.blank import is_blank, visible_class

INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u00ad\u3164\u115f\u1160\uffa0\u034f\u180e\u2800\ufe0f\U000e0041"


@pytest.mark.parametrize("sign", INVISIBLE + " \t\n\r\x00\x1b\u00a0\u2003\u2028\u3000")
def test_signs_that_leave_no_mark_are_blank(sign: str) -> None:
    assert is_blank(sign * 3)
    assert not is_blank(sign + "a" + sign)


def test_blank_signs_are_white_space_controls_formats_and_few_others() -> None:
    """Counted over all of Unicode: whatever is a letter, a digit, a sign of punctuation or a symbol is visible."""
    every = list(map(chr, range(sys.maxunicode + 1)))
    blank = [sign for sign in every if is_blank(sign)]
    invisible = {"Cc", "Cf", "Zs", "Zl", "Zp"}
    assert set(blank) >= {sign for sign in every if unicodedata.category(sign) in invisible or sign.isspace()}
    visible = [sign for sign in blank if unicodedata.category(sign)[0] in "LNPS"]
    assert sorted(visible) == ["\u115f", "\u1160", "\u2800", "\u3164", "\uffa0"]


@given(st.lists(st.text(alphabet=st.sampled_from(INVISIBLE + " \n\x00a\u00e9]^-\\")) | st.text(), min_size=1))
def test_arrow_reads_the_class_as_python_does(texts: list[str]) -> None:
    found = pc.match_substring_regex(pa.array(texts, pa.large_string()), visible_class())
    assert found.to_pylist() == [not is_blank(text) for text in texts]
