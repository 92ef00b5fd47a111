"""Templates by hand: documents in order of time, and a dictionary of the texts that have each line and paragraph."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile

from finpile.config import TemplatesConfig
from finpile.documents.document import text_digest

_WHITE = re.compile("[ \\t\\r\\v\\f\xa0]+")


@dataclass(frozen=True)
class Doc:
    """A document; without a `time` it is later than all that have one."""

    text: str
    group: str | None = "a"
    time: int | None = 0

    @property
    def order(self) -> tuple[bool, int, bytes]:
        return self.time is None, self.time or 0, text_digest(self.text.encode())


def cut_by_hand(docs: Sequence[Doc], config: TemplatesConfig) -> list[str]:
    """The texts after the cuts, before short ones are removed."""
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    left = [doc.text for doc in docs]
    grouped = sorted((doc for doc in enumerate(docs) if doc[1].group is not None), key=lambda doc: doc[1].order)
    for _, part in groupby(grouped, key=lambda doc: doc[1].order):
        same = list(part)  # equal texts of one time: none is earlier than another
        for number, doc in same:
            left[number] = _cut(doc, seen, config)
        for _, doc in same:
            words = list(map(_fold, doc.text.split("\n")))
            paragraphs = [" ".join(lines) for is_text, lines in groupby(words, bool) if is_text]
            for block in {*paragraphs, *words} - {""}:
                seen[str(doc.group), block].add(doc.text)
    return left


def _fold(line: str) -> str:
    return _WHITE.sub(" ", line).strip(" ")


def _cut(doc: Doc, seen: Mapping[tuple[str, str], set[str]], config: TemplatesConfig) -> str:
    def kind(block: str) -> str:
        """`long` or `short` for a template."""
        if len(seen.get((str(doc.group), block), ())) < config.min_documents:
            return ""
        if any(character in "0123456789" for character in block) and len(block) < 2 * config.min_block_chars:
            return ""
        has_letter = any(character > "\x7f" or character.isalpha() for character in block)
        return "long" if len(block) >= config.min_block_chars and has_letter else "short"

    lines = doc.text.split("\n")
    words = list(map(_fold, lines))
    kinds: list[str] = []
    for is_text, part in groupby(words, bool):
        some = list(part)
        whole = kind(" ".join(some)) if is_text else ""
        kinds += [min(whole, kind(line), key=["long", "short", ""].index) if is_text else "" for line in some]
    return _without(lines, words, kinds)


def _continues(lines: Sequence[str], words: Sequence[str], before: int, after: int) -> bool:
    """Whether a line continues the one before it; both have words."""
    if after > before + 1:
        return False
    paragraph = [number for number in range(len(lines)) if all(words[min(number, after) : max(number, after) + 1])]
    is_indented = any(len(_indent(lines[number]).replace("\t", "  ")) > 1 for number in paragraph)
    return "a" <= words[after][0] <= "z" or (is_indented and not _indent(lines[after]))


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\r\v\f\xa0"))]


def _without(lines: Sequence[str], words: Sequence[str], kinds: Sequence[str]) -> str:
    """The lines that stay, with their line feeds: of two runs of them, the longer, or else the first."""
    full = [number for number, text in enumerate(words) if text]
    head = len(list(takewhile(lambda number: kinds[number], full)))
    tail = len(list(takewhile(lambda number: kinds[number], reversed(full))))
    edge = {*full[:head], *full[len(full) - tail :]}
    gone = {number for number in full if kinds[number] == "long" or number in edge}
    pairs = [(before, after) for before, after in pairwise(full) if _continues(lines, words, before, after)]
    for before, after in pairs:
        gone -= {after} if before not in gone else set()
    for before, after in reversed([pair for pair in pairwise(full) if pair in pairs or words[pair[0]][-1] == ":"]):
        gone -= {before} if after not in gone else set()
    if not gone:
        return "\n".join(lines)
    kept = [number for number in full if number not in gone]
    if not kept:
        return ""
    text = "\n".join(lines[: kept[0] + 1]) if kept[0] == full[0] else lines[kept[0]]
    for before, after in pairwise(kept):
        between = [number for number in full if before < number < after]
        last, first = (between[-1], between[0]) if between else (before, after)
        gap = lines[before + 1 : first] if first - before >= after - last else lines[last + 1 : after]
        text += "\n" + "".join(f"{line}\n" for line in gap) + lines[after]
    rest = lines[kept[-1] + 1 :]
    return text + "".join(f"\n{line}" for line in rest) if kept[-1] == full[-1] else text
