"""Tables 14 to 18 of GPT-NeoX-20B, and its count of shared tokens, for any texts and any tokenizers.

    table14(comparison)               tokens of each dataset, also without white-space tokens
    table15(comparison)               tokens by component
    table16(comparison)               the same without white-space tokens
    shared_tokens(tokenizers)         tokens that two vocabularies have in common
    table17(tokenizers)               ten longest tokens
    worst_words(...) -> table18(...)  words of which one tokenizer makes far more tokens than another

The last tokenizer is compared with each other one, as in `finpile.report.table3`.

Source: GPT-NeoX-20B (Black et al. 2022), appendix E.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from finpile.report.figures import Cell, count, name, percent, ratio
from finpile.report.table import Column, Row, RowKind, Table
from finpile.report.table3 import By, ComparedSource, Comparison, TokenCount, footnotes, labelled_rows
from finpile.report.word_counts import WordCounts
from finpile.tokens.tokenizers.protocol import OpenTokenizer

#: Rows of Table 17, and of each part of Table 18.
NUM_SHOWN = 10
#: A word of Table 18 occurs at least this often in the component.
LEAST_OCCURRENCES = 10
#: Decimals of a ratio in Tables 14 to 16.
_DIGITS = 5
#: Distinct letters of a token that is no ruler of one or two signs, as `ÃÂÃÂÃÂÃÂ` is.
_LEAST_LETTERS = 3
#: Words encoded at once.
_BATCH_WORDS = 1 << 16

Counted = Callable[[TokenCount], int]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorstWord:
    """A word of a component of which one tokenizer makes more tokens than another."""

    component: str
    dataset: str
    word: str
    num_occurrences: int
    worse: int
    """The tokenizer with more tokens, as an index."""
    better: int


def neox_tables(
    comparison: Comparison, tokenizers: Sequence[OpenTokenizer], words: WordCounts, by: By = "source"
) -> list[Table]:
    """All tables; `words` are those of the texts of the comparison. A component is a source, or a dataset."""
    tables = [table14(comparison), table15(comparison, by), table16(comparison, by)]
    if len(tokenizers) > 1:
        tables.append(shared_tokens(tokenizers))
    tables.append(table17(tokenizers))
    if len(tokenizers) > 1:
        tables.append(table18(tokenizers, worst_words(comparison, tokenizers, words, by)))
    return tables


def table14(comparison: Comparison) -> Table:
    """Tokens of each dataset, with and without white-space tokens."""
    rows = []
    for label, row in labelled_rows(comparison, "dataset"):
        rows.append(Row(cells=(name(label), *_count_cells(row, _all)), group=row.dataset))
        rows.append(Row(cells=(name(f"{label} excl. space"), *_count_cells(row, _not_blank)), group=row.dataset))
    return Table(
        name="neox_table14",
        title="Table 14",
        caption="Tokens of each dataset, also without tokens of white space.",
        columns=_count_columns(comparison, "Dataset"),
        rows=tuple(rows),
        footnotes=footnotes(comparison),
    )


def table15(comparison: Comparison, by: By = "source") -> Table:
    """Tokens by component, in order of names."""
    return _by_component(comparison, by, _all, "15", "Tokens of each component.")


def table16(comparison: Comparison, by: By = "source") -> Table:
    """Tokens by component without those that consist of white space only."""
    return _by_component(comparison, by, _not_blank, "16", "Tokens of each component, without tokens of white space.")


def shared_tokens(tokenizers: Sequence[OpenTokenizer]) -> Table:
    """Entries that a vocabulary shares with the last one: those of the same bytes, control tokens by their names."""
    *others, last = tokenizers
    own = set(last.pieces)
    rows = []
    for other in others:
        shared = len(own.intersection(other.pieces))
        shares = (percent(shared, size, 1) for size in (other.vocab_size, last.vocab_size))
        rows.append(Row(cells=(name(other.name), count(other.vocab_size), count(shared), *shares)))
    titles = ("Vocabulary", f"Shared with {last.name}", "of vocabulary", f"of {last.name}")
    keys = ("vocab_size", "num_shared", "shared_percent", "shared_percent_of_last")
    return Table(
        name="neox_shared_tokens",
        title="Shared tokens",
        caption=f"Tokens of the same bytes in the vocabulary of {last.name}, which has {last.vocab_size:,}.",
        columns=(Column(key="name", title="Tokenizer"), *map(_column, keys, titles)),
        rows=tuple(rows),
    )


def table17(tokenizers: Sequence[OpenTokenizer]) -> Table:
    """The ten longest tokens of each vocabulary, in characters, of those that are mainly letters; ties by id."""
    longest = [_longest(tokenizer) for tokenizer in tokenizers]
    rows = []
    for rank in range(max(map(len, longest))):
        cells = [_token_cell(tokens[rank]) if rank < len(tokens) else Cell("") for tokens in longest]
        rows.append(Row(cells=(count(rank + 1), *cells)))
    return Table(
        name="neox_table17",
        title="Table 17",
        caption="The longest tokens, without those that are mainly symbols, digits and spaces.",
        columns=(
            Column(key="rank", title="Rank"),
            *(Column(key=one.name, title=one.name, is_text=True) for one in tokenizers),
        ),
        rows=tuple(rows),
        footnotes=(
            "More than half of a token's characters are letters, of which at least three are different. ␣ is a space.",
        ),
    )


def worst_words(
    comparison: Comparison, tokenizers: Sequence[OpenTokenizer], words: WordCounts, by: By = "source"
) -> list[WorstWord]:
    """Ten words for each component, each other tokenizer and the last one, and each of the two that is worse.

    Words are ordered by the ratio of the two numbers of tokens, then by their difference, by occurrences, and by
    themselves. A word with a token for unknown text is not compared.
    """
    components = [
        (label, row, words.frequent(_sources(comparison, row, by), LEAST_OCCURRENCES))
        for label, row in _components(comparison, by)
    ]
    considered = sorted({word for _, _, found in components for word in found})
    lengths = [_lengths(tokenizer, considered) for tokenizer in tokenizers]
    places = {word: place for place, word in enumerate(considered)}
    last = len(tokenizers) - 1
    worst = []
    for label, row, found in components:
        at = np.fromiter((places[word] for word in found), np.int64, len(found))
        occurrences = np.fromiter(found.values(), np.int64, len(found))
        for worse, better in [pair for other in range(last) for pair in ((other, last), (last, other))]:
            for place in _ranked(lengths[worse][at], lengths[better][at], occurrences)[:NUM_SHOWN]:
                word = considered[at[place]]
                worst.append(
                    WorstWord(
                        component=label,
                        dataset=row.dataset,
                        word=word,
                        num_occurrences=found[word],
                        worse=worse,
                        better=better,
                    )
                )
    return worst


def table18(tokenizers: Sequence[OpenTokenizer], words: Sequence[WorstWord]) -> Table:
    """Words with the number of tokens that each tokenizer makes of them after a space, and these tokens."""
    spelled = [_spellings(tokenizer, [one.word for one in words]) for tokenizer in tokenizers]
    columns = [
        Column(key="word", title="Word"),
        Column(key="component", title="Component", is_text=True),
        Column(key="worse", title="Worst for", is_text=True),
    ]
    if len(tokenizers) > 2:  # else it is the other one
        columns.append(Column(key="better", title="Beside", is_text=True))
    columns.append(Column(key="num_occurrences", title="Occurs"))
    for tokenizer in tokenizers:
        columns.append(Column(key=f"{tokenizer.name}_num_tokens", title=tokenizer.name))
        columns.append(Column(key=f"{tokenizer.name}_tokens", title="Tokens", is_text=True))
    rows = []
    for number, one in enumerate(words):
        pair = [tokenizers[one.worse].name, *([tokenizers[one.better].name] if len(tokenizers) > 2 else [])]
        cells = [name(one.word), name(one.component), *map(name, pair), count(one.num_occurrences)]
        for spellings in spelled:
            cells += [count(len(spellings[number])), name(" ".join(spellings[number]))]
        rows.append(Row(cells=tuple(cells), group=one.dataset))
    return Table(
        name="neox_table18",
        title="Table 18",
        caption="Words of which one tokenizer makes far more tokens than another, by component.",
        columns=tuple(columns),
        rows=tuple(rows),
        footnotes=(
            f"Words between white space or punctuation that occur at least {LEAST_OCCURRENCES} times in the component, "
            "encoded after a space (␣), by the ratio of the numbers of tokens.",
        ),
    )


def _all(made: TokenCount) -> int:
    return made.num_tokens


def _not_blank(made: TokenCount) -> int:
    return made.num_tokens - made.num_whitespace


def _by_component(comparison: Comparison, by: By, counted: Counted, number: str, caption: str) -> Table:
    rows = [
        Row(cells=(name(label), *_count_cells(row, counted)), group=row.dataset)
        for label, row in _components(comparison, by)
    ]
    total = (name("Total"), *_count_cells(comparison.printed_total, counted))
    return Table(
        name=f"neox_table{number}",
        title=f"Table {number}",
        caption=caption,
        columns=_count_columns(comparison, "Component"),
        rows=(*rows, Row(cells=total, kind=RowKind.TOTAL, gap=True)),
        footnotes=footnotes(comparison),
    )


def _components(comparison: Comparison, by: By) -> list[tuple[str, ComparedSource]]:
    return sorted(labelled_rows(comparison, by), key=lambda row: (row[0].casefold(), row[0]))


def _sources(comparison: Comparison, row: ComparedSource, by: By) -> list[tuple[str, str]]:
    if by == "source":
        return [(row.dataset, row.source)]
    return [(one.dataset, one.source) for one in comparison.sources if one.dataset == row.dataset]


def _count_columns(comparison: Comparison, first: str) -> tuple[Column, ...]:
    """The counts of all tokenizers, then the ratios of the last one to each other one."""
    names = [one.name for one in comparison.tokenizers]
    ratios = [Column(key=f"{names[-1]}_per_{other}", title=f"{names[-1]}/{other}") for other in names[:-1]]
    return (Column(key="name", title=first), *map(_column, names, names), *ratios)


def _count_cells(row: ComparedSource, counted: Counted) -> list[Cell]:
    numbers = list(map(counted, row.counts))
    return [*map(count, numbers), *(ratio(numbers[-1], other, _DIGITS) for other in numbers[:-1])]


def _column(key: str, title: str) -> Column:
    return Column(key=key, title=title)


def _longest(tokenizer: OpenTokenizer) -> list[str]:
    texts = []
    for token_id, piece in enumerate(tokenizer.pieces):
        text = piece.decode(errors="replace")
        if token_id not in tokenizer.control_ids and "\ufffd" not in text and _is_mainly_letters(text):
            texts.append(text)
    return sorted(texts, key=len, reverse=True)[:NUM_SHOWN]


def _is_mainly_letters(text: str) -> bool:
    """Marks, as the vowel signs of Devanagari are, count as letters."""
    letters = [sign for sign in text if unicodedata.category(sign)[0] in "LM"]
    return 2 * len(letters) > len(text) and len(set(letters)) >= _LEAST_LETTERS


def _ranked(
    worse: npt.NDArray[np.int64], better: npt.NDArray[np.int64], occurrences: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The words of which the first makes more tokens, the greatest ratio first; words come in their own order."""
    found = np.flatnonzero((better > 0) & (worse > better))
    worse, better = worse[found], better[found]
    # The quotients of equal ratios of small integers are the same float64.
    return found[np.lexsort((-occurrences[found], better - worse, -(worse / better)))]


def _lengths(tokenizer: OpenTokenizer, words: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of tokens of each word after a space; 0 for one with a token for unknown text."""
    controls = tokenizer.control_ids
    return np.fromiter(
        (0 if controls.intersection(ids) else len(ids) for ids in _encoded(tokenizer, words)), np.int64, len(words)
    )


def _spellings(tokenizer: OpenTokenizer, words: Sequence[str]) -> list[list[str]]:
    return [[_shown(tokenizer.pieces[token]) for token in ids] for ids in _encoded(tokenizer, words)]


def _encoded(tokenizer: OpenTokenizer, words: Sequence[str]) -> list[list[int]]:
    """The ids of each word after a space; a tokenizer that puts a space before each text gets the word alone."""
    first = tokenizer.encode(["a"])[0][:1]
    before = "" if any(tokenizer.pieces[token].startswith(b" ") for token in first) else " "
    encoded: list[list[int]] = []
    for start in range(0, len(words), _BATCH_WORDS):
        encoded += tokenizer.encode([before + word for word in words[start : start + _BATCH_WORDS]])
    return encoded


def _token_cell(text: str) -> Cell:
    return Cell(_shown(text.encode()), text)


def _shown(piece: bytes) -> str:
    """The piece with visible spaces; other control characters, and bytes that are not UTF-8, are escaped."""
    text = piece.decode(errors="backslashreplace").replace(" ", "␣")
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
