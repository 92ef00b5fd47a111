"""Segments of texts: together they are the text, have its pretokens, and end where the rule says."""

from __future__ import annotations

import re
from itertools import pairwise

import pyarrow as pa
import pytest
from finpile_tokenizer import MAX_PRETOKEN_BYTES, PRETOKEN_PATTERN, count_pretokens
from finpile_tokenizer.errors import InputTypeError, TokenizerError
from finpile_tokenizer.pretokens.segments import cut_texts
from hypothesis import given, settings
from hypothesis import strategies as st

PARTS = st.sampled_from(
    [b"oil ", b"x" * 700, b"12%", b"\n", b"\n\n", b"\r\n\r\n", b".\n\n(", b"\xc3\xa9", b". ", b"\0" * 1500]
)
TEXTS = st.lists(PARTS, max_size=40).map(b"".join)


def cuts(text: bytes, target: int) -> list[int]:
    """The rule of `cut_texts`, from the ends of pretokens found by the regular expression."""
    ends: list[int] = []
    for found in re.finditer(PRETOKEN_PATTERN.encode(), text):
        ends += [*range(found.start() + MAX_PRETOKEN_BYTES, found.end(), MAX_PRETOKEN_BYTES), found.end()]
    stops = [0]
    while stops[-1] < len(text):
        start = stops[-1]
        late = [end for end in ends if end - start >= 2 * target]
        near = [end for end in ends if target <= end - start < 2 * target and end < len(text)]
        paragraphs = [end for end in near if re.search(rb"\n\r?\n\Z", text[start:end])]
        lines = [end for end in near if text[end - 1 : end] == b"\n"]
        if paragraphs:
            stops.append(paragraphs[0])
        elif late:
            stops.append((lines or near or late)[0])
        else:
            stops.append(len(text))
    return stops


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=5), st.sampled_from([1, 3, 40, 512]))
def test_segments_are_those_of_the_rule(texts: list[bytes], target: int) -> None:
    segments, counts = cut_texts(pa.array(texts, pa.large_binary()), target)
    expected = [[text[a:b] for a, b in pairwise(cuts(text, target))] for text in texts]
    assert counts.tolist() == list(map(len, expected))
    assert segments.to_pylist() == [segment for some in expected for segment in some]


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=5), st.sampled_from([1, 3, 40, 512]))
def test_segments_have_the_text_and_the_pretokens_of_the_whole(texts: list[bytes], target: int) -> None:
    array = pa.array(texts, pa.large_binary())
    segments, counts = cut_texts(array, target)
    parts, at = segments.to_pylist(), 0
    for text, count in zip(texts, counts.tolist(), strict=True):
        own = parts[at : at + count]
        assert b"".join(own) == text
        assert all(len(part) >= target for part in own[:-1])
        assert all(0 < len(part) < 2 * target + MAX_PRETOKEN_BYTES for part in own)
        at += count
    whole, cut = count_pretokens(array), count_pretokens(segments)
    assert cut.pretokens.equals(whole.pretokens)
    assert cut.frequencies.tolist() == whole.frequencies.tolist()


def test_segments_do_not_depend_on_the_arrow_type_or_offset() -> None:
    texts = ["Oil rose.\n\nGas fell.", "é", "", "Rates\nwere held."]
    expected = cut_texts(pa.array(texts[1:], pa.large_binary()), 4)[0].to_pylist()
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.string_view()):
        assert cut_texts(pa.array(texts, kind)[1:], 4)[0].to_pylist() == expected


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TokenizerError, match="target_bytes is 0"):
        cut_texts(pa.array(["a"]), 0)
    with pytest.raises(InputTypeError):
        cut_texts(pa.array(["a", None]), 1)
