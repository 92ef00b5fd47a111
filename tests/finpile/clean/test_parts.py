"""Parts of a text: together they are the text, and what belongs to the whole is with one of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from finpile.clean.stage.parts import divide, facts_of_parts, meta_of_parts
from finpile.documents.blank import is_blank
from finpile.plugins.section import Section


@given(st.text("ab \n", max_size=60), st.lists(st.integers(0, 60), max_size=8, unique=True))
def test_the_texts_of_all_parts_are_the_text(text: str, cuts: list[int]) -> None:
    places = sorted(cut for cut in cuts if cut <= len(text))
    bounds = list(zip(places[::2], places[1::2], strict=False))
    sections = [Section(str(index), *bound) for index, bound in enumerate(bounds)]
    parts = divide(text, sections)
    if not sections:
        assert parts == []
        return
    assert "".join(part.text for part in parts) == text
    assert len({part.suffix for part in parts}) == len(parts)
    assert not any(is_blank(part.text) for part in parts[1:])
    for section in sections:
        content = text[section.start : section.end]
        own = [part.text for part in parts if part.section == section.name]
        assert is_blank(content) or own[0].startswith(content.strip() if own[0] != parts[0].text else content)


def test_text_outside_sections_is_in_numbered_parts_and_white_space_in_the_part_before() -> None:
    text = "Cover\n\nItem 1\nA\n\nItem 2\nB\nunsure\nItem 4\nC\n\nSIGNATURES"
    places = [("1", "Item 1\nA"), ("2", "Item 2\nB"), ("4", "Item 4\nC")]
    sections = [Section(name, text.index(content), text.index(content) + len(content)) for name, content in places]
    assert [(part.section, part.suffix, part.text) for part in divide(text, sections)] == [
        (None, "/text-1", "Cover\n\n"),
        ("1", "/item-1", "Item 1\nA\n\n"),
        ("2", "/item-2", "Item 2\nB\n"),
        (None, "/text-2", "unsure\n"),
        ("4", "/item-4", "Item 4\nC\n\n"),
        (None, "/text-3", "SIGNATURES"),
    ]


def test_facts_are_with_the_part_that_shows_them_and_others_with_the_first() -> None:
    text = "Cover 5\nItem 7 sales of 12, again 5\nItem 8 costs of 99"
    bounds = [text.index("Item 7"), text.index("Item 8"), len(text)]
    parts = divide(text, [Section("7", *bounds[:2]), Section("8", *bounds[1:])])
    shown = [("99", text.index("99")), ("12", text.index("12")), ("5", text.rindex("5")), ("1", None)]
    facts = [
        {"shown": figure, "start": start, "end": None if start is None else start + len(figure)}
        for figure, start in shown
    ]
    across = {"shown": None, "start": text.index("again"), "end": text.index("costs")}
    found = facts_of_parts(parts, [*facts, across])
    assert [[fact["shown"] for fact in of_part] for of_part in found] == [["1"], ["12", "5", None], ["99"]]
    assert found[1][-1] == {"shown": None, "start": None, "end": None}
    for part, of_part in zip(parts, found, strict=True):
        assert all(part.text[fact["start"] : fact["end"]] == fact["shown"] for fact in of_part if fact["start"])


def test_what_is_known_of_a_text_is_with_its_first_part() -> None:
    parts = divide("Cover\nItem 7 sales", [Section("7", 6, 18)])
    assert meta_of_parts(parts, {"document_type": "10-K", "cik": "1"}, {"language": "en"}) == [
        {"language": "en"},
        {"item": "7", "document_type": "10-K item 7"},
    ]
