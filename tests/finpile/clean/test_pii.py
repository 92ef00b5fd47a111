"""Masks of personal data: what is found and what is not, by hand; kept text and ledger give the text back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.clean.filters import c4, pii
from finpile.clean.filters.pii import PiiParameters, has_luhn_digit, is_iban
from finpile.clean.stage.rules import apply_all, byte_spans, without
from finpile.config import CleanConfig, FilterConfig
from finpile.documents.ledger import mask_bytes, masked_as, restore
from finpile.errors import ConfigError
from finpile.history.document import segments
from finpile.plugins.filter import Rejection, Span

pytest.importorskip("phonenumbers")

MASKED = {
    "Write to jane.doe+ir@acme-corp.co.uk.": "Write to [EMAIL].",
    "(mailto:ir@acme.com)": "(mailto:[EMAIL])",
    "Call +44 20 7946 0018 or (212) 555-2368 now.": "Call [PHONE] or [PHONE] now.",
    "Tel.: 212-736-5000": "Tel.: [PHONE]",
    "from 8.8.8.8, and": "from [IP], and",
    "host 2001:4860:4860::8888 is up": "host [IP] is up",
    "8.8.8.8-8.8.4.4, ::ffff:8.8.8.8:80": "[IP]-[IP], ::ffff:[IP]:80",
    "IBAN DE89 3704 0044 0532 0130 00 BIC COBADEFF": "IBAN [IBAN] BIC COBADEFF",
    "GB82WEST12345698765432": "[IBAN]",
    "card 4111 1111 1111 1111, thanks": "card [CARD], thanks",
    "amex 378282246310005": "amex [CARD]",
    "212.736.5000 or 1-800-275-2273": "[PHONE] or [PHONE]",
    "New York, NY 10022 (212) 736-5000": "New York, NY 10022 [PHONE]",
    "+1 212-736-5000 212-736-5001 (212) 736-5002 (212) 736-5003 5": "[PHONE] [PHONE] [PHONE] [PHONE] 5",
    "Call 212.736.5000 - 2022.": "Call [PHONE] - 2022.",
    "SSN 078-05-1120.": "SSN [SSN].",
    "Zürich: a@b.ch – é c@d.fr": "Zürich: [EMAIL] – é [EMAIL]",
}
KEPT = [
    "At 10:30:45 @acme said @home that a@b is no address.",
    "vmlinuz-3.16.0.29 libv8-3.8.9.20 2.8.12.1-6ubuntu2 4.4.0.93-generic 2.1.0.0~rc1 ::ffff:202.83.102:50",
    "10.0.0.1, 192.168.1.1, 127.0.0.1, fe80::1, ::1 and 300.1.1.1",
    "Net sales of $1,234,567,890 rose from 987,654,321 in 2010-2011.",
    "1998 1999 2000 2001 2002 2003",
    "212 736 5000 415 736 5001 212 736 5002 (212) 736.5 2010-2011 2012-2013",
    "Section 4.1.2.3.4 and (1) 2345",
    "DE88 3704 0044 0532 0130 00",
    "4111 1111 1111 1112 and 1234567890123456",
    "000-12-3456, 666-12-3456, 912-12-3456, 123-00-4567, 123-45-0000",
    "CUSIP 037833100, ISIN US0378331005, accession number 0000320193-22-000108",
    "2023-01-02 10:00:00.000",
    "23 456 78 901 in 12-34-5678-90",
    "0.000123456789 12.345678901",
]


def masked(text: str, **parameters: Any) -> str:
    found = pii.apply(text, PiiParameters(**parameters))
    assert not isinstance(found, Rejection)
    return without(text, found)


@pytest.mark.parametrize("text", MASKED)
def test_personal_data_is_masked(text: str) -> None:
    assert masked(text) == MASKED[text]


@pytest.mark.parametrize("text", KEPT)
def test_other_text_is_kept(text: str) -> None:
    assert masked(text) == text


def test_kinds_and_regions_are_parameters() -> None:
    text = "a@b.com 8.8.8.8 (212) 555-2368 020 7946 0018"
    assert masked(text, kinds=("ip",)) == "a@b.com [IP] (212) 555-2368 020 7946 0018"
    assert masked(text, kinds=("phone",), phone_regions=()) == text
    assert masked("call 020 7946 0018", phone_regions=("GB",)) == "call [PHONE]"
    for wrong in ({"kinds": ("mail",)}, {"phone_regions": ("usa",)}):
        with pytest.raises(ConfigError):
            PiiParameters(**wrong)


@given(st.text("0123456789", min_size=2, max_size=19))
def test_luhn_equals_the_definition(digits: str) -> None:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 else 1)
        total += value - 9 if value > 9 else value
    assert has_luhn_digit(digits) == (total % 10 == 0)


def test_iban_check_digits_find_every_changed_digit() -> None:
    for number in ("GB82WEST12345698765432", "FR1420041010050500013M02606", "NO9386011117947"):
        assert is_iban(number)
        for at in range(4, len(number)):
            if number[at].isdigit():
                assert not is_iban(number[:at] + str((int(number[at]) + 1) % 10) + number[at + 1 :])


PARTS = st.lists(st.sampled_from([*MASKED, *KEPT, "[1] ", "é\n", "Oil prices rose again on Monday."]), max_size=6)


@settings(max_examples=60, deadline=None)
@given(PARTS.map("\n".join))
def test_kept_text_and_ledger_give_the_text_back(text: str) -> None:
    filters = [(c4.FILTER, c4.C4Parameters(min_sentences=1, min_words_per_line=1)), (pii.FILTER, PiiParameters())]
    found = apply_all(filters, text)
    if isinstance(found, Rejection):
        return
    kept, data = without(text, found), text.encode()
    spans = byte_spans(text, found)
    rows = [(span.start, span.end, data[span.start : span.end], len(span.mask.encode())) for span in spans]
    assert restore(kept.encode(), rows) == data
    ledger = [
        {"stage": "clean", "start": start, "end": end, "removed_text": removed, "detail": masked_as(span.mask)}
        for span, (start, end, removed, _) in zip(spans, rows, strict=True)
    ]
    assert [mask_bytes(row["detail"]) for row in ledger] == [row[3] for row in rows]
    assert b"".join(segment.text for segment in segments(kept.encode(), ledger)) == data


def test_data_around_an_earlier_cut_has_one_mask() -> None:
    text = "Write to jane[1]@acme.com today."
    cut = Span(13, 16, "c4_citation")
    assert text[cut.start : cut.end] == "[1]"
    filters = [(c4.FILTER, c4.C4Parameters(min_sentences=1, min_words_per_line=1)), (pii.FILTER, PiiParameters())]
    found = apply_all(filters, text)
    assert found == [Span(9, 13, "pii_email", "[EMAIL]"), cut, Span(16, 25, "pii_email")]
    assert without(text, found) == "Write to [EMAIL] today."  # type: ignore[arg-type]


def test_masking_filter_is_the_last_one() -> None:
    assert CleanConfig(filters=("c4", "pii")).filters[-1] == FilterConfig.named("pii")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="`pii` masks text, which later filters would read: put it last"):
        CleanConfig(filters=("pii", "c4"))  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["a", "1", "1 ", "a.", "a@", "a@b.", ":", "1.", "A1", "(1)", "+", "- ", "AB12 ", "1-"])
def test_an_address_after_a_long_text_is_all_that_is_masked(unit: str) -> None:
    """Quadratic time would take minutes here."""
    text = unit * (200_000 // len(unit))
    begin = len(text) + 1
    assert pii.apply(f"{text} jane@acme.com") == [Span(begin, begin + 13, "pii_email", "[EMAIL]")]
