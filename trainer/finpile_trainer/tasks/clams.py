"""CLAMS: minimal pairs of several languages.

Source: Mueller et al. 2020, "Cross-Linguistic Syntactic Evaluation of Word Prediction Models", whose English part has
the sets of Marvin and Linzen 2018.
"""

from __future__ import annotations

from pathlib import Path

from finpile.errors import InputError
from finpile_trainer.evaluation.minimal_pairs import Pair, PairSet, pair_task

#: Ends of the name of a folder: `en_evalset`.
_FOLDER = "_evalset"


def read_set(path: str, text: str) -> PairSet:
    """Lines `True<TAB>sentence` and `False<TAB>sentence` in turn: a pair."""
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    if (
        not lines
        or len(lines) % 2
        or any(
            [good[0], bad[0]] != ["True", "False"] or len(good) != 2 or len(bad) != 2
            for good, bad in zip(lines[::2], lines[1::2], strict=False)
        )
    ):
        raise InputError(
            f"{path}: is not a file of CLAMS; expected lines of True and False in turn, a tab, and a sentence"
        )
    pairs = tuple(Pair(good[1].strip(), bad[1].strip()) for good, bad in zip(lines[::2], lines[1::2], strict=True))
    where = Path(path)
    return PairSet(where.parent.name.removesuffix(_FOLDER), where.stem, pairs)


TASK = pair_task("clams", 2, suffix=".txt", read_set=read_set, group="Language", kind="Test")
