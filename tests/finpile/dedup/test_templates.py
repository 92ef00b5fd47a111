"""Templates: the spans equal those of a dictionary, and depend on no later document."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import TemplatesConfig
from finpile.dedup.cuts import cut_rows
from finpile.dedup.templates import blocks
from finpile.documents.document import text_digest
from finpile.errors import ConfigError
from tests.support.references.templates import Doc, cut_by_hand

BANNER = "Subscribe to our newsletter today"
_LINES = (
    "Home",
    "  Oil rose.",
    "it fell 3 percent",
    "in 1987",
    "--------",
    "Date of the report:",
    BANNER,
    "All rights reserved by the bank.",
    "a",
    "é ü 漢字",
    "Gold  fell\ton Monday",
    "",
)


def table(docs: Sequence[Doc]) -> pa.Table:
    """The columns that the functions read."""
    return pa.table(
        {
            "dataset": ["FinPile"] * len(docs),
            "source": ["Web"] * len(docs),
            "text": pa.array([doc.text for doc in docs], pa.large_string()),
            "timestamp": pa.array([doc.time for doc in docs], pa.timestamp("s", tz="UTC")),
            "digest": pa.array([text_digest(doc.text.encode()) for doc in docs], pa.binary(16)),
        }
    )


def cut(docs: Sequence[Doc], config: TemplatesConfig, shards: Sequence[int] | None = None) -> list[str]:
    """The texts after the cuts; document `i` is in shard `shards[i]`."""
    places = np.zeros(len(docs), int) if shards is None else np.asarray(shards)
    rows = [blocks.BLOCK_SCHEMA.empty_table()]
    parts = {int(shard): np.flatnonzero(places == shard) for shard in np.unique(places)}
    for shard, members in parts.items():
        some = [docs[number] for number in members]
        rows.append(blocks.block_rows(table(some), [doc.group for doc in some], config.min_documents, shard))
    known = blocks.templates(pa.concat_tables(rows).combine_chunks(), config.min_documents)
    left = [""] * len(docs)
    for shard, members in parts.items():
        some = [docs[number] for number in members]
        mine = known.filter(pa.array(known["shard"].to_numpy() == shard))
        spans = blocks.template_spans(table(some), [doc.group for doc in some], mine, config)
        texts = cut_rows(table(some)["text"].combine_chunks(), spans)
        for number, text in zip(members, texts.to_pylist(), strict=True):
            left[number] = text
    return left


def strategy() -> st.SearchStrategy[list[Doc]]:
    line = st.one_of(
        st.sampled_from(_LINES), st.builds(lambda left, right: f"{left}{right}", *[st.sampled_from(" \t\xa0ab")] * 2)
    )
    text = st.lists(line, max_size=7).map("\n".join)
    times = st.one_of(st.none(), st.integers(-3, 3))
    return st.lists(st.builds(Doc, text, st.sampled_from(["a", "a", "b", None]), times), max_size=12)


CONFIGS = st.builds(
    lambda documents, chars: TemplatesConfig(min_documents=documents, min_block_chars=chars),
    st.integers(1, 3),
    st.sampled_from([1, 5, 20]),
)


@given(strategy(), CONFIGS)
def test_cuts_equal_the_reference(docs: list[Doc], config: TemplatesConfig) -> None:
    assert cut(docs, config) == cut_by_hand(docs, config)


@given(strategy(), CONFIGS, st.integers(0, 11))
def test_later_documents_change_no_earlier_text(docs: list[Doc], config: TemplatesConfig, num: int) -> None:
    ordered = sorted(docs, key=lambda doc: doc.order)
    assert cut(ordered, config)[:num] == cut(ordered[:num], config)


@given(strategy(), CONFIGS, st.randoms(use_true_random=False))
def test_order_and_shards_do_not_matter(docs: list[Doc], config: TemplatesConfig, draw: random.Random) -> None:
    expected = cut(docs, config)
    order = draw.sample(range(len(docs)), len(docs))
    shards = [draw.randrange(3) for _ in docs]
    found = cut([docs[number] for number in order], config, shards)
    assert [found[order.index(number)] for number in range(len(docs))] == expected


ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), max_size=20)


def _rows(rows: Sequence[tuple[int, int, int]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    found = {name: list(column) for name, column in zip(("hash", "time", "digest"), columns, strict=True)}
    return pa.table({**found, "shard": [0] * len(rows)}, schema=blocks.BLOCK_SCHEMA)


@given(ROWS, ROWS, ROWS, st.integers(1, 3))
def test_first_documents_of_parts_are_those_of_all(
    one: list[tuple[int, int, int]], two: list[tuple[int, int, int]], three: list[tuple[int, int, int]], num: int
) -> None:
    """So they can be found part by part, in any grouping and order."""

    def first(*tables: pa.Table) -> pa.Table:
        return blocks.first_documents(pa.concat_tables(tables).combine_chunks(), num)

    a, b, c = map(_rows, (one, two, three))
    assert first(first(a, b), c).equals(first(a, b, c))
    assert first(c, first(b, first(a))).equals(first(a, b, c))
    assert max(np.unique(first(a, b, c)["hash"].to_numpy(), return_counts=True)[1], default=0) <= num


def some(num: int, *lines: str, first: int = 0) -> list[Doc]:
    """Different documents, each with the lines around a line of its own."""
    head, *tail = lines
    return [Doc("\n".join([head, f"Story {number} of the day", *tail]), "a", number) for number in range(first, num)]


def test_the_first_documents_keep_a_template() -> None:
    docs = some(5, BANNER, "Reuter")
    left = cut(docs, TemplatesConfig(min_documents=3))
    assert left[:3] == [doc.text for doc in docs[:3]]
    assert left[3:] == ["Story 3 of the day", "Story 4 of the day"]


def test_equal_texts_count_once() -> None:
    docs = [Doc(f"{BANNER}\nThe same story", time=number) for number in range(5)] + some(9, BANNER, first=7)
    assert cut(docs, TemplatesConfig(min_documents=3)) == [doc.text for doc in docs]


def test_groups_and_rows_are_counted_apart() -> None:
    docs = [*some(3, BANNER), Doc(f"{BANNER}\nOther", "b", 9), Doc(f"{BANNER}\nOthers", None, 9)]
    assert cut(docs, TemplatesConfig(min_documents=3)) == [doc.text for doc in docs]
    other = table(some(4, BANNER)).set_column(1, "source", pa.array(["News"] * 4))
    rows = blocks.block_rows(other, ["a"] * 4, 3, 0)
    web = blocks.block_rows(table(some(4, BANNER)), ["a"] * 4, 3, 0)
    assert not set(rows["hash"].to_pylist()) & set(web["hash"].to_pylist())


_WRAPPED = some(
    3,
    "Terms were not disclosed.",
    "said.",
    "Record March 31",
    "Date of this report:",
    "Reuter",
    "---------  -----------------",
)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"One\n{BANNER}\nTwo", "One\nTwo"),
        (f"One\n\n{BANNER}\nTwo", "One\n\nTwo"),
        (f"One\n{BANNER}\n\nTwo", "One\n\nTwo"),
        (f"One\n\n{BANNER}\n\nTwo", "One\n\nTwo"),
        (f"\n\n  {BANNER}\n\nOne", "One"),
        (f"One\n\n{BANNER}\n\n", "One"),
        (f"One\n\n{BANNER}\n{BANNER}  \n\n  Two", "One\n\n  Two"),
        (f"One {BANNER}", f"One {BANNER}"),
        (f"{BANNER}\n\n{BANNER}", ""),
        ("One\nSubscribe to our\nnewsletter today", "One\nSubscribe to our\nnewsletter today"),
        ("One\n\nSubscribe to  our\nnewsletter\ttoday\n\nTwo", "One\n\nTwo"),
        ("Home\nOne\nHome\nTwo\nHome", "One\nHome\nTwo"),
        (f"{BANNER}\nHome\n\nHome\nOne\nHome\n{BANNER}\nTwo", "One\nHome\nTwo"),
        (f"One\n{BANNER}\nand so it goes", f"One\n{BANNER}\nand so it goes"),
        ("    One said\nTwo.\nTerms were not disclosed.\n Reuter", "    One said\nTwo.\nTerms were not disclosed."),
        ("    One said Two.\n    Terms were not disclosed.\n Reuter", "    One said Two."),
        ("One, the bank\nsaid.\nReuter", "One, the bank\nsaid."),
        ("One\nDate of this report:\n\nMarch\nReuter", "One\nDate of this report:\n\nMarch"),
        (
            "One\n---------  -----------------\nTwo\n---------  -----------------",
            "One\n---------  -----------------\nTwo",
        ),
        ("One\nRecord March 31\nReuter", "One\nRecord March 31"),
        ("Home\r\nOne\r\nHome", "One\r"),
    ],
)
def test_cuts_take_the_white_space_of_one_side(before: str, after: str) -> None:
    """A paragraph equals a line of the same words. Short lines are cut at the ends alone."""
    docs = [*some(3, BANNER, "Home"), *_WRAPPED, Doc(before, "a", 9)]
    config = TemplatesConfig(min_documents=3, min_block_chars=20)
    assert cut(docs, config)[-1] == cut_by_hand(docs, config)[-1] == after


def test_a_span_names_the_group_and_its_lines() -> None:
    docs = [*some(3, BANNER, "Home", "Contact"), Doc(f"{BANNER}\nNew story\nHome\nContact", "a", 9)]
    rows = blocks.block_rows(table(docs), ["a"] * 4, 3, 0)
    spans = blocks.template_spans(table(docs), ["a"] * 4, blocks.templates(rows, 3), TemplatesConfig(min_documents=3))
    assert spans["row"].to_pylist() == [3, 3]
    assert spans["reason"].to_pylist() == ["template"] * 2
    assert spans["detail"].to_pylist() == ["1 line of 3 earlier documents of a", "2 lines of 3 earlier documents of a"]


def test_large_documents_are_hashed_within_bounds(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(
        "import random\n"
        "from tests.support.references.templates import Doc, cut_by_hand\n"
        "from test_templates import _LINES, cut\n"
        "from finpile.config import TemplatesConfig\n"
        "draw = random.Random(1)\n"
        "docs = [Doc('\\n'.join(draw.choices(_LINES, k=draw.randrange(40))), 'ab'[n % 2], n) for n in range(60)]\n"
        "config = TemplatesConfig(min_documents=2, min_block_chars=6)\n"
        "assert cut(docs, config) == cut_by_hand(docs, config)\n"
        "print('within bounds')\n",
        Path(__file__).parent,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_documents": 0}, "templates.min_documents is 0: expected at least 1"),
        ({"min_documents": 1001}, "expected at most 1,000"),
        ({"min_block_chars": 0}, "templates.min_block_chars is 0"),
        ({"min_chars": -1}, "templates.min_chars is -1"),
    ],
)
def test_settings_have_bounds(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TemplatesConfig(**settings)
