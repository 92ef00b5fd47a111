"""Whole documents of each genre, from the sentences of the other modules."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from writing import law, leisure, markets, passages, press, talk
from writing.banks import BANKS
from writing.grammar import Scribe

#: Words that mean the same to a hurried editor; none of them holds a digit.
_SYNONYMS = {
    "said": "stated", "also": "further", "after": "following", "while": "whereas", "because": "since",
    "about": "roughly",
    "would": "might", "shares": "stock", "more": "rather more", "most": "much", "before": "ahead of", "plans": "means",
    "company": "firm", "group": "firm", "near": "close to", "from": "out of", "will": "shall", "may": "might",
    "mainly": "chiefly", "and": "as well as", "against": "versus", "with": "along with", "was": "had been",
    "but": "yet",
}  # fmt: skip
#: One word in so many is changed: 5-word Jaccard about .88, word edit similarity about .98.
_WORDS_PER_EDIT = 90
_FEWEST_EDITS = 2
_FEWEST_WORDS_TO_EDIT = 200


SUBJECT_NAMES = tuple(markets.SUBJECTS)
#: Passages that one source may use.
_PASSAGES_PER_SOURCE = 8


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    text: str


def finance(seed: str, subject: str, length: int, passage: str | None = None) -> Story:
    """An article about `subject`, of about `length` sentences."""
    scribe = _scribe(seed)
    own = scribe.deal(markets.SUBJECTS[subject], length * 6 // 11)
    second = scribe.pick([name for name in markets.SUBJECTS if name != subject])
    extra = scribe.deal(markets.SUBJECTS[second], 4) + scribe.deal(markets.COLOUR, length - len(own) - 4)
    templates = own[:3] + scribe.deal(own[3:] + extra, length)
    paragraphs = scribe.paragraphs(templates)
    if passage:
        paragraphs.insert(scribe.whole(1, len(paragraphs)), passage)
    return Story(scribe.write(markets.HEADLINES[subject]), "\n\n".join(paragraphs))


def wire(seed: str, subject: str, length: int, passage: str | None = None) -> Story:
    """A first-word item: headlines in capitals, then short paragraphs."""
    story = finance(seed, subject, length, passage)
    scribe = _scribe(f"{seed}/wire")
    flashes = ["*" + scribe.write(markets.HEADLINES[scribe.pick(list(markets.HEADLINES))]).upper() for _ in range(3)]
    head = scribe.write("{city} ([First Word|Market Wire|Desk Note]) -- ")
    tail = scribe.write("-- By {person} in {city}, with help from {person}. Editor: {person}")
    return Story(story.title, "\n\n".join([story.title, "\n".join(flashes), head + story.text, tail]))


def announcement(seed: str, length: int, forward_looking: bool) -> Story:
    """A press release, with or without the shared paragraph on forward-looking statements."""
    scribe = _scribe(seed)
    head = scribe.write("{city}, {country} -- ")
    body = scribe.deal(press.ANNOUNCEMENT, length * 3 // 4) + scribe.deal(markets.EARNINGS, length // 4)
    paragraphs = scribe.paragraphs(body)
    ending = [press.FORWARD_LOOKING] if forward_looking else []
    about = scribe.write(scribe.pick(press.ABOUT))
    contact = scribe.write("Contact: {person}, {role}, {city}, telephone {n:200-899} {n:100-999}")
    title = scribe.write("{co} [announces|reports|presents] [news|results|plans] for {segment} in {city}")
    return Story(title, "\n\n".join([title, head + paragraphs[0], *paragraphs[1:], *ending, about, contact]))


def opinion_of_court(seed: str, length: int) -> Story:
    """A judgment: caption, facts, reasons, order, and sometimes a separate opinion."""
    scribe = _scribe(seed)
    title = scribe.write("{plaintiff} v. {defendant}")
    caption = scribe.write("[Court of Appeal|Supreme Court|Commercial Court] of {country}. No. {n:11-99}-{n:100-999}.")
    facts = scribe.paragraphs(scribe.deal(law.FACTS, length // 3) + scribe.deal(markets.PLACES, 3))
    reasons = scribe.paragraphs(scribe.deal(law.REASONS, length // 2) + scribe.deal(press.RISKS, 3), 2, 3)
    parts = [
        title, caption, scribe.write("{last}, J., delivered the opinion of the court."), *facts, "II", *reasons,
        scribe.write(scribe.pick(law.ENDINGS)), scribe.write(scribe.pick(law.DISSENT)),
    ]  # fmt: skip
    return Story(title, "\n\n".join(parts))


def web_text(seed: str, theme: str, length: int, passage: str | None = None) -> Story:
    """A page of the general web, one full sentence or more a line, as C4's rules like it."""
    scribe = _scribe(seed)
    others = [sentence for name, bank in leisure.THEMES.items() if name != theme for sentence in bank]
    deck = scribe.deal(leisure.THEMES[theme], length // 2)
    deck += scribe.deal(others, length - len(deck))
    lines = scribe.paragraphs(scribe.deal(deck, length), 1, 4)
    if passage:
        lines.insert(scribe.whole(0, len(lines)), passage)
    return Story(scribe.write(f"[notes|letters|lessons] from {{city}}: {theme}"), "\n".join(lines))


def filing_section(seed: str, kind: str, length: int, company: str | None = None) -> Story:
    """The body of a filed document as HTML, with a table of figures; of a `company` of its own where none is given."""
    scribe = _scribe(seed)
    scribe.facts["co"] = company or scribe.facts["co"]
    pools = {"risk": press.RISKS, "discussion": press.DISCUSSION, "event": press.ANNOUNCEMENT}
    deck = scribe.deal(pools[kind], length * 2 // 3) + scribe.deal(press.DISCUSSION + press.RISKS, length // 3)
    heads = {
        "risk": "Item 1A. Risk Factors",
        "discussion": "Item 7. Discussion and Analysis",
        "event": "Item 8.01 Other Events",
    }
    paragraphs = scribe.paragraphs(deck)
    title, rows = press.table(scribe, scribe.whole(4, 9))
    cells = "\n".join(f"<tr><td>{'</td><td>'.join(_escape(cell) for cell in row)}</td></tr>" for row in rows)
    table = f"<p>{_escape(title)}</p>\n<table>\n{cells}\n</table>"
    body = "\n".join(f"<p>{_escape(text)}</p>" for text in paragraphs)
    ending = f"<p>{press.FORWARD_LOOKING}</p>" if kind == "discussion" else ""
    co = scribe.facts["co"]
    html = (
        f"<html><head><title>{_escape(co)}</title></head><body>\n<h2>{_escape(co)}</h2>\n<h3>{heads[kind]}</h3>\n"
        f"{body}\n{table}\n{ending}\n</body></html>"
    )
    return Story(co, html)


def list_of_subsidiaries(seed: str) -> Story:
    """A plain-text exhibit."""
    scribe = _scribe(seed)
    rows = [
        scribe.write("{firm}").ljust(42) + scribe.write("{country}").ljust(24) + scribe.write("{n:51-100} percent")
        for _ in range(18)
    ]
    notes = scribe.paragraphs(scribe.deal(markets.HISTORY, 6), 2, 3)
    return Story("Subsidiaries", "\n".join(["SUBSIDIARIES OF THE REGISTRANT", "", *rows, "", *notes]))


def thread(seed: str, number: int) -> Story:
    snippet = talk.SNIPPETS[number]
    return Story(snippet[0], talk.thread(_scribe(seed), snippet))


def chat(seed: str, num_lines: int) -> Story:
    return Story("chat", talk.chat(_scribe(seed), num_lines))


def edited(text: str, seed: str) -> str:
    """The text as a hurried editor leaves it: one word in `_WORDS_PER_EDIT` differs, no figure does.

    Raises: ValueError for a text that is too short to stay a near duplicate.
    """
    scribe = _scribe(seed)
    words = text.split(" ")
    if len(words) < _FEWEST_WORDS_TO_EDIT:
        raise ValueError(f"{len(words)} words are too few to be edited: expected {_FEWEST_WORDS_TO_EDIT} or more")
    places = [str(place) for place, word in enumerate(words) if word in _SYNONYMS]
    for place in scribe.deal(places, max(_FEWEST_EDITS, len(words) // _WORDS_PER_EDIT)):
        words[int(place)] = _SYNONYMS[words[int(place)]]
    return " ".join(words)


def financial_passage(number: int, every: int, first: int) -> str | None:
    """The passages from `first` on, one for each document whose number is a multiple of `every`, while they last."""
    is_due = number % every == 0 and number // every < _PASSAGES_PER_SOURCE
    return passages.FINANCE[first + number // every] if is_due else None


def ascii_only(text: str) -> str:
    """Without accents, for the format that is older than Unicode."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _scribe(seed: str) -> Scribe:
    scribe = Scribe(seed, BANKS)
    for fact in ("co", "target", "plaintiff", "defendant"):
        scribe.facts[fact] = scribe.write("{firm}")
    return scribe
