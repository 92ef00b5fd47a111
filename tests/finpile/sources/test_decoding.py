"""Pages and messages have the text that their readers see, whatever encoding they name."""

import codecs

import pytest

from finpile.sources.bytes.decoding import decode_likely

CHINESE = "石油价格周一上涨，部长们在港口会晤。"
ENGLISH = "The ministers met in the port of Vantry, and oil rose two percent after the meeting. "


@pytest.mark.parametrize("is_html", [False, True])
@pytest.mark.parametrize("text", ["Café", "It’s", f"{ENGLISH * 9}It’s", f"{ENGLISH * 9}Up – not down"])
def test_a_single_character_of_utf8_is_enough(text: str, is_html: bool) -> None:
    for declared in (None, "iso-8859-1", "us-ascii", "utf-8", "no such encoding"):
        assert decode_likely(text.encode(), declared, is_html=is_html) == text
    page = f"<meta charset=iso-8859-1>{text}"
    assert decode_likely(page.encode(), None, is_html=True) == page


@pytest.mark.parametrize(
    ("declared", "codec", "text"),
    [
        ("iso-8859-1", "cp1252", "“Oil – it’s up”"),
        ("us-ascii", "cp1252", "“Oil – it’s up”"),
        ("gb2312", "gbk", "價格"),
        ("shift_jis", "cp932", "①髙㈱"),
        ("euc-kr", "cp949", "똠방각하"),
        ("iso-8859-9", "cp1254", "“İstanbul”"),
    ],
)
def test_names_of_encodings_mean_what_browsers_read(declared: str, codec: str, text: str) -> None:
    assert decode_likely(text.encode(codec), declared, is_html=False) == text


@pytest.mark.parametrize("declared", ["utf-8", "gb2312", None])
@pytest.mark.parametrize("codec", ["utf-8", "gb18030"])
@pytest.mark.parametrize("num_cut", [1, 2, 3])
def test_a_cut_text_keeps_its_encoding(codec: str, num_cut: int, declared: str | None) -> None:
    found = decode_likely((CHINESE * 20).encode(codec)[:-num_cut], declared, is_html=False)
    assert found[:-1] == (CHINESE * 20)[: len(found) - 1]


def test_a_damaged_byte_costs_a_character() -> None:
    data = CHINESE.encode() + b"\xa0" + CHINESE.encode()
    assert decode_likely(data, "utf-8", is_html=True) == f"{CHINESE}\ufffd{CHINESE}"


@pytest.mark.parametrize("declared", [None, "utf-8", "iso-8859-1", "shift_jis"])
def test_a_byte_order_mark_overrules_what_is_declared(declared: str | None) -> None:
    for mark, codec in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        assert decode_likely(mark + "Öl".encode(codec), declared, is_html=True) == "Öl"


def test_damage_that_a_page_repeats_is_text() -> None:
    assert decode_likely("\ufffd\ufffd é".encode(), None, is_html=True) == "\ufffd\ufffd é"
