"""BLiMP: minimal pairs of English, by linguistic term. Source: Warstadt et al. 2020."""

from __future__ import annotations

import json

from finpile.errors import InputError
from finpile_trainer.evaluation.minimal_pairs import Pair, PairSet, pair_task

#: A term of two files that the paper counts among the nine of another one.
_TERMS = {"s-selection": "argument_structure"}


def read_set(path: str, text: str) -> PairSet:
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        pairs = tuple(Pair(row["sentence_good"], row["sentence_bad"]) for row in rows)
        term = rows[0]["linguistics_term"]
        return PairSet(_TERMS.get(term, term), rows[0]["UID"], pairs)
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path}: is not a file of BLiMP ({error!r}); expected its JSON lines") from error


TASK = pair_task("blimp", 1, suffix=".jsonl", read_set=read_set, group="Term", kind="Phenomenon")
