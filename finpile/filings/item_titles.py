"""The items of Forms 10-K, 10-Q and 8-K in the order of the form, with patterns of their titles.

Titles have changed; a pattern has the words of all versions since 1993, which distinguishes a heading from a
sentence that begins with `Item 7`. Parts are in the names of items of Form 10-Q, whose numbers repeat: `I.1`, `II.1A`.

Source: Form 10-K, Form 10-Q, Form 8-K, https://www.sec.gov/forms; SEC Releases 33-8400 (items of Form 8-K since August
2004), 33-8176 (Item 12 of Form 8-K), 33-8591 (Item 1A and 1B), 33-11216 (Item 1C, and 1.05 of Form 8-K).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

_10K = {
    "1": "(description of )?(the )?business|general",
    "1A": "risk factors",
    "1B": "unresolved staff",
    "1C": "cyber ?security",
    "2": "(description of )?propert",
    "3": "legal (proceedings|matters)",
    "4": "submission of matters|mine safety|executive officers",
    "4A": "(information (about|regarding|concerning) )?(our )?executive officers",
    "5": "market (for|price|information)|(the )?(registrant|company)'?s'? common|common (stock|equity)",
    "6": "(selected|consolidated|summary)( \\S+){0,4} (data|information)|selected",
    "7": "management'?s'?,? (discussion|analysis)|discussion and analysis|financial review",
    "7A": "(quantitative|qualitative|disclosures? about market|market risk)",
    "8": "(consolidated )?financial statements|(consolidated )?statements and supplementary",
    "9": "changes in|(changes and )?disagreements",
    "9A": "(disclosure )?controls and procedures|controls",
    "9B": "other information",
    "9C": "disclosures? regarding foreign",
    "10": "(information (about|regarding|concerning) )?(our )?(directors|executive officers|board)",
    "11": "(executive|management|director) compensation|compensation|remuneration",
    "12": "(security|securities) ownership|(stock )?ownership",
    "13": "(certain )?(relationships|transactions)|certain",
    "14": "(principal|independent) (account|audit)|(principal )?audit|exhibits?|controls and procedures|financial st",
    "15": "exhibits?|(consolidated )?financial st|(principal|independent) (account|audit)",
    "16": "form 10 ?-? ?k summary|summary|exhibits?",
}

_10Q = {
    "I.1": "(condensed |consolidated |interim |unaudited )*(financial statements|financial information)",
    "I.2": "management'?s'?,? (discussion|analysis)|discussion and analysis",
    "I.3": "(quantitative|qualitative|disclosures? about market|market risk)",
    "I.4": "(disclosure )?controls and procedures|controls",
    "II.1": "legal (proceedings|matters)",
    "II.1A": "risk factors",
    "II.2": "(unregistered|changes in|recent) |(issuer )?(purchases|repurchases)",
    "II.3": "defaults",
    "II.4": "submission of matters|mine safety",
    "II.5": "other (information|events|matters)",
    "II.6": "exhibits?",
}

_8K = {
    "1": "changes? (in|of) control",
    "2": "(acquisition|disposition)",
    "3": "bankruptcy|receivership",
    "4": "changes? in( the)?( registrant'?s'?)?( company'?s'?)?( independent)?( public)?( certifying)? ?account",
    "5": "other (events|materially|information|items|matters)|regulation fd",
    "6": "resignations? of",
    "7": "(consolidated )?financial (statements|information)|exhibits?|pro forma",
    "8": "changes? in( the)? fiscal",
    "9": "(regulation|reg\\.?) fd|sales of equity|information (furnished|provided|being)|disclosure",
    "10": "amendments? to( the)?( registrant'?s'?)? code|code of ethics",
    "11": "temporary suspension",
    "12": "(disclosure of )?(results|public|announcement|financial)|disclosure",
    "1.01": "entry into|material definitive",
    "1.02": "termination of",
    "1.03": "bankruptcy|receivership",
    "1.04": "mine safety",
    "1.05": "material cyber ?security",
    "2.01": "(completion|acquisition)",
    "2.02": "(disclosure of )?results? of|announcement of",
    "2.03": "creation of",
    "2.04": "triggering",
    "2.05": "costs? associated",
    "2.06": "(material )?impairment",
    "3.01": "notice of|(receipt of )?(notice )?delisting|transfer of listing",
    "3.02": "unregistered|sales? of",
    "3.03": "(material )?modifications?",
    "4.01": "changes? in",
    "4.02": "non ?-? ?reliance",
    "5.01": "changes? in control",
    "5.02": "(departures?|election|appointment|resignation|compensatory|retirement)",
    "5.03": "(amendments?|changes? in fiscal)",
    "5.04": "temporary suspension",
    "5.05": "amendments?",
    "5.06": "changes? in shell",
    "5.07": "submission of",
    "5.08": "shareholder (director )?nominations?",
    "6.01": "abs ",
    "6.02": "change of (servicer|trustee)",
    "6.03": "change in credit",
    "6.04": "failure to",
    "6.05": "securities act",
    "6.06": "static pool",
    "7.01": "(regulation|reg\\.?) ?fd",
    "8.01": "other",
    "9.01": "(consolidated )?financial (statements?|information)|exhibits?",
}
#: Titles that any item can have.
_ANY = "\\[?\\(?(removed|reserved|intentionally omitted)"

_FORMS = (
    (re.compile(r"10-KT?(405)?(/A)?", re.IGNORECASE), _10K),
    (re.compile(r"10-QT?(/A)?", re.IGNORECASE), _10Q),
    (re.compile(r"8-K(12B|12G3|15D5)?(/A)?", re.IGNORECASE), _8K),
)


@functools.lru_cache(maxsize=64)
def titles_of(form_type: str) -> Mapping[str, re.Pattern[str]] | None:
    """The items of a form in its order, with the patterns of their titles; None for a form without known items."""
    found = next((titles for pattern, titles in _FORMS if pattern.fullmatch(form_type)), None)
    if found is None:
        return None
    return {name: re.compile(f"(?:{title}|{_ANY})") for name, title in found.items()}


def known_titles() -> tuple[Mapping[str, re.Pattern[str]], ...]:
    """The items of all forms."""
    return tuple(titles for form in ("10-K", "10-Q", "8-K") if (titles := titles_of(form)) is not None)


#: What the header of a submission calls the items of Form 8-K since August 2004 -> their numbers.
_DECLARED = {
    "entry into": "1.01", "termination of a": "1.02", "completion of acquisition": "2.01",
    "results of operations": "2.02", "creation of": "2.03", "triggering": "2.04", "cost": "2.05",
    "material impairment": "2.06", "notice of delisting": "3.01", "unregistered sale": "3.02",
    "material modification": "3.03", "changes in registrant's certifying": "4.01", "non-reliance": "4.02",
    "changes in control of registrant": "5.01", "departure of": "5.02", "amendments to articles": "5.03",
    "temporary suspension": "5.04", "submission of matters": "5.07", "regulation fd": "7.01", "other events": "8.01",
    "financial statements and exhibits": "9.01",
}  # fmt: skip


def declared_number(written: str) -> str | None:
    """The number of an item of Form 8-K since 2004 as the header of a submission has it, a number or a title."""
    if re.fullmatch(r"\d\.\d\d", written):
        return written
    lower = written.lower()
    return next((number for title, number in _DECLARED.items() if lower.startswith(title)), None)
