"""Bytes to text: strictly, an encoding either fits or the next one is tried; or as browsers read pages."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

UTF8 = ("utf-8",)
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: The encoding of a page without any evidence, which is also what servers say of pages in other encodings.
_DEFAULT = "cp1252"
#: Names of encodings of which ASCII is a part, as most pages have them.
_LIKE_ASCII = ("utf-8", "us-ascii", "iso-8859-1", _DEFAULT)
#: Codecs for all characters that browsers read under the names of others.
_SUPERSETS = {"gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs", "iso8859-11": "cp874"}


class Undecodable(ValueError):
    """None of the encodings fits; the message has the reason for each."""


def decode(data: bytes, encodings: Sequence[str] = UTF8) -> tuple[str, str]:
    """The text without a byte order mark, and the encoding that gave it: the first of `encodings` that fits.

    Raises: Undecodable
    """
    failures: list[str] = []
    for encoding in encodings:
        try:
            text = data.decode(encoding)
            if encoding not in UTF8:
                text.encode()  # utf-7 and its like can give halves of surrogate pairs
        except UnicodeError as error:
            at = f" at byte {error.start}" if isinstance(error, UnicodeDecodeError) else ""
            failures.append(f"{encoding}: {getattr(error, 'reason', error)}{at}")
        else:
            return text.removeprefix("\ufeff"), encoding
    raise Undecodable("; ".join(failures))


def decode_likely(data: bytes, declared: str | None, *, is_html: bool) -> str:
    """The text of a page or message by its byte order mark, by the encoding `declared` for it, or by its bytes.

    Names of encodings have the meaning that browsers give them: `iso-8859-1` is windows-1252, `gb2312` is GB 18030. As
    servers name windows-1252 for pages in any encoding, and as few bytes above 127 are UTF-8 by chance, UTF-8 is
    tried before windows-1252 and before the encoding that a page names or that is detected. A text with a few damaged
    or cut characters keeps its encoding: they are U+FFFD. Without any other encoding it is windows-1252.

    Source: https://encoding.spec.whatwg.org.
    """
    if data.isascii() and (declared in _LIKE_ASCII or (declared is None and b"\x1b" not in data)):
        return data.decode()
    text = next(text for text in _readings(data, declared, is_html) if text is not None)
    return text.removeprefix("\ufeff")


def _readings(data: bytes, declared: str | None, is_html: bool) -> Iterator[str | None]:
    """The text in each likely encoding, the best evidence first; None where it does not fit."""
    named = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None) or _codec(declared)
    if named not in (None, _DEFAULT):
        yield _text(data, named, "strict")
    if not data.isascii():
        yield _text(data, "utf-8", "strict")
        yield _text(data, "utf-8", "replace")
    if named:
        yield _text(data, named, "replace")
    from resiliparse.parse.encoding import detect_encoding

    yield _text(data, _codec(detect_encoding(data, from_html_meta=is_html)), "replace")
    yield _text(data, _DEFAULT, "replace")
    yield data.decode("latin-1")


def _text(data: bytes, encoding: str | None, errors: str) -> str | None:
    """The text; None if it does not fit, or if as many characters are damaged as are above 127 and are not."""
    if encoding is None:
        return None
    try:
        text = data.decode(encoding, errors)
    except UnicodeError:
        return None
    if encoding != "utf-8" and has_surrogates(text):  # halves of pairs, by utf-7 and its like
        return None
    if errors == "replace" and (num_damaged := text.count("\ufffd")):
        num_others = len(text) - len(text.encode("ascii", "ignore")) - num_damaged
        return text if num_damaged < num_others else None
    return text


def _codec(declared: str | None) -> str | None:
    """The codec of a name of an encoding, as browsers read it; None for an unknown name."""
    if declared in (None, "utf-8", _DEFAULT):
        return declared
    from resiliparse.parse.encoding import map_encoding_to_html5

    name = map_encoding_to_html5(declared, False) or declared
    return _SUPERSETS.get(name, name) if _is_known(name) else None


def _is_known(encoding: str) -> bool:
    try:
        b"a".decode(encoding)
    except UnicodeError:
        return True
    except (LookupError, ValueError):
        return False
    return True


def has_surrogates(text: str) -> bool:
    """Whether the text holds halves of surrogate pairs, which UTF-8 cannot encode."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def spell_surrogates(text: str) -> str:
    """The text with every lone half of a surrogate pair spelled out as `\\udXXX`."""
    if text.isascii():  # nearly always; spares a call
        return text
    return text.encode("utf-8", "backslashreplace").decode() if has_surrogates(text) else text
