"""Words of a corpus: how often each occurs in each source, exactly.

A word is a string between white space or punctuation (`string.punctuation` of Python).

Source: GPT-NeoX-20B (Black et al. 2022), appendix E.1.2.
"""

from __future__ import annotations

import re
import string
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import Label

#: Rows that wait until they are added up with those before them.
_PENDING_ROWS = 1 << 20


@cache
def white_space() -> str:
    """The white space of `str.isspace`, which RE2 has no class for, as the content of a class in brackets."""
    return "".join(rf"\x{{{code:X}}}" for code in range(sys.maxunicode + 1) if chr(code).isspace())


class WordCounts:
    """Counts the words of texts by source. Memory is that of the distinct words of each source."""

    def __init__(self) -> None:
        self._separators = f"[{white_space()}{re.escape(string.punctuation)}]+"
        self._counts: dict[Label, pa.Table] = {}
        self._pending: defaultdict[Label, list[pa.Table]] = defaultdict(list)

    def watch(self, texts: Iterable[tuple[str, str, pa.Array]]) -> Iterator[tuple[str, str, pa.Array]]:
        """Counts the words of `(dataset, source, texts)`, and yields each unchanged."""
        for dataset, source, array in texts:
            self.add((dataset, source), array)
            yield dataset, source, array

    def add(self, source: Label, texts: pa.Array) -> None:
        """Counts the words of a large_string array."""
        counted = pc.value_counts(pc.split_pattern_regex(texts, self._separators).flatten())
        words, counts = counted.flatten()
        self._pending[source].append(pa.table({"word": words, "count": counts}).filter(pc.field("word") != ""))
        known = self._counts[source].num_rows if source in self._counts else 0
        if sum(table.num_rows for table in self._pending[source]) > max(known, _PENDING_ROWS):
            self._add_up(source)

    def frequent(self, sources: Iterable[Label], least: int) -> dict[str, int]:
        """The words that occur at least `least` times in these sources together, in order, with their counts."""
        tables = []
        for source in sources:
            self._add_up(source)
            tables.append(self._counts[source])
        table = _added(tables).filter(pc.field("count") >= least).sort_by("word")
        return dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))

    def _add_up(self, source: Label) -> None:
        known = [self._counts[source]] if source in self._counts else []
        self._counts[source] = _added([*known, *self._pending.pop(source, [])])


def _added(tables: list[pa.Table]) -> pa.Table:
    summed = pa.concat_tables(tables).group_by("word").aggregate([("count", "sum")])
    return summed.rename_columns({"count_sum": "count"})
