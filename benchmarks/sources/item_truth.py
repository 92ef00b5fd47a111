"""Where the items of a report begin, by the links of its table of contents, and by a reader where those do not say.

Nothing here is shared with `finpile.filings`. A row of the contents that begins with an item's number has a link to the
item's section; the section begins at the heading (`Item 7A`) in the first words after the link's target, or at the
target if there is none. Sections end where the next one begins, or at the signatures. A reader has labelled the items
whose links are missing or lead elsewhere: `item_labels.json` has the first words of their sections.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from resiliparse.parse.html import HTMLTree, NodeType

from benchmarks.sources.table_truth import visit

_LABELS = Path(__file__).with_name("item_labels.json")
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_NEVER_SHOWN = frozenset(("ix:header", "script", "style"))
_BLOCKS = frozenset(("br", "div", "h1", "h2", "h3", "h4", "li", "p", "table", "td", "th", "tr"))
_ENTRY = re.compile(
    r"(?:\d{1,3} )?(?:part (?P<part>[iv]+)[\s.,:\u2014-]*)?(?:\d{1,3} )?(?:item ?\.? ?)?"
    r"(?P<number>\d|1[0-6]) ?(?P<letter>[abc](?![a-z]))?[\s.:\u2014\u2013-]+[a-z\[(]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z0-9]+")
#: Words between a link's target and the heading, such as those at the top of a page.
_MAX_BEFORE = 24
SIGNATURES = "signatures"


def words_of(text: str) -> list[str]:
    """Its words of letters and digits, in lower case."""
    return _WORD.findall(text.lower())


class _Page:
    """The visible texts of a page, its anchors, and its links with the text of their row."""

    def __init__(self, page: str) -> None:
        self.texts: list[str] = []
        self.anchors: dict[str, int] = {}
        self.links: list[tuple[int, str]] = []
        """Where a link begins among the texts, and its target."""
        self.rows: list[tuple[int, int]] = []
        """Rows of tables with links, and blocks with links outside of tables."""
        self._hidden: Any = None
        self._open: list[tuple[str, int]] = []
        self._has_link: set[int] = set()
        visit(HTMLTree.parse(page).body, self._start, self._end)

    def _start(self, node: Any) -> None:
        if node.type == NodeType.TEXT and self._hidden is None:
            self.texts.append(node.value or "")
        if node.type != NodeType.ELEMENT:
            return
        for name in ("id", "name"):
            if node.hasattr(name):
                self.anchors.setdefault(node.getattr(name), len(self.texts))
        if self._hidden is not None:
            return
        is_hidden = node.hasattr("style") and _HIDDEN.search(node.getattr("style"))
        if node.tag in _NEVER_SHOWN or is_hidden:
            self._hidden = node
        elif node.tag in _BLOCKS:
            self.texts.append(" ")
        self._open.append((node.tag, len(self.texts)))
        if node.tag == "a" and node.hasattr("href") and node.getattr("href").startswith("#"):
            self.links.append((len(self.texts), node.getattr("href")[1:]))
            tags = [tag for tag, _ in self._open]
            rows = [at for at, tag in enumerate(tags) if tag == "tr" or ("tr" not in tags and tag in ("p", "div"))]
            self._has_link.update(rows[-1:])

    def _end(self, node: Any) -> None:
        if node.type != NodeType.ELEMENT:
            return
        if self._hidden is not None and node != self._hidden:
            return
        if node.tag in _BLOCKS and self._hidden is None:
            self.texts.append(" ")
        self._hidden = None
        _, start = self._open.pop()
        if len(self._open) in self._has_link:
            self._has_link.remove(len(self._open))
            self.rows.append((start, len(self.texts)))

    def entries(self) -> Iterator[tuple[str, int]]:
        """The text of each row with links to later places, and the target of the last one."""
        for start, end in sorted(self.rows):
            targets = [self.anchors.get(name, -1) for at, name in self.links if start <= at < end]
            if found := [target for target in targets if target > end]:
                yield " ".join("".join(self.texts[start:end]).split()), found[-1]


def _linked(page: _Page, form: str) -> dict[str, int]:
    """Where the items begin among the texts, by links."""
    found: dict[str, int] = {}
    part, before = "I", -1
    for label, target in page.entries():
        if label.lower().startswith("signature"):
            found.setdefault(SIGNATURES, target)
        entry = _ENTRY.match(label)
        if entry is None or SIGNATURES in found:
            continue
        letter = (entry["letter"] or "").upper()
        name = entry["number"] + letter
        if form == "10-Q":
            rank = 4 * int(entry["number"]) + "-ABC".find(letter or "-")
            part = (entry["part"] or ("II" if rank < before else part)).upper()
            name, before = f"{part}.{name}", rank
        found.setdefault(name, target)
    return found


def read_items(name: str, page: str, form: str) -> tuple[dict[str, list[str]], set[str]]:
    """The words of each item's section, and the items that a reader has labelled."""
    read = _Page(page)
    words, places = [], [0]
    for text in _joined(read.texts):
        words += words_of(text)
        places.append(len(words))
    starts = {item: _heading(words, places[at], item) for item, at in _linked(read, form).items()}
    labels: dict[str, str] = json.loads(_LABELS.read_text())["reports"].get(name, {})
    for item, first in labels.items():
        starts[item] = _place(words, words_of(first), name)
    starts.setdefault(SIGNATURES, _signatures(words, max(starts.values(), default=0)))
    order = sorted(starts.items(), key=lambda start: start[1])
    ends = [*(start for _, start in order[1:]), len(words)]
    sections = {item: words[start:end] for (item, start), end in zip(order, ends, strict=True) if item != SIGNATURES}
    return sections, set(labels) - {SIGNATURES}


def _joined(texts: list[str]) -> Iterator[str]:
    """The texts, divided between words: the beginning of a divided word is moved to the next text."""
    rest = ""
    for text in texts:
        whole = rest + text
        cut = len(whole) - len(re.search(r"\w*\Z", whole)[0])  # type: ignore[index]
        yield whole[:cut]
        rest = whole[cut:]
    yield rest


def _heading(words: list[str], at: int, item: str) -> int:
    name = item.rpartition(".")[2].lower()
    for place in range(at, at + _MAX_BEFORE):
        if words[place : place + 2] == ["item", name] or words[place : place + 3] == ["item", name[:-1], name[-1]]:
            return place
        if item == SIGNATURES and words[place : place + 1] in (["signatures"], ["signature"]):
            return place
    return at


def _signatures(words: list[str], at: int) -> int:
    """Where the signatures begin after a place, or the end."""
    law = ["pursuant", "to", "the", "requirements", "of"]
    found = (place for place in range(at, len(words)) if words[place : place + 5] == law)
    end = next(found, len(words))
    return next((place for place in range(end, end - 6, -1) if words[place : place + 1] == ["signatures"]), end)


def _place(words: list[str], first: list[str], name: str) -> int:
    found = [at for at in range(len(words)) if words[at : at + len(first)] == first]
    if len(found) != 1:
        raise ValueError(f"{name}: {' '.join(first)!r} occurs {len(found)} times")
    return found[0]
