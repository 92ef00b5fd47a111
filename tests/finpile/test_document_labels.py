"""Labels of documents by rules."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from finpile.documents.labels import MAX_CHARACTERS, check_rule, document_labels
from finpile.errors import ConfigError


def label(rule: str, **values: Any) -> str | None:
    row = {"source": "Web", "url": None, "locator": "a.txt", "meta": "{}", **values}
    return document_labels(pa.Table.from_pylist([row]), rule)[0]


@pytest.mark.parametrize(
    ("rule", "values", "expected"),
    [
        ("source", {}, "Web"),
        ("host", {"url": "https://www.North.example:8080/a?b"}, "north.example"),
        ("host", {"url": "https://user@sub.north.example"}, "sub.north.example"),
        ("host", {"url": "north.example/a"}, None),
        ("host", {"url": "http://[north/"}, None),
        ("host", {}, None),
        ("region", {"url": "https://www.bankofengland.co.uk/a"}, "UK"),
        ("region", {"url": "https://sec.gov"}, "US"),
        ("region", {"url": "https://north.com"}, None),
        ("region", {}, None),
        ("region.meta.country", {"meta": '{"country": "sg"}'}, "Asia-Pac"),
        ("region.meta.country", {"meta": '{"country": ["DE", "US"]}'}, "Europe"),
        ("region.meta.country", {"meta": '{"country": "Germany"}'}, None),
        ("region.meta.country", {"meta": "{}"}, None),
        ("folder", {"locator": "archive.zip/2019/a.htm"}, "2019"),
        ("folder", {"locator": "archive.zip/a.htm#3"}, "archive.zip"),
        ("folder", {"locator": "a.txt"}, None),
        ("meta.cik", {"meta": '{"cik": 1234}'}, "1234"),
        ("meta.cik", {"meta": '{"cik": ["0001", "0002"]}'}, "0001"),
        ("meta.cik", {"meta": '{"cik": []}'}, None),
        ("meta.cik", {"meta": '{"cik": null}'}, None),
        ("meta.cik", {"meta": '{"cik": true}'}, None),
        ("meta.cik", {"meta": '{"form": "cik"}'}, None),
        ("meta.a.b", {"meta": '{"a": {"b": " x "}}'}, "x"),
        ("meta.a.b", {"meta": '{"a.b": "y"}'}, "y"),
        ("meta.a", {"meta": '{"a": "  "}'}, None),
        ("meta.société", {"meta": '{"soci\\u00e9t\\u00e9": "z"}'}, "z"),
        ("meta.société", {"meta": '{"société": "z"}'}, "z"),
        ('meta.a"b', {"meta": '{"a\\"b": "z"}'}, "z"),
    ],
)
def test_labels(rule: str, values: dict[str, Any], expected: str | None) -> None:
    check_rule("rule", rule)
    assert label(rule, **values) == expected


def test_long_labels_are_cut() -> None:
    assert len(label("meta.a", meta='{"a": "' + "x" * 1000 + '"}') or "") == MAX_CHARACTERS


@pytest.mark.parametrize("rule", ["", "meta", "meta.", "hosts", "url.host", "region.", "region.meta.", "region.host"])
def test_other_rules_are_errors(rule: str) -> None:
    with pytest.raises(ConfigError, match="what"):
        check_rule("what", rule)
