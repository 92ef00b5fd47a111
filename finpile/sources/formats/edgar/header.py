"""The header of an EDGAR submission: what it says about the filing and the parties to it, in both dialects.

When a filing became public:

- The timestamp is the moment of acceptance (`ACCEPTANCE-DATETIME`), which EDGAR gives to the second in the time of New
  York and without a zone. It is converted to UTC by the rules of the time zone database; of an hour that occurs twice,
  in autumn, the later one is taken, so that no document is dated before it was public.
- Most filings that EDGAR accepts after 17:30 get the next business day as their filing date, and are public from 6:00
  on that day: this is their timestamp.
- A filing that was confidential at first (`PRIVATE-TO-PUBLIC`) became public later: its timestamp is the last day among
  those of its release, its last change and its filing.
- Without either, as before 2002, the timestamp is the day of filing.

`meta.filed` has the filing date, `meta.accepted` the acceptance, both as in the header.

Source: EDGAR Public Dissemination Service (PDS) Technical Specification, https://www.sec.gov/oit/announcement/pds,
Regulation S-T, 17 CFR 232.13 (filing dates), and the EDGAR Filer Manual, volume II (hours of operation).
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from finpile.timestamps import is_plausible, parse

_TAG = re.compile(r"<([A-Z][A-Z0-9.\-]*)>([^<\r\n]*)")
_LINE = re.compile(r"^[ \t]*+([A-Z][A-Z0-9 \-]*+)[ \t]*+:(.*)", re.MULTILINE)
_ACCESSION = re.compile(r"(?<!\d)\d{10}-\d{2}-\d{6}(?!\d)")
_SIC = re.compile(r"\d{4}")
_ACCEPTED = "%Y%m%d%H%M%S"
#: In New York: when the filings of a day that were accepted the evening before become public.
_FIRST_HOUR = "060000"
_RELEASED = re.compile(r"\S+ : (\d{8})\s*")

#: Header names in both dialects -> what they are called here.
_FIELDS = {
    "ACCESSION NUMBER": "accession", "ACCESSION-NUMBER": "accession",
    "CONFORMED SUBMISSION TYPE": "form_type", "TYPE": "form_type",
    "FILED AS OF DATE": "filed", "FILING-DATE": "filed",
    "CONFORMED PERIOD OF REPORT": "period", "PERIOD": "period",
    "ACCEPTANCE-DATETIME": "accepted",
    "DATE AS OF CHANGE": "changed", "DATE-OF-FILING-DATE-CHANGE": "changed",
}  # fmt: skip
#: Fields of a filing that can occur several times.
_LISTS = {"ITEM INFORMATION": "declared_items", "ITEMS": "declared_items"}
_PARTY_FIELDS = {
    "COMPANY CONFORMED NAME": "company", "CONFORMED-NAME": "company",
    "CENTRAL INDEX KEY": "cik", "CIK": "cik",
    "STANDARD INDUSTRIAL CLASSIFICATION": "sic", "ASSIGNED-SIC": "sic",
}  # fmt: skip
#: Whom a filing can be about, best first: a reporting owner's Form 4 is about the issuer.
_PARTIES = ("ISSUER", "SUBJECT COMPANY", "FILER", "FILED FOR", "SERIAL COMPANY", "FILED BY", "REPORTING OWNER")
#: Keys of `Header.meta`, and their meanings.
META = {
    "accession": "the accession number of the filing",
    "form_type": "the form of the filing: `10-K`, `8-K`, `4`",
    "filed": "the filing date, as in the header",
    "accepted": "the moment of acceptance in New York, as in the header",
    "period": "the end of the period of the report, as in the header",
    "declared_items": "items of an 8-K that the header declares",
    "company": "the name of the company that the filing is about",
    "cik": "its CIK",
    "sic": "its industry, 4 digits",
    "ciks": "the CIKs of all parties",
}


@dataclass(slots=True)
class Header:
    """The header's fields, and those of each party to the filing, in the order of the file."""

    fields: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    parties: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    was_private: bool = False
    """Whether the filing was confidential at first."""

    def subject(self) -> dict[str, str]:
        """The party that the filing is about."""
        named = [entry for entry in self.parties if "company" in entry[1]]
        return min(named, key=lambda entry: _PARTIES.index(entry[0]), default=("", {}))[1]

    def published(self) -> datetime | None:
        """When the filing became public, in UTC; None if the header has no moment that can be read."""
        if self.was_private:
            days = [parse(self.fields.get(name)) for name in ("released", "changed", "filed")]
            return max((day for day in days if day is not None), default=None)
        accepted, filed = accepted_at(self.fields.get("accepted", "")), self.fields.get("filed", "")
        if accepted is None:
            return parse(filed)
        return max(accepted, accepted_at(filed + _FIRST_HOUR) or accepted)

    def meta(self) -> dict[str, Any]:
        """The fields of the filing and of its subject; `ciks` are those of all parties, each once."""
        meta: dict[str, Any] = {name: value for name, value in self.fields.items() if name in META}
        meta |= self.subject()
        meta |= {name: list(dict.fromkeys(values)) for name, values in self.lists.items()}
        ciks = list(dict.fromkeys(party["cik"] for _, party in self.parties if "cik" in party))
        if ciks:
            meta["ciks"] = ciks
        if unreadable := self._unreadable():
            meta["unreadable_timestamp"] = meta.pop(unreadable)
        return meta

    def _unreadable(self) -> str | None:
        """The field whose moment cannot be read."""
        accepted, filed = self.fields.get("accepted"), self.fields.get("filed")
        if accepted is not None and accepted_at(accepted) is None:
            return "accepted"
        return "filed" if filed is not None and parse(filed) is None else None

    def add(self, name: str, value: str) -> None:
        """Takes one line of the header; of a repeated field the first counts."""
        party = name.replace("-", " ")
        if party in _PARTIES and not value:
            self.parties.append((party, {}))
        elif name == "PRIVATE-TO-PUBLIC":
            self.was_private = True
        elif value and name in _FIELDS:
            self.fields.setdefault(_FIELDS[name], value)
        elif value and name in _LISTS:
            self.lists.setdefault(_LISTS[name], []).append(value)
        elif name == "SEC-DOCUMENT" and (released := _RELEASED.fullmatch(value)):
            self.fields.setdefault("released", released[1])
        elif value and name in _PARTY_FIELDS:
            if not self.parties:
                self.parties.append(("FILER", {}))
            self.parties[-1][1].setdefault(_PARTY_FIELDS[name], value)


def read_header(text: str, locator: str) -> Header:
    """The header's fields; the accession number may also be in the file's name."""
    header = Header()
    lines = text.replace("\r", "\n")
    for name, value in _LINE.findall(lines):
        header.add(name.rstrip(), value.strip(" \t"))
    for name, value in tags(lines):
        header.add(name, value)
    for _, party in header.parties:
        if sic := _SIC.search(party.pop("sic", "")):
            party["sic"] = sic[0]
    if found := _ACCESSION.search(locator):
        header.fields.setdefault("accession", found[0])
    return header


def accepted_at(written: str) -> datetime | None:
    """The moment of an `ACCEPTANCE-DATETIME`, 14 digits in the time of New York; None if it is no such moment."""
    if len(written) != 14 or not (written.isascii() and written.isdigit()):
        return None
    try:
        local = datetime.strptime(written, _ACCEPTED).replace(tzinfo=_new_york(), fold=1)
        moment = local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return moment if is_plausible(moment) else None


def tags(text: str) -> Iterator[tuple[str, str]]:
    """Start tags and what follows them up to the next tag or line."""
    return ((name, html.unescape(value).strip()) for name, value in _TAG.findall(text))


@functools.cache
def _new_york() -> ZoneInfo:
    return ZoneInfo("America/New_York")
