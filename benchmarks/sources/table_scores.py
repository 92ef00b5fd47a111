"""How many figures of a page a text has, with their sign, in the line of their row, and under their heads.

One scorer for all tools. Texts are compared by their letters and digits, in lower case.

- figures: the multiset of signed figures of the page in that of the text;
- rows: figures in a line that has the row's label; a line counts for one row of the page, and each of its figures for
  one figure;
- lowest head and all heads: figures in a cell of a Markdown or pipe table whose column has the head, or all heads, in a
  row above.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.sources.table_truth import FIGURE, Figure, Row, Truth, signed

_OTHER = re.compile(r"[\W_]+")
_PIPE = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:\-]*-[\s|:\-]*")


@dataclass(slots=True)
class Score:
    """Numbers of figures. `num_heads` are those that have heads, `num_levels` those that have several."""

    num_figures: int = 0
    num_found: int = 0
    num_in_rows: int = 0
    num_in_line: int = 0
    num_heads: int = 0
    num_lowest: int = 0
    num_levels: int = 0
    num_all: int = 0

    def add(self, other: Score) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


def squashed(text: str) -> str:
    """Its letters and digits, in lower case."""
    return _OTHER.sub("", text).lower()


def figures_of(text: str) -> Counter[str]:
    """The signed figures of a text."""
    return Counter(signed(match) for match in FIGURE.finditer(text))


def score(truth: Truth, text: str, misses: list[str] | None = None) -> Score:
    """Compares a text with the page; `misses` gets a line for each figure that is not in its row or under its heads."""
    found = Score(num_figures=len(truth.figures))
    found.num_found = (Counter(truth.figures) & figures_of(text)).total()
    lines = text.split("\n")
    _score_rows(truth.rows, lines, found, misses)
    _score_columns(truth.rows, list(read_grids(lines)), found, misses)
    return found


def _score_rows(rows: Sequence[Row], lines: Sequence[str], found: Score, misses: list[str] | None) -> None:
    with_figure: Mapping[str, list[int]] = _by_figure(lines)
    squashed_lines = [squashed(line) for line in lines]
    figures = [figures_of(line) for line in lines]
    used: set[int] = set()
    for row in rows:
        values, label = Counter(figure.value for figure in row.figures), squashed(row.label)
        found.num_in_rows += values.total()
        candidates = {line for value in values for line in with_figure.get(value, ()) if line not in used}
        named = [line for line in candidates if label in squashed_lines[line]]
        best = max(named, key=lambda line: ((values & figures[line]).total(), -line), default=None)
        if best is not None:
            used.add(best)
            matched = (values & figures[best]).total()
            found.num_in_line += matched
            values -= figures[best]
        if misses is not None:
            misses += [f"row: {row.label[:60]!r}: {value}" for value in values.elements()]


def _by_figure(lines: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        for value in figures_of(line):
            found[value].append(number)
    return found


@dataclass(slots=True)
class Grid:
    """The cells of a Markdown or pipe table, as they are and squashed."""

    rows: list[list[str]]
    squashed: list[list[str]]


def read_grids(lines: Sequence[str]) -> Iterator[Grid]:
    """Runs of lines with pipes, without rules."""
    rows: list[list[str]] = []
    for line in [*lines, ""]:
        if "|" in line:
            if not _RULE.fullmatch(line):
                cells = _PIPE.split(line.strip())
                first, last = line.strip().startswith("|"), line.strip().endswith("|")
                rows.append(cells[int(first) : len(cells) - int(last)])
        elif rows:
            yield Grid(rows, [[squashed(cell) for cell in row] for row in rows])
            rows = []


def _score_columns(rows: Sequence[Row], grids: Sequence[Grid], found: Score, misses: list[str] | None) -> None:
    with_figure: dict[str, list[tuple[int, int]]] = defaultdict(list)
    figures: dict[tuple[int, int], list[Counter[str]]] = {}
    for number, grid in enumerate(grids):
        for at, cells in enumerate(grid.rows):
            place = number, at
            figures[place] = [figures_of(cell) for cell in _signed_cells(cells)]
            for value in set().union(*figures[place]):
                with_figure[value].append(place)
    used: set[tuple[int, int]] = set()
    for row in rows:
        label = squashed(row.label)
        values = Counter(figure.value for figure in row.figures)
        candidates = {place for value in values for place in with_figure.get(value, ()) if place not in used}
        named = [place for place in candidates if any(label in cell for cell in grids[place[0]].squashed[place[1]])]
        heads = [squashed(head) for figure in row.figures for head in figure.heads]
        best = max(
            named,
            key=lambda place: (
                _matched(values, figures[place]),
                _num_seen(heads, grids[place[0]].squashed[: place[1]]),
                -place[0],
                -place[1],
            ),
            default=None,
        )
        if best is not None:
            used.add(best)
        free = [Counter(cell) for cell in figures[best]] if best is not None else []
        named_first = grids[best[0]].squashed[best[1]] if best is not None else []
        order = sorted(range(len(free)), key=lambda column: label in named_first[column])
        for figure in row.figures:
            column = next((column for column in order if free[column][figure.value] > 0), None)
            if column is not None:
                free[column][figure.value] -= 1
            _count(figure, None if best is None else grids[best[0]], best, column, found, misses, row.label)


def _num_seen(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How many heads are in a cell above, in any column."""
    return sum(any(head in cell for row in rows for cell in row) for head in heads)


def _matched(values: Counter[str], cells: Sequence[Counter[str]]) -> int:
    return (values & sum(cells, Counter())).total()


def _signed_cells(row: Sequence[str]) -> list[str]:
    """The cells, each with a bracket or a currency sign that is in a cell of its own before it."""
    found, before = [], ""
    for cell in row:
        sign = cell.strip()
        found.append(f"{before}{cell.strip()}")
        before = f"{before}{sign}" if sign and not sign.strip("($\u20ac\u00a3\u00a5 ") else ""
    return found


def _count(
    figure: Figure,
    grid: Grid | None,
    place: tuple[int, int] | None,
    column: int | None,
    found: Score,
    misses: list[str] | None,
    label: str,
) -> None:
    if not figure.heads:
        return
    found.num_heads += 1
    found.num_levels += len(figure.heads) > 1
    if grid is None or place is None or column is None:
        above: list[str] = []
    else:
        above = [row[column] for row in grid.squashed[: place[1]] if column < len(row)]
    seen = [any(squashed(head) in cell for cell in above) for head in figure.heads]
    found.num_lowest += seen[-1]
    found.num_all += len(figure.heads) > 1 and all(seen)
    if misses is not None and not all(seen):
        missing = [head[:40] for head, is_seen in zip(figure.heads, seen, strict=True) if not is_seen]
        misses.append(f"head: {label[:50]!r}: {figure.value}: {missing} {'row' if place is None else column}")
