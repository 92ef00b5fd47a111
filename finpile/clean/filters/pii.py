"""Masking of personal data: a mail address becomes `[EMAIL]`. Must be the last filter of a source.

Source: the categories of Dolma (Soldaini et al. 2024, §3, https://arxiv.org/abs/2402.00159: e-mail addresses, phone
numbers, IP addresses) and of FineWeb (public IP addresses, e-mail addresses), with numbers that have check digits.

| kind    | what is masked                                                        | checked by                        |
|---------|-----------------------------------------------------------------------|-----------------------------------|
| `email` | `local@domain.tld`                                                    | its form                          |
| `phone` | a number with `+`, or with separators in a form of `phone_regions`    | libphonenumber's rules, by the    |
|         |                                                                       | package `phonenumbers`            |
| `ip`    | a public IPv4 or IPv6 address                                         | `ipaddress`                       |
| `iban`  | an International Bank Account Number                                  | ISO 7064, mod 97-10               |
| `card`  | a payment card number of 13 to 19 digits with the prefix of an issuer | Luhn's check digit                |
| `ssn`   | a US Social Security number with hyphens                              | ranges that are never issued      |

Of overlapping ones the first counts; of those with one start, in this order: ssn, card, iban, ip, email, phone. Names,
postal addresses and account numbers without check digits are not found; a version number of four parts is taken for an
IP address, unless a hyphen joins it to a name. The ledger has the masked text: `removed/` is as sensitive as the input.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from finpile.config import bounds
from finpile.errors import ConfigError
from finpile.plugins.filter import Filter, Rejection, Span

REASONS = {
    "pii_email": "an e-mail address, masked",
    "pii_phone": "a phone number, masked",
    "pii_ip": "a public IP address, masked",
    "pii_iban": "a bank account number, masked",
    "pii_card": "a payment card number, masked",
    "pii_ssn": "a US Social Security number, masked",
}

# Each pattern begins where no part of a longer number or word ends, and has bounded repetitions, so that a search takes
# linear time.

_EMAIL = re.compile(
    r"(?<![\w.%+-])[A-Za-z0-9](?:[\w.%+-]{0,63})@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}[A-Za-z]{2,24}(?![\w-])",
    re.ASCII,
)
#: Not the versions of packages: `vmlinuz-3.16.0.29`, `2.8.12.1-6ubuntu2`, `4.4.0.93-generic`, `2.1.0.0~rc1`.
_IPV4 = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?<![A-Za-z]\d-)(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d|~|-\d{0,4}[A-Za-z])", re.ASCII
)
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{3,39}(?![\w:]|\.\d)", re.ASCII)
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)", re.ASCII)
_CARD = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)", re.ASCII)
_SSN = re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}(?![\w-])", re.ASCII)
_PHONE = re.compile(r"(?<![\w.,+/$€£-])(?:\+|\(?\d)[\d ().-]{5,24}\d(?![\w%]|[.,:]\d)", re.ASCII)
#: A part of the above whose groups are joined by other signs than spaces, but for a space behind a code.
_JOINED = re.compile(r"(?<![^ ])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,5}\) ?)?\d[\d.-]{4,20}\d(?![^ ])", re.ASCII)

#: First digits of card numbers and their lengths. Source: ISO/IEC 7812 ranges of Visa, Mastercard, American Express,
#: Discover, Diners Club and JCB.
_ISSUERS = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|(?:6011|65\d\d|64[4-9]\d)\d{12}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
)
_LEAST_PHONE_DIGITS, _MOST_PHONE_DIGITS = 7, 15


@dataclass(frozen=True, kw_only=True, slots=True)
class PiiParameters:
    """What is masked."""

    kinds: tuple[str, ...] = ("email", "phone", "ip", "iban", "card", "ssn")
    """The kinds of the table."""
    phone_regions: tuple[str, ...] = ("US",)
    """Countries, as two letters, whose national phone numbers are masked; empty: international numbers alone."""

    def __post_init__(self) -> None:
        for kind in self.kinds:
            bounds.one_of("kinds", kind, _FINDERS)
        for region in self.phone_regions:
            if not (len(region) == 2 and region.isascii() and region.isupper()):
                raise ConfigError(f"phone_regions has {region!r}: expected two letters of a country, such as US")


Found = Iterator[tuple[int, int]]


def _emails(text: str, _: PiiParameters) -> Found:
    return (match.span() for match in _EMAIL.finditer(text)) if "@" in text else iter(())


def _addresses(text: str, _: PiiParameters) -> Found:
    for pattern, sign in ((_IPV4, "."), (_IPV6, ":")):
        for match in pattern.finditer(text):
            address = match[0].rstrip(":") if match[0].endswith(":") and not match[0].endswith("::") else match[0]
            if sign in address and _is_public(address):
                yield match.start(), match.start() + len(address)


def _is_public(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False


def _ibans(text: str, _: PiiParameters) -> Found:
    for match in _IBAN.finditer(text):
        found = match[0]
        while len(found) >= 15:  # a word in capital letters can follow
            if is_iban(found.replace(" ", "")):
                yield match.start(), match.start() + len(found)
                break
            found = found.rpartition(" ")[0]


def is_iban(number: str) -> bool:
    """Whether the check digits of a number of 15 to 34 letters and digits are right."""
    return 15 <= len(number) <= 34 and int("".join(str(int(sign, 36)) for sign in number[4:] + number[:4])) % 97 == 1


def _cards(text: str, _: PiiParameters) -> Found:
    for match in _CARD.finditer(text):
        digits = re.sub("[ -]", "", match[0])
        if _ISSUERS.fullmatch(digits) and has_luhn_digit(digits):
            yield match.span()


def has_luhn_digit(digits: str) -> bool:
    """Whether the last digit is Luhn's check digit of those before it. Source: ISO/IEC 7812-1, annex B."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[::-2]))) % 10 == 0


def _numbers(text: str, _: PiiParameters) -> Found:
    return (match.span() for match in _SSN.finditer(text))


def _phones(text: str, parameters: PiiParameters) -> Found:
    end = 0
    while match := _PHONE.search(text, end):
        end = match.end()
        if _is_phone(match[0], parameters.phone_regions):
            yield match.span()
            continue
        for one in _JOINED.finditer(text, *match.span()):  # in a row of numbers: a postcode, then a phone number
            is_cut = text.startswith("-", one.end())
            if not is_cut and _is_phone(one[0], parameters.phone_regions):
                yield one.span()
                end = one.end()  # the next one may be cut at the end of the row
                break


def _is_phone(number: str, regions: tuple[str, ...]) -> bool:
    num_digits = sum(map(str.isdigit, number))
    if not _LEAST_PHONE_DIGITS <= num_digits <= _MOST_PHONE_DIGITS or number.count("(") != number.count(")"):
        return False
    if len(number) == num_digits:
        return False
    import phonenumbers  # loads tables of all countries

    grouped = phonenumbers.Leniency.STRICT_GROUPING  # digits are in groups as the country writes them
    for region in (None,) if number.startswith("+") else regions:
        found = list(phonenumbers.PhoneNumberMatcher(number, region, grouped))
        if len(found) == 1 and found[0].raw_string == number:
            return True
    return False


#: By kind, the ones that win first: of two with one start, the stricter check.
_FINDERS: dict[str, Callable[[str, PiiParameters], Found]] = {
    "ssn": _numbers,
    "card": _cards,
    "iban": _ibans,
    "ip": _addresses,
    "email": _emails,
    "phone": _phones,
}

_DEFAULTS = PiiParameters()


def apply(text: str, parameters: PiiParameters = _DEFAULTS) -> Rejection | list[Span]:
    """Spans of personal data, each with its mask."""
    found = [
        (start, order, end, kind)
        for order, kind in enumerate(_FINDERS)
        if kind in parameters.kinds
        for start, end in _FINDERS[kind](text, parameters)
    ]
    spans: list[Span] = []
    for start, _, end, kind in sorted(found):
        if not spans or start >= spans[-1].end:
            spans.append(Span(start, end, f"pii_{kind}", f"[{kind.upper()}]"))
    return spans


FILTER = Filter(name="pii", apply=apply, reasons=REASONS, parameters=PiiParameters, masks=True)
