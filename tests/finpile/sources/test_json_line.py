"""Lines of JSON Lines are read as Python's parser reads them, whichever parser did."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.sources.readers.json_line import MAX_DEPTH, parse_line

_NUMBERS = st.integers() | st.integers(-(2**66), 2**66) | st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS | st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


def expected(line: bytes) -> Any:
    return json.loads(line.decode(), parse_constant=lambda _: None)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), _VALUES), st.booleans())
def test_objects_are_those_of_the_parser_of_python(record: dict[str, Any], is_ascii: bool) -> None:
    line = json.dumps(record, ensure_ascii=is_ascii).encode() + b"\n"
    assert repr(parse_line(line)) == repr(expected(line))


@pytest.mark.parametrize(
    "line",
    [
        '{"a": 9223372036854775807}', '{"a": 9223372036854775808}', '{"a": 18446744073709551616}',
        '{"a": -9223372036854775809}', '{"a": [18446744073709551616]}', '{"a": {"b": 18446744073709551616}}',
        '{"a": 1e400}', '{"a": -0, "b": -0.0}', '{"a": 1e5}', '{"a": 0.1e-400}', '{"a": NaN, "b": [Infinity]}',
        '{"a": "\\ud800"}', '{"a": "\\ud83d\\ude00"}', '{"\\udc00": 1}', '{"a": "\\u0000\\/\\f"}',
        '{"b": 1, "a": 2, "b": 3}', ' \t{"a":1}\r\n', "[1.5, 2]", '"text"', "18446744073709551616", "{}",
    ],
)  # fmt: skip
def test_what_parsers_read_differently_is_as_in_python(line: str) -> None:
    assert repr(parse_line(line.encode())) == repr(expected(line.encode()))


@pytest.mark.parametrize(
    "line", ['{"a": 1,}', '{"a": 01}', '{"a": "\x01"}', '{"a": 1} {}', "{'a': 1}", "", '{"a": 1.}']
)
def test_what_python_refuses_is_its_error(line: str) -> None:
    with pytest.raises(json.JSONDecodeError) as wanted:
        expected(line.encode())
    with pytest.raises(json.JSONDecodeError) as found:
        parse_line(line.encode())
    assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize(("opened", "closed"), [('{"a":', "}"), ("[", "]")])
def test_values_may_be_nested_to_a_depth(opened: str, closed: str) -> None:
    for depth in (MAX_DEPTH - 1, MAX_DEPTH, 500, 5_000):
        line = f'{{"a": {opened * depth}1{closed * depth}}}'.encode()
        if depth < MAX_DEPTH:
            assert parse_line(line) == expected(line)
        else:
            with pytest.raises(ValueError, match="nested"):
                parse_line(line)
