"""The judgements of a person: OUT/audit/judgements.jsonl, one JSON object on a line for each answer.

    {"answer": "yes", "id": ..., "stage": "near", "start": null, "end": null, "other": ..., "shown": ...}

`answer` is whether the removal is right, or whether one of the two documents of a pair should have been removed. Lines
are appended and synced before the page is told, and the last answer about an item counts. An answer counts only for an
item with the same document, stage, span, kept copy and digest of what was shown: those about another build stay in the
file and do not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from finpile import storage
from finpile.audit.sample import Item
from finpile.errors import InputError

_BOUND = ("kind", "id", "stage", "start", "end", "other", "shown")
_ANSWERS = {"yes": True, "no": False}

Answers = dict[str, bool]
"""By the digest `shown` of an item: whether the answer is yes."""


def read_answers(url: str, items: Sequence[Item]) -> Answers:
    """The answers about these items. A last line without its end was never confirmed to the page, and is left out.

    Raises: InputError for a line that is not a judgement.
    """
    if not storage.is_file(url):
        return {}
    bound = {_key(_row(item)): item.shown for item in items}
    found: Answers = {}
    *lines, _ = storage.read_bytes(url).split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
            key, answer = _key(row), _ANSWERS[row["answer"]]
        except (ValueError, TypeError, LookupError, RecursionError):
            raise InputError(
                f"{url}:{number} is not a judgement: restore the file, or delete this line, and run the command again"
            ) from None
        if key in bound:
            found[bound[key]] = answer
    return found


def append_answer(path: Path, item: Item, answer: str) -> bool:
    """Appends an answer, `yes` or `no`, and returns whether it is yes; several processes may append at a time.

    Raises: InputError for another answer; OSError if the file cannot be written, which then has no such line.
    """
    if answer not in _ANSWERS:
        raise InputError(f"the answer is {answer!r}: give yes or no")
    storage.append_line(str(path), json.dumps({"answer": answer, **_row(item)}).encode())
    return _ANSWERS[answer]


def _row(item: Item) -> dict[str, Any]:
    return {name: getattr(item, name) for name in _BOUND}


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    key = tuple(row[name] for name in _BOUND)
    hash(key)
    return key
