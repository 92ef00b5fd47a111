"""Facts of Inline XBRL in `meta`, and how many of their figures a text has.

`meta.xbrl_facts` is a list of objects:

| key        | meaning                                                                                    |
|------------|--------------------------------------------------------------------------------------------|
| name       | the concept with its prefix: `us-gaap:Revenues`                                            |
| figure     | as the page shows it: `1,234`, `(0.5)` without its brackets; empty for nil                 |
| value      | the number that it reports, sign and scale applied, as a decimal: `-1234000000`; if known  |
| unit       | `USD`, `shares`, `USD/shares`, ...                                                         |
| period     | a day, or the first and the last day: `2024-01-01/2024-12-31`                              |
| dimensions | axes and members, if there are any                                                         |
| hidden     | true for a fact that no reader sees                                                        |

`meta.xbrl_texts` has the text facts, such as the registrant's name, the boxes of a cover page and the blocks of notes:
`name`, `period`, `dimensions` and `hidden` as above, and

| key        | meaning                                                                                    |
|------------|--------------------------------------------------------------------------------------------|
| text       | as the page shows it, of at most 256 characters with single spaces                         |
| length     | instead of a longer text, the characters between its tags: the text itself is the document |
| value      | `true` or `false`, of a box                                                                |

A figure is found in a text if the text has it as a number of its own: `234` is not in `1,234` or `2345`. Facts that are
hidden, or whose figure has no digit (a dash for zero, a number in words), do not count.

Source: Inline XBRL 1.1, https://www.xbrl.org/specification/inlinexbrl-part1/rec-2013-11-18/inlinexbrl-part1-rec-2013-11-18.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

#: The keys of numeric and of text facts in `meta`.
FACTS = "xbrl_facts"
TEXT_FACTS = "xbrl_texts"

_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")


def figures(facts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The figures that a text should have: those that are shown and have a digit."""
    shown = (str(fact.get("figure", "")) for fact in facts if not fact.get("hidden"))
    return [found[0] for figure in shown if (found := _NUMBER.search(figure))]


def divide_facts(facts: Iterable[Mapping[str, Any]], texts: Sequence[str]) -> list[list[Mapping[str, Any]]]:
    """The facts of a document by its parts: each is with the first text that has its figure, else with the first."""
    numbers = [set(_NUMBER.findall(text)) for text in texts]
    divided: list[list[Mapping[str, Any]]] = [[] for _ in texts]
    for fact in facts:
        wanted = figures([fact])
        place = next((place for place, found in enumerate(numbers) if wanted and wanted[0] in found), 0)
        divided[place].append(fact)
    return divided


def num_found(wanted: Iterable[str], text: str) -> int:
    """How many of the figures the text has as numbers of their own."""
    numbers = set(_NUMBER.findall(text))
    return sum(figure in numbers for figure in wanted)


def fact_counts(documents: pa.RecordBatch | pa.Table) -> dict[str, int]:
    """`facts` and `facts_found`: the figures of all documents, and those found in their texts; empty without any."""
    with_facts = pc.match_substring(documents["meta"], f'"{FACTS}"')
    if not pc.any(with_facts).as_py():
        return {}
    chosen = documents.select(["text", "meta"]).filter(with_facts)
    counts = {"facts": 0, "facts_found": 0}
    for text, meta in zip(chosen["text"], chosen["meta"], strict=True):
        wanted = figures(json.loads(meta.as_py()).get(FACTS, ()))
        counts["facts"] += len(wanted)
        counts["facts_found"] += num_found(wanted, text.as_py())
    return counts
