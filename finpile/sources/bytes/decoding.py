"""Bytes to text, strictly: an encoding either fits or the next one is tried."""

from __future__ import annotations

from collections.abc import Sequence

UTF8 = ("utf-8",)
_FALLBACKS = ("utf-8", "cp1252", "latin-1")


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


def likely_encodings(data: bytes, declared: str | None, *, is_html: bool) -> tuple[str, ...]:
    """The encodings that the sender, the page and its bytes say, best evidence first; the last one reads any byte."""
    if declared is None and data.isascii() and b"\x1b" not in data:
        return UTF8
    from resiliparse.parse.encoding import detect_encoding

    detected = detect_encoding(data, from_html_meta=is_html)
    return tuple(name for name in (declared, detected, *_FALLBACKS) if name and _is_known(name))


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
