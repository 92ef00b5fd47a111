"""Applying filters to a text, one after the other, and mapping their spans to the text that the first one received."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from finpile.documents.blank import is_blank
from finpile.plugins.filter import Filter, Rejection, Span


def apply_all(
    filters: Sequence[tuple[Filter, Any]],
    text: str,
    facts: MutableMapping[str, Any] | None = None,
    url: str | None = None,
) -> Rejection | list[Span]:
    """Applies filters, each with its parameters, to what the filters before it left of the text.

    Returns the first rejection, or all spans in characters of `text`, in ascending order, without overlaps. `facts`
    gets what the filters measured for `meta`; `url` is that of the document.

    Raises: ValueError for a reason that is none of the filter's.
    """
    taken: list[Span] = []
    for rules, parameters in filters:
        left = without(text, taken)
        if taken and is_blank(left):  # nothing that a rule could measure
            return taken
        by_url = rules.check_url(url, parameters) if rules.check_url is not None and url else None
        found = by_url or rules.apply(left, parameters)
        for reason in {found.reason} if isinstance(found, Rejection) else {span.reason for span in found}:
            if reason not in rules.reasons:
                raise ValueError(
                    f"{reason!r} is not a reason of filter {rules.name}; known: {', '.join(rules.reasons)}"
                )
        if isinstance(found, Rejection):
            return found
        if facts is not None and rules.facts is not None:
            facts.update(rules.facts(left, parameters))
        taken = _merged(taken, found)
    return taken


def without(text: str, spans: Sequence[Span]) -> str:
    """The text without the spans, with their masks in their places."""
    if not spans:
        return text
    starts = [0, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), len(text)]
    masks = ["", *(span.mask for span in spans)]
    return "".join(mask + text[start:end] for mask, start, end in zip(masks, starts, ends, strict=True))


def byte_spans(text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans, given in characters of `text`, in bytes of its UTF-8."""
    if text.isascii():
        return list(spans)
    found, at, at_bytes = [], 0, 0
    for start, end, reason, mask in spans:
        start_bytes = at_bytes + len(text[at:start].encode())
        at, at_bytes = end, start_bytes + len(text[start:end].encode())
        found.append(Span(start_bytes, at_bytes, reason, mask))
    return found


def _merged(taken: Sequence[Span], found: Sequence[Span]) -> list[Span]:
    """Spans `taken` of a text, and those `found` in what they left, as spans of that text.

    A found span with taken ones inside becomes several, around them, of which the first has its mask. Taken spans have
    none.
    """
    merged = list(taken)
    shift, next_hole = 0, 0  # characters taken before the position, and the first hole after it
    for start, end, reason, mask in found:
        while start < end:
            while next_hole < len(taken) and taken[next_hole].start <= start + shift:
                shift += taken[next_hole].end - taken[next_hole].start
                next_hole += 1
            limit = taken[next_hole].start - shift if next_hole < len(taken) else end
            merged.append(Span(start + shift, min(end, limit) + shift, reason, mask))
            start, mask = min(end, limit), ""
    return sorted(merged)
