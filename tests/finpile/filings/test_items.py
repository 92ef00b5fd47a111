"""Items of filings: a section is given only if the text leaves no other choice."""

from __future__ import annotations

import random

import pytest

from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise
from finpile.filings import find_items
from finpile.filings.item_titles import declared_number, titles_of

TITLES_10K = {
    "1": "Business", "1A": "Risk Factors", "1B": "Unresolved Staff Comments", "2": "Properties",
    "3": "Legal Proceedings", "4": "Mine Safety Disclosures", "5": "Market for Registrant\u2019s Common Equity",
    "6": "[Reserved]", "7": "Management\u2019s Discussion and Analysis of Financial Condition",
    "7A": "Quantitative and Qualitative Disclosures About Market Risk", "8": "Financial Statements",
    "9": "Changes in and Disagreements with Accountants", "9A": "Controls and Procedures", "9B": "Other Information",
    "10": "Directors, Executive Officers and Corporate Governance", "11": "Executive Compensation",
    "12": "Security Ownership", "13": "Certain Relationships", "14": "Principal Accountant Fees", "15": "Exhibits",
}  # fmt: skip
CONTENTS = "Table of Contents\n" + "".join(
    f"Item {number}.\t{title}\t{page}\n" for page, (number, title) in enumerate(TITLES_10K.items())
)
BODY = "The company sells pumps. See Item 7 for more.\n\nSales were 12. Costs were 7."


def sections(text: str, form: str = "10-K") -> dict[str, str]:
    return {item.number: text[item.start : item.end] for item in find_items(text, form).found}


def annual_report(separator: str = ". ") -> dict[str, str]:
    return {number: f"Item {number}{separator}{title}\n\n{BODY} ({number})" for number, title in TITLES_10K.items()}


@pytest.mark.parametrize("separator", [". ", ".\n", "\u2009\u2014 ", ":\u00a0\u00a0", " - "])
@pytest.mark.parametrize("contents", ["", CONTENTS])
def test_each_item_of_an_annual_report_is_found_whole(separator: str, contents: str) -> None:
    report = annual_report(separator)
    text = f"{contents}\nPART I\n\n" + "\n\n".join(report.values()) + "\n\nSIGNATURES\n\nPursuant to"
    assert sections(text) == report
    assert find_items(text, "10-K").unsure == ()


@pytest.mark.parametrize("seed", range(30))
def test_contents_with_any_number_of_entries_below_an_item_are_no_sections(seed: int) -> None:
    rng = random.Random(seed)
    report, page, contents = annual_report(), 1, "Table of Contents\n\tPage\n"
    for number, title in TITLES_10K.items():
        ends = rng.random() < 0.5
        contents += f"Item {number}. \t{title}{f' {page}' if ends else ''}\n"
        for entry in range(rng.choice([0, 0, 3, 40])):
            page += rng.randrange(2)
            contents += f"\tConsolidated Statements of the {entry}th Kind for the Nine Months Ended June 30 \t{page}\n"
        contents += rng.choice(["", "", "PART II \u2014 Other Information\n"])
    text = f"{contents}\nPART I\n\n" + "\n\n".join(report.values()) + "\n\nSIGNATURES\n"
    assert sections(text) == report


def test_an_index_of_statements_below_a_heading_is_part_of_its_section() -> None:
    report = annual_report()
    report["8"] = (
        "Item 8. Financial Statements\n" + "".join(f"Balance Sheet {n}\t{40 + n}\n" for n in range(30)) + "None."
    )
    report["9"] = "Item 9. Changes in and Disagreements with Accountants 80"
    text = "\n\n".join(report.values())
    assert sections(text) == report
    assert sections(f"{CONTENTS}\n{text}") == report


@pytest.mark.parametrize(("first", "last"), [("5", "9B"), ("10", "14"), ("14", "15")])
def test_contents_of_a_part_before_its_first_section_are_no_sections(first: str, last: str) -> None:
    report = annual_report()
    numbers = list(report)
    listed = numbers[numbers.index(first) : numbers.index(last) + 1]
    head = f"PART II\nItem {first}. {TITLES_10K[first]}".upper()
    contents = "".join(f"Item {number}. {TITLES_10K[number]}\n" for number in listed)
    text = "\n\n".join(report.values())
    found = sections(text.replace(report[first], f"12 EXAMPLE FORM 10-K\nPART II\n{contents}\n{head}\n{report[first]}"))
    before = numbers[numbers.index(first) - 1]
    assert found.pop(first).endswith(report.pop(first))
    assert found.pop(before).startswith(report.pop(before))
    assert found == report


def test_the_heading_of_a_part_belongs_to_no_item() -> None:
    text = "Item 4. Mine Safety Disclosures\nNone.\n\nPART II\n\nItem 5. Market for Common Equity\nNone.\n"
    assert sections(text)["4"] == "Item 4. Mine Safety Disclosures\nNone."


@pytest.mark.parametrize("number", ["7", "8", "1A"])
def test_a_second_heading_that_fits_makes_the_item_and_the_one_before_it_unsure(number: str) -> None:
    report = annual_report()
    numbers = list(report)
    before = numbers[numbers.index(number) - 1]
    report[before] += f"\n\nItem {number}. {TITLES_10K[number]} and more\n\nA second text."
    found = find_items("\n\n".join(report.values()), "10-K")
    assert set(found.unsure) == {number, before}
    assert {item.number for item in found.found} == set(numbers) - {number, before}


def test_a_second_heading_before_the_signatures_is_unsure() -> None:
    text = "Item 8. Financial Statements\n\nText.\n\nItem 9A. Controls and Procedures\n\nOne.\n\n"
    text += "Item 9A. Controls and Procedures of others\n\nTwo.\n\nSIGNATURES\n"
    assert find_items(text, "10-K").unsure == ("8", "9A")


def test_headings_of_pages_do_not_end_a_section() -> None:
    report = annual_report()
    line = report["7"].split("\n")[0]
    report["7"] += (
        f"\n12\n{line}\nMore text.\n13\n{line}\nAnd more.\nItem 7. Management\u2019s Discussion (continued)\nEnd."
    )
    assert sections("\n\n".join(report.values())) == report


def test_headings_of_pages_can_have_more_text_than_the_first() -> None:
    report = annual_report()
    line = report["8"].split("\n")[0]
    report["8"] += "".join(
        f"\n\n{page} EXAMPLE FORM 10-K\nPART II\n{line} \u2014 Notes {page}\nA note." for page in (61, 62, 63)
    )
    assert sections("\n\n".join(report.values())) == report


def test_an_unknown_title_makes_its_item_and_the_section_around_it_unsure() -> None:
    report = annual_report()
    report["9B"] = "Item 9B. A Word of Thanks\n\nThank you."
    found = find_items("\n\n".join(report.values()), "10-K")
    assert set(found.unsure) == {"9A", "9B"}


@pytest.mark.parametrize(
    "sentence",
    [
        "Item 7 of this report has more.",
        "Item 1A, \u201cRisk Factors,\u201d of our last report has more.",
        "Item 8 \u201cFinancial Statements\u201d has more.",
        "We describe risks that could affect our business in\nItem 1A. Risk Factors of this report.",
    ],
)
def test_references_at_the_start_of_a_line_are_no_headings(sentence: str) -> None:
    report = annual_report()
    report["3"] += f"\n\n{sentence}\n\nMore."
    assert sections("\n\n".join(report.values())) == report


def test_items_of_a_current_report_can_have_any_order() -> None:
    parts = {
        "7.01": "Item 7.01 Regulation FD Disclosure.\n\nA call is on Monday.",
        "2.02": "Item 2.02.\nResults of Operations and Financial Condition.\n\nSales rose.",
        "9.01": "ITEM 9.01\tFinancial Statements and Exhibits\n(d) Exhibits.\n99.1\tRelease",
    }
    text = "FORM 8-K\n\n" + "\n\n".join(parts.values()) + "\n\nSIGNATURE\nBy: A"
    assert sections(text, "8-K/A") == parts
    contents = "TABLE OF CONTENTS\nItem 7.01 Regulation FD Disclosure\nSIGNATURE\nEXHIBIT INDEX\n\n"
    assert sections(contents + text, "8-K") == parts


def test_a_list_of_another_form_in_a_current_report_has_no_items_of_it() -> None:
    text = "Item 8.01 Other Events.\nA report.\n\nItem 9.01 Financial Statements and Exhibits\n(d) Exhibits\n99.1 "
    text += "Parts of the annual report:\nItem 1. Business\nItem 7. Financial Statements\nItem 8. Financial Statements"
    assert sections(text, "8-K") == {"8.01": text[: text.index("\n\nItem 9")], "9.01": text[text.index("Item 9") :]}


QUARTER = """<p>THE COMPANY</p><table><tr><td></td><td>Page</td></tr><tr><td>Part I</td></tr>
<tr><td>Item 1.</td><td>Financial Statements</td></tr>{statements}
<tr><td>Item 2.</td><td>Management's Discussion and Analysis</td><td>30</td></tr>
<tr><td>Item 4.</td><td>Controls and Procedures</td><td>41</td></tr>
<tr><td>Part II</td></tr><tr><td>Item 1.</td><td>Legal Proceedings</td><td>41</td></tr>
<tr><td>Item 6.</td><td>Exhibits</td><td>42</td></tr></table>
<p>Item 1. Financial Statements</p><table><tr><td></td><td>2024</td><td>2023</td></tr>
<tr><td>Sales</td><td>$</td><td>12</td><td>$</td><td>11</td></tr></table>
<p>Item 2. Management's Discussion and Analysis</p><p>Sales rose.</p><p>Item 4. Controls and Procedures</p><p>Good.</p>
<p>Item 1. Legal Proceedings</p><p>None.</p><p>Item 6. Exhibits</p><p>None.</p>"""


@pytest.mark.parametrize("num_statements", [0, 1, 12, 60])
def test_items_are_the_same_for_both_forms_of_tables(num_statements: int) -> None:
    rows = (f"<tr><td></td><td>Statement {n}</td><td>{n}</td></tr>" for n in range(num_statements))
    page = QUARTER.format(statements="".join(rows))
    lines = normalise(to_text(page, main_content=False).text)
    grids = normalise(to_text(page, main_content=False, tables="markdown").text)
    assert "| Sales | $12 | $11 |" in grids and "|" not in lines
    names = ["I.1", "I.2", "I.4", "II.1", "II.6"]
    assert list(sections(lines, "10-Q")) == list(sections(grids, "10-Q")) == names
    assert all("Sales" in sections(text, "10-Q")["I.1"] for text in (lines, grids))
    assert {name: sections(lines, "10-Q")[name] for name in names[1:]} == {
        name: sections(grids, "10-Q")[name] for name in names[1:]
    }


def test_items_of_a_quarterly_report_are_told_apart_by_part() -> None:
    text = (
        "PART I\nItem 1. Financial Statements\nx\nItem 2. Management's Discussion and Analysis\nx\n"
        "Part II. Other Information\nItem 1. Legal Proceedings\nx\nItem 1A. Risk Factors\nx\nItem 6. Exhibits\nx"
    )
    assert list(sections(text, "10-Q")) == ["I.1", "I.2", "II.1", "II.1A", "II.6"]


def test_a_form_without_items_has_none() -> None:
    assert titles_of("EX-99.1") is None
    assert find_items("Item 1. Business\nx", "EX-99.1").found == ()


@pytest.mark.parametrize("seed", range(200))
def test_sections_are_in_order_disjoint_and_begin_with_their_heading(seed: int) -> None:
    rng = random.Random(seed)
    lines = [f"Item {number}. {title}" for number, title in TITLES_10K.items()]
    lines += [
        "PART II",
        "SIGNATURES",
        "Item 7 of this",
        "Items 1 and 2. Business",
        "Item 5. Other",
        "text",
        "Sales, in",
    ]
    text = "\n".join(rng.choice(lines) for _ in range(rng.randrange(40)))
    found = find_items(text, "10-K")
    assert not {item.number for item in found.found} & set(found.unsure)
    end = 0
    for item in found.found:
        assert end <= item.start < item.end <= len(text)
        assert text[item.start :].startswith(f"Item {item.number}. {TITLES_10K[item.number]}")
        end = item.end


@pytest.mark.parametrize("text", ["Item 1. Business " * 50_000, "Item 1. Business\n" * 50_000, "PART I\n" * 100_000,
                                  "Item 1" + "(a)" * 300_000, "Item " + " " * 300_000])  # fmt: skip
def test_hostile_texts_give_no_items(text: str) -> None:
    assert len(find_items(text, "10-K").found) <= 1


def test_declared_items_have_their_numbers() -> None:
    assert declared_number("Results of Operations and Financial Condition") == "2.02"
    assert declared_number("5.07") == "5.07"
    assert declared_number("06b") is None
