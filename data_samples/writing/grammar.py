"""A small grammar: templates with slots and alternatives, filled from word banks by a seeded scribe.

{city}            a word of the bank of that name, or the fact of that name where the document has one
{n:3-40}          a whole number; {n:1000-9000} is written 4,512
{d:0.2-7.5}       a number with one decimal; {dd:1-3} with two
[rose|fell|sank]  one of the alternatives; they nest
a~ {metal}        "a" or "an", as the next word asks
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

_INNERMOST = re.compile(r"\{([^{}\[\]]+)\}|\[([^{}\[\]]*)\]")
_ARTICLE = re.compile(r"\b([Aa])~ (?=(\W*\w))")
_SENTENCE_START = re.compile(r"(?:^|(?<=[.?!] )|(?<=[.?!]\" )|(?<=\n))(\"?)([a-z])")
_MOST_EXPANSIONS = 400


class Scribe:
    """Writes from templates; the same seed and calls give the same text on any machine and Python version."""

    def __init__(self, seed: str, banks: Mapping[str, Sequence[str]], facts: Mapping[str, str] | None = None) -> None:
        self._random = random.Random(seed)
        self._banks = banks
        self.facts = dict(facts or {})

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included. Only `random()` is used: its sequence is fixed across versions."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, options: Sequence[str]) -> str:
        return options[self.whole(0, len(options) - 1)]

    def deal(self, options: Sequence[str], count: int) -> list[str]:
        """`count` different options in a random order (all of them where there are fewer)."""
        rest = list(options)
        return [rest.pop(self.whole(0, len(rest) - 1)) for _ in range(min(count, len(rest)))]

    def write(self, template: str) -> str:
        """The template with every slot filled and every sentence begun with a capital."""
        for _ in range(_MOST_EXPANSIONS):
            found = _INNERMOST.search(template)
            if found is None:
                break
            slot, choices = found.groups()
            filling = self._fill(slot) if slot is not None else self.pick(choices.split("|"))
            template = template[: found.start()] + filling + template[found.end() :]
        template = _ARTICLE.sub(lambda m: m[1] + ("n " if m[2][-1].lower() in "aeio8" else " "), template)
        return _SENTENCE_START.sub(lambda m: m[1] + m[2].upper(), template)

    def paragraph(self, templates: Sequence[str]) -> str:
        return " ".join(self.write(template) for template in templates)

    def paragraphs(self, templates: Sequence[str], least: int = 2, most: int = 4) -> list[str]:
        """The templates in order, in paragraphs of `least` to `most` sentences."""
        found: list[str] = []
        start = 0
        while start < len(templates):
            size = self.whole(least, most)
            found.append(self.paragraph(templates[start : start + size]))
            start += size
        return found

    def _fill(self, slot: str) -> str:
        name, _, bounds = slot.partition(":")
        if not bounds:
            return self.facts[name] if name in self.facts else self.pick(self._banks[name])
        low, high = (float(bound) for bound in bounds.split("-"))
        if name == "n":
            return f"{self.whole(int(low), int(high)):,}"
        return f"{low + self._random.random() * (high - low):.{len(name)}f}"
