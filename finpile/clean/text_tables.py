"""Tables by the position of characters, as EDGAR's text filings of 1993 to 2008 have them: `<TABLE>`, `<S>` and `<C>`.

Above the line of `<S>` and `<C>` are the caption and the heads, below it the rows. A column begins at a `<C>`; where
that gives two figures of a row the same column, columns are where the figures of all rows are. The rows are as those of
HTML tables (`finpile.clean.html.grids`): lines with a tab between cells, or a Markdown grid. Dot leaders and lines of
dashes are not text; a label that goes on in the next line is one.

A head is over the columns of the dashes below it, or else over those in whose middle it is. The first lines of a
caption that begin above the labels are the table's title.

A table without a row of data, or whose figures have no columns, stays as it is, without the marks. No figure is lost or
moved to another row.

Source: EDGAR Filer Manual, Volume II, section 5.1 (ASCII documents: tags <TABLE>, <CAPTION>, <S>, <C> and <FN>).
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, groupby, pairwise
from typing import Literal, NamedTuple

from finpile.clean.html.grids import Cell, Row, grid, is_data, read_cell, with_signs

_EDGE = re.compile(r"<(/?)TABLE>", re.IGNORECASE)
_MARK = re.compile(r"<[SC]>", re.IGNORECASE)
_CAPTION = re.compile(r"<CAPTION>", re.IGNORECASE)
_NOTES = re.compile(r"^[^\S\n]*<FN>[^\S\n]*\n?", re.IGNORECASE | re.MULTILINE)
#: Lines that are marks alone, of which nothing is left.
_MARK_LINES = re.compile(r"^[^\S\n]*(?:<(?:S|C|CAPTION|FN|PAGE)>[^\S\n]*)+(?:\n|\Z)", re.IGNORECASE | re.MULTILINE)
_PAGE = re.compile(r"<PAGE>[^\S\n]*\d*", re.IGNORECASE)
_LEADER = re.compile(r"\.{2,}(?:[ .]*\.)?|(?:(?<=\s)\. ){2,}\.?")
_PHRASE = re.compile(r"\S+(?: \S+)*")
_WORD = re.compile(r"\S+")
#: A line of dashes, and each of its runs; EDGAR put `- ` before lines that begin with a dash.
_RULE_LINE = re.compile(r"[\s\-=_]*[\-=_]{3}[\s\-=_]*")
_RUN = re.compile(r"(?:- (?=-))?[\-=_]+")
_SIGN = re.compile(r"[$(]+")
#: The end of a label that goes on in the next line; and the share of the labels' width that a line of one has that goes
#: on in a line with more blanks before it.
_OPEN = re.compile(r"(?:,|&|\b(?:and|as|by|for|from|in|of|or|the|to|with))\Z", re.IGNORECASE)
_LONG_LABEL = 0.7
#: A head of all columns: their period or their unit.
_OF_ALL = re.compile(
    r"\b(?:years?|quarters?|months?|weeks?|periods?|ended|ending|as of|thousands|millions|dollars|unaudited)\b",
    re.IGNORECASE,
)
#: Characters of a table and of one of its lines, and columns; a table with more stays as it is.
_MAX_CHARS, _MAX_LINE, _MAX_COLUMNS = 1 << 20, 1 << 10, 64
#: Characters by which a figure can begin before its column, a line below a head can be longer than it without being
#: that of its columns, and a head can be off their middle.
_SLACK, _UNDERLINE, _OFF_MIDDLE = 2, 4, 4


class _Phrase(NamedTuple):
    """Words with single blanks between them, or a figure alone, and where they are in their line."""

    start: int
    end: int
    text: str


def with_tables(text: str, tables: Literal["lines", "markdown"]) -> str:
    """The text with the rows of its tables as lines or grids. Takes time linear in the text."""
    parts, copied, start = [], 0, None
    for edge in _EDGE.finditer(text):
        if not edge[1]:
            start = edge
        elif start is not None:
            parts += [text[copied : start.start()], _table(text[start.end() : edge.start()], tables)]
            copied, start = edge.end(), None
    return "".join([*parts, text[copied:]])


def _table(content: str, tables: Literal["lines", "markdown"]) -> str:
    """The content of a table in its new form."""
    found = _NOTES.search(content)
    body, notes = (content, "") if found is None else (content[: found.start()], content[found.end() :])
    lines = body.expandtabs().split("\n")
    is_small = len(body) <= _MAX_CHARS and max(map(len, lines)) <= _MAX_LINE
    written = [_section(part, tables) for part in _sections(lines)] if is_small else [None]
    if not written or None in written:
        return _MARK_LINES.sub("", content)
    return "\n".join(["", *(part or "" for part in written), notes])


def _sections(lines: Sequence[str]) -> Iterator[list[str]]:
    """The parts of a table, each with a line of marks: a part begins at its caption, or at its marks."""
    marks = [number for number, line in enumerate(lines) if _MARK.search(line)]
    begins = [0]
    for before, mark in pairwise(marks):
        captions = (number for number in range(before + 1, mark) if _CAPTION.search(lines[number]))
        begins.append(next(captions, mark))
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        yield [_PAGE.sub("", _CAPTION.sub("", line)) for line in lines[begin:end]]


def _section(lines: Sequence[str], tables: Literal["lines", "markdown"]) -> str | None:
    """The rows of a part of a table, in the form that is wanted; None if they are not found."""
    at = next((number for number, line in enumerate(lines) if _MARK.search(line)), None)
    if at is None:
        return None
    starts = [mark.start() for mark in _MARK.finditer(lines[at])]
    body = [_MARK.sub("   ", lines[at]), *lines[at + 1 :]]
    columns = _Columns.read(body, [0, *starts[1:]])
    if columns is None:
        return None
    titles, heads = columns.heads(lines[:at])
    rows = [Row(with_signs(cells), any(map(is_data, cells[1:]))) for cells in columns.rows()]
    if not any(row.is_data for row in rows):
        return None
    written = grid([*heads, *rows], len(heads)) if tables == "markdown" else None
    if written is None:
        written = "\n".join("\t".join(cell.text for cell in row.cells) for row in [*heads, *rows])
    return "\n".join([*titles, "", written, ""])


def _phrases(line: str, label_end: int) -> list[_Phrase]:
    """The phrases of a line; figures behind a label are their own."""
    found = []
    for phrase in _PHRASE.finditer(_LEADER.sub(lambda dots: " " * len(dots[0]), line)):
        words = _words(phrase[0], phrase.start())
        num_text = len(words)
        while num_text and words[num_text - 1].start >= label_end - _SLACK and _is_part(words[num_text - 1].text):
            num_text -= 1
        if num_text:
            found.append(_phrase_of(words[:num_text]))
        found += words[num_text:]
    return found


def _words(text: str, start: int) -> list[_Phrase]:
    """The words of a text that begins at `start` of its line."""
    return [_Phrase(start + word.start(), start + word.end(), word[0]) for word in _WORD.finditer(text)]


def _phrase_of(words: Sequence[_Phrase]) -> _Phrase:
    """Words as one phrase."""
    return _Phrase(words[0].start, words[-1].end, " ".join(word.text for word in words))


def _is_rule(phrase: _Phrase) -> bool:
    return _RULE_LINE.fullmatch(phrase.text) is not None


def _is_figure(phrase: _Phrase) -> bool:
    """Whether it is of figures and signs alone."""
    return all(map(_is_part, phrase.text.split()))


@functools.lru_cache(maxsize=1 << 12)
def _is_part(text: str) -> bool:
    """Whether a word is a figure or its sign."""
    return _SIGN.fullmatch(text) is not None or read_cell(0, 1, text).is_figure


class _Columns:
    """Where the columns of a part of a table are."""

    def __init__(self, starts: Sequence[int], body: Sequence[str]) -> None:
        self._starts = starts
        self._body = [[] if _RULE_LINE.fullmatch(line) else _phrases(line, starts[1]) for line in body]
        figures: list[list[_Phrase]] = [[] for _ in starts]
        self.is_clear = True
        for line in self._body:
            placed = [(place, phrase) for place, phrase in self._placed(line) if any(map(str.isdigit, phrase.text))]
            found = [(place, phrase) for place, phrase in placed if _is_figure(phrase)]
            behind = [place for place, phrase in found if phrase.start > line[0].start]
            self.is_clear = self.is_clear and 0 not in behind and len(set(behind)) == len(behind)
            for place, phrase in found:
                figures[place].append(phrase)
        self._num_labels = next((place for place, found in enumerate(figures) if place and found), 1)
        ends = [*starts[1:], starts[-1] + _SLACK]
        self._bodies = [
            (min(phrase.start for phrase in found), max(phrase.end for phrase in found)) if found else (start, end)
            for found, start, end in zip(figures, starts, ends, strict=True)
        ]

    @classmethod
    def read(cls, body: Sequence[str], marks: Sequence[int]) -> _Columns | None:
        """The columns at the marks, or else at the figures; None if neither keeps the figures of each row apart."""
        if len(marks) > _MAX_COLUMNS:
            return None
        if len(marks) > 1:
            found = cls(marks, body)
            if found.is_clear:
                return found
        lines = [_phrases(line, 0) for line in body if not _RULE_LINE.fullmatch(line)]
        spans: list[tuple[int, int]] = []
        for phrase in sorted(phrase for line in lines for phrase in line[1:] if _is_figure(phrase)):
            if spans and phrase.start < spans[-1][1]:
                spans[-1] = (spans[-1][0], max(spans[-1][1], phrase.end))
            else:
                spans.append((phrase.start, phrase.end))
        if not spans or len(spans) >= _MAX_COLUMNS:
            return None
        ends = [spans[0][0] - _SLACK, *(end for _, end in spans)]
        starts = [0, *((end + start + 1) // 2 for end, (start, _) in zip(ends, spans, strict=False))]
        found = cls(starts, body)
        return found if found.is_clear else None

    def rows(self) -> Iterator[list[Cell]]:
        """The cells of each row, with a label that goes on in another line as one."""
        row: list[Cell] = []
        indent = end = 0
        for phrases in self._body:
            cells = self._cells(phrases)
            is_label = bool(cells) and cells[0].start < self._num_labels and not cells[0].is_figure
            label = next((at for at in reversed(range(len(row))) if row[at].start < self._num_labels), None)
            if is_label and label is not None:
                goes_on = cells[0].text[0].islower() or cells[0].text[0] == "("
                is_open = not row[label].text.endswith(":") and (
                    goes_on
                    or _OPEN.search(row[label].text) is not None
                    or (phrases[0].start > indent and end >= _LONG_LABEL * self._label_end)
                )
                if len(row) == label + 1 and is_open and len(cells[0].text) > 1:
                    row = [*row[:-1], _joined(row[-1], cells[0]), *cells[1:]]
                    end = phrases[0].end
                    continue
                if len(cells) == 1 and cells[0].text[0].islower() and any(map(is_data, row[1:])):
                    row[label] = _joined(row[label], cells[0])
                    continue
            yield from [row] if row else []
            row = cells
            indent, end = (phrases[0].start, phrases[0].end) if phrases else (0, 0)
        yield from [row] if row else []

    def heads(self, caption: Sequence[str]) -> tuple[list[str], list[Row]]:
        """The lines of the title, and the rows of heads."""
        titles: list[str] = []
        rows: list[Row] = []
        blocks = [
            (is_rule, list(lines)) for is_rule, lines in groupby(caption, lambda line: bool(_RULE_LINE.fullmatch(line)))
        ]
        for number, (is_rule, lines) in enumerate(blocks):
            if is_rule:
                continue
            below = blocks[number + 1][1][0] if number + 1 < len(blocks) else ""
            phrases = [[_Phrase(*found.span(), found[0]) for found in _PHRASE.finditer(line)] for line in lines]
            inside = [[phrase for phrase in line if _is_rule(phrase)] for line in phrases]
            phrases = [[phrase for phrase in line if not _is_rule(phrase)] for line in phrases]
            runs = [run.span() for run in _RUN.finditer(below)]
            runs = [run for run in runs if all(sum(_meets(run, phrase) for phrase in line) < 2 for line in phrases)]
            runs = [run for run in runs if not run[0] < self._label_end - _SLACK < self._label_end < run[1]]
            phrases[-1] = list(chain.from_iterable(_divided(phrase, runs) for phrase in phrases[-1]))
            for line, own in zip(phrases, [*inside[1:], []], strict=True):
                of_line = [(phrase.start, phrase.end) for phrase in own] or runs
                if not rows and len(line) == 1 and line[0].start < self._label_end - _SLACK < line[0].end - _SLACK:
                    titles.append(line[0].text)
                elif line:
                    rows.append(Row(self._head(line, of_line), is_data=False))
        return titles, rows

    @property
    def _label_end(self) -> int:
        return self._starts[self._num_labels]

    def _place(self, phrase: _Phrase) -> int:
        """The column of a phrase: of a figure that which has most of it, of a text that in which it begins."""
        first = max(0, bisect_right(self._starts, phrase.start) - 1)
        if not _is_figure(phrase) and not _SIGN.fullmatch(phrase.text):
            return max(0, bisect_right(self._starts, phrase.start + _SLACK) - 1)
        ends = [*self._starts[first + 1 :], phrase.end]
        parts = [
            min(end, phrase.end) - max(start, phrase.start)
            for start, end in zip(self._starts[first:], ends, strict=True)
        ]
        return first + parts.index(max(parts))

    def _cells(self, phrases: Sequence[_Phrase]) -> list[Cell]:
        return [read_cell(place, place + 1, phrase.text) for place, phrase in self._placed(phrases)]

    def _placed(self, phrases: Sequence[_Phrase]) -> list[tuple[int, _Phrase]]:
        """The phrases by column; figures of one column with a single blank between them are one."""
        found: list[tuple[int, _Phrase]] = []
        for phrase in phrases:
            place = self._place(phrase)
            is_next = found and found[-1][0] == place > 0 and phrase.start == found[-1][1].end + 1
            if is_next and not _SIGN.fullmatch(found[-1][1].text):
                before = found.pop()[1]
                phrase = _Phrase(before.start, phrase.end, f"{before.text} {phrase.text}")
            found.append((place, phrase))
        return found

    def _head(self, line: Sequence[_Phrase], runs: Sequence[tuple[int, int]]) -> list[Cell]:
        """The cells of a line of heads, `runs` being the dashes below it."""
        labels = [phrase for phrase in line if phrase.end <= self._label_end]
        others = [phrase for phrase in line if phrase.end > self._label_end]
        groups = self._groups(others)
        cells = self._cells(labels)
        for number, phrase in enumerate(others):
            above = [run for run in runs if _meets(run, phrase)]
            is_underlined = len(above) == 1 and above[0][1] - above[0][0] <= phrase.end - phrase.start + _UNDERLINE
            found = [] if is_underlined else [place for place in self._places if self._is_above(place, above)]
            found = found or (groups[number] if groups else self._nearest(phrase, others))
            cells.append(read_cell(found[0], found[-1] + 1, phrase.text))
        return cells

    @property
    def _places(self) -> range:
        return range(1, len(self._bodies))

    def _middle(self, first: int, last: int) -> float:
        return (self._bodies[first][0] + self._bodies[last][1]) / 2

    def _is_above(self, place: int, runs: Sequence[tuple[int, int]]) -> bool:
        return any(start - 1 <= self._middle(place, place) <= end + 1 for start, end in runs)

    def _groups(self, line: Sequence[_Phrase]) -> list[list[int]] | None:
        """The columns by the nearest of several heads, if each head is in the middle of more than one."""
        if not 1 < len(line) <= len(self._places) // 2:
            return None
        groups: list[list[int]] = [[] for _ in line]
        middles = [(phrase.start + phrase.end) / 2 for phrase in line]
        for place in range(self._num_labels, len(self._bodies)):
            distances = [abs(self._middle(place, place) - middle) for middle in middles]
            groups[distances.index(min(distances))].append(place)
        is_centred = all(
            len(group) > 1 and abs(self._middle(group[0], group[-1]) - middle) <= _OFF_MIDDLE
            for group, middle in zip(groups, middles, strict=True)
        )
        return groups if is_centred else None

    def _nearest(self, phrase: _Phrase, line: Sequence[_Phrase]) -> list[int]:
        """One or two neighbouring columns whose middle is nearest, and that no other head of the line is above.

        A period or a unit alone in its line, in the middle of all columns, is over all.
        """
        middle = (phrase.start + phrase.end) / 2
        every = range(self._num_labels, len(self._bodies))
        if (
            len(line) == 1
            and _OF_ALL.search(phrase.text)
            and abs(self._middle(every[0], every[-1]) - middle) <= _OFF_MIDDLE
        ):
            return list(every)
        taken = {
            place for place in self._places for other in line if other != phrase and _meets(self._bodies[place], other)
        }
        ranges = [(place, place) for place in self._places]
        ranges += [(one, other) for one, other in pairwise(self._places) if not {one, other} & taken]
        first, last = min(
            ranges, key=lambda places: abs(self._middle(*places) - middle) + _OFF_MIDDLE * (places[1] - places[0])
        )
        return list(range(first, last + 1))


def _meets(span: tuple[int, int], phrase: _Phrase) -> bool:
    return span[0] < phrase.end and phrase.start < span[1]


def _divided(phrase: _Phrase, runs: Sequence[tuple[int, int]]) -> Iterator[_Phrase]:
    """The parts of a phrase above each run of dashes, if each of its words is above one."""
    words = _words(phrase.text, phrase.start)
    above = [[number for number, run in enumerate(runs) if _meets(run, word)] for word in words]
    if any(len(found) != 1 for found in above):
        yield phrase
        return
    for _, group in groupby(zip(above, words, strict=True), lambda pair: pair[0]):
        yield _phrase_of([word for _, word in group])


def _joined(cell: Cell, other: Cell) -> Cell:
    return cell._replace(text=f"{cell.text} {other.text}")
