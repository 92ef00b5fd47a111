"""Dumps of MediaWiki: pages, what is not an article, and wikitext as plain text."""

from __future__ import annotations

import bz2
import random
import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.config.limits import LimitsConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import list_inputs, read_file
from finpile.sources.formats.wikipedia.wikitext import is_redirect, to_text
from tests.support.reading import Items, read_folder, read_input, split

SOURCE = SourceConfig(name="Wikipedia", dataset="Wikipedia", format="wikipedia", paths=("*",))
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="de">\n<siteinfo>\n'
    "<base>https://de.wikipedia.org/wiki/Wikipedia:Hauptseite</base>\n<namespaces>\n"
    '<namespace key="0" case="first-letter" />\n<namespace key="6" case="first-letter">Datei</namespace>\n'
    "</namespaces>\n</siteinfo>\n"
)
TAIL = "</mediawiki>\n"


def page(text: str, title: str = "Öl &amp; Gas", space: int = 0, more: str = "", model: str = "wikitext") -> str:
    return (
        f"<page>\n<title>{title}</title>\n<ns>{space}</ns>\n<id>7</id>\n{more}<revision>\n<id>9</id>\n"
        f"<timestamp>2022-03-04T05:06:07Z</timestamp>\n<contributor><username>x</username></contributor>\n"
        f'<model>{model}</model>\n<text xml:space="preserve">{text}</text>\n</revision>\n</page>\n'
    )


def read(*pages: str, head: str = HEAD, tail: str = TAIL) -> Items:
    return split(read_input(SOURCE, head + "".join(pages) + tail, "a.xml"))


def test_a_page_is_a_document_with_the_date_of_its_revision() -> None:
    [document], [] = read(page("'''Öl''' &lt;!-- x --&gt;ist [[Stoff|ein Stoff]].[[Datei:a.png|thumb|Ein Bild]]"))
    assert document == RawDocument(
        locator=f"a.xml#{len(HEAD)}",
        text="Öl ist ein Stoff.",
        timestamp=datetime(2022, 3, 4, 5, 6, 7, tzinfo=UTC),
        timestamp_origin="header",
        url="https://de.wikipedia.org/wiki/Öl_&_Gas",
        title="Öl & Gas",
        meta={"page": "7", "revision": "9"},
    )


def test_what_is_no_article_is_in_the_ledger_with_its_bytes() -> None:
    pages = {
        "redirect": page("#WEITERLEITUNG [[Gas]]"),
        "other_namespace": page("Talk.", space=1),
        "not_text": page("return {}", model="Scribunto"),
        "empty_text": page("{{stub}}"),
        "unreadable_record": "<page><title>x</title></page>\n",
    }
    [document], rows = read(*pages.values(), page("Text."))
    assert document.text == "Text."
    assert {row.reason: row.removed_text.decode() for row in rows} == {
        reason: text.rstrip("\n") for reason, text in pages.items()
    }


def test_last_revision_of_a_page_is_read() -> None:
    both = page("New.").replace("<revision>", "<revision><text>Old.</text></revision><revision>")
    assert [document.text for document in read(both)[0]] == ["New."]


def test_cut_dump_gives_its_whole_pages_and_a_row() -> None:
    [document], [row] = read(page("One."), page("Two.")[:60], tail="")
    assert (document.text, row.reason) == ("One.", "truncated_file")
    assert row.removed_text.startswith(b"<page>")


def test_page_above_the_limit_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(HEAD + page("x " * 100_000) + page("Two.") + TAIL)
    source = SourceConfig(
        name="W", dataset="W", format="wikipedia", paths=("a.xml",), limits=LimitsConfig(record="64 KiB")
    )
    [row, document] = [item for file in list_inputs(source, str(tmp_path)) for item in read_file(file, source)]
    assert isinstance(row, Removal) and row.reason == "too_large"
    assert isinstance(document, RawDocument) and document.text == "Two."


# --- wikitext


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("'''Oil''' and ''gas''", "Oil and gas"),
        ("a<ref name=x>{{cite|y}}</ref> b<ref name=x /> c", "a b c"),
        ("{{Infobox|a={{b|c}}\n|d=[[e]]}}Text", "Text"),
        ("{{lang|fr|Bonjour}} {{nowrap|5 km}} {{convert|3|mi|km}}", "Bonjour 5 km 3 mi"),
        ("a{{snd}}b {{formatnum:1000}}", "a – b 1000"),
        ("[[a]] [[b|c]] [[:Category:d]] [[Category:e]] [[Mercury (planet)|]]", "a c Category:d Mercury"),
        ("[[File:x.png|thumb|A [[link]] and {{t}}]]After", "After"),
        ("[http://x.org label] [http://x.org] http://y.org", "label http://y.org"),
        ("<math>a^2 < b</math> <nowiki>[[x]] ''y''</nowiki>", "a^2 < b [[x]] ''y''"),
        ("a<br/>b &amp;amp; &lt;c&gt; <!-- d", "a\nb &amp; <c>"),
        ("x (; , ) y (, z)", "x y (z)"),
        ("== A ==\n=== B ===\ntext\n== C ==\n== D ==\n", "A\n\nB\n\ntext"),
        ("* a\n** b\n# c\n: d\n----\ne", "- a\n- b\n- c\nd\n\ne"),
        (
            '{| class=x\n|+ Title\n! a !! b\n|-\n| style="x" | 1 || [[two|2]]\n|-\n| 3\n|}\nend',
            "Title\na\tb\n1\t2\n3\n\nend",
        ),
        ("{|\n| a ||{{x}}||bgcolor=y|{{x}}|| b |||| c\n|}", "a\tb\tc"),
        ("a\n{{s-start}}\n{{s-bef|b}}\n|-\n{{s-end}}\n|}\nc", "a\n\nc"),
        ("{|\n!| a\n!| b\n|-\n| 1\n|style=x| 2\n|}", "a\tb\n1\t2"),
        ("{|\n|rowspan=2style=\"x\"| a\n|a='|' b = c| d\n|}", "a\td"),
        ("a [[Bild:x y.JPG|mini|Ein Bild]] [[Lêer:x.svg]] [[Node: js|b]] [[:Datei:x.png]]", "a b Datei:x.png"),
        ("a\n[[fr:Pétrole]]\n[[be-x-old:Нафта]]\n[[ceb:X]] [[:fr:b]] [[pi]] [[doi:10.1/x]] [[mw:Help]]",
         "a\n\nfr:b pi doi:10.1/x mw:Help"),
        ("{{unclosed [[a]]", "unclosed a"),
        ("{{sortname|Adam|Smith}} {{Sortname|Eve|[[Jones]]|x|nolink=1}} {{sortname|Li}}", "Adam Smith Eve Jones Li"),
        ("{{As of|2014|lc=y}} {{as of|2014}} {{circa|300}} {{HMS|Ajax|22|6}} {{US$|5}}",
         "as of 2014 As of 2014 c. 300 HMS Ajax US$5"),
        ("{{nihongo|'''Aikido'''|合気道|Aikidō}} {{chem|C|H|2|O}} {{angbr|a}} {{ill|Öl|de|Öl}}", "Aikido CH2O a Öl"),
        ("{{frac|3}} {{frac|1|2}} {{frac|5|1|2}} {{sfrac|a|b}} {{val|6.2|e=18|u=m}} 2{{e|24}}",
         "1/3 1/2 5 1/2 a/b 6.2×10^18 m 2×10^24"),
        ("it{{'s}} a{{mdashb}}b {{yes}} {{no|never}} {{won}} {{flag|France}}{{flagicon|France}}",
         "it's a—b Yes never Won France"),
        ("{{lang-ru|Анна|Anna|lit}} {{script|Copt|Ⲁ}} {{script/Hebrew|א}} {{sort|2|two}}", "Анна Ⲁ א two"),
        ("{{circa}} {{val}} {{convert|3}} {{sortname}} {{frac}} {{chem}} {{langx|ru}}|", "|"),
        ("a}} ]] |} b", "a |} b"),
        ("{{convert|5|to|10|km|mi|0}} {{convert|6|ft|2|in|cm}} {{convert|2|x|3|x|4|m}} {{cvt|3700|-|5500|m}}",
         "5 to 10 km 6 ft 2 in 2 x 3 x 4 m 3700–5500 m"),
        ("{{reign|1152|1190}} {{fl.|300|}} {{circa|1500|1600|lk=yes}} {{val|5|ul=km}}",
         "r. 1152–1190 fl. 300 c. 1500–1600 5 km"),
        ("main() or ({{t}}) and ({{t}}; )", "main() or and"),
        ("if x<y and\n\ny>z, List<String> <span>a</span><references /><br\n/>", "if x<y and\n\ny>z, List<String> a"),
    ],
)  # fmt: skip
def test_wikitext_becomes_text(wikitext: str, text: str) -> None:
    assert re.sub(r" {2,}", " ", to_text(wikitext)) == text


@pytest.mark.parametrize(
    "unit",
    ["{{", "[[", "{|\n", "<ref>", "{{[[", "<math>", "<!--", "}}", "{{a|", "[[a|{{", "\n|}", "[http://", "(", "<a"],
)
def test_text_after_many_marks_that_never_close_is_kept(unit: str) -> None:
    """Nested templates and links are a bomb for parsers with recursion or backtracking. A comment hides the rest."""
    text = to_text(unit * (60_000 // len(unit)) + "\n\nThis is the last line.")
    assert text.endswith("This is the last line.") == (unit != "<!--")


@pytest.mark.parametrize(
    "text",
    [
        "a" + " " * 300_000 + "b",
        "[http://a" + " " * 300_000,
        "[http://" + "a" * 300_000,
        "[[a:b" + " " * 300_000 + "c|]]",
        "{|\n|a=" + "bb=" * 1000 + "\n|}",
        "{|\n|" + "a=bb= " * 1000 + "\n|}",
    ],
)
def test_long_runs_are_read_in_linear_time(text: str) -> None:
    """A search that backtracks takes minutes, and hours in the attributes of a cell."""
    assert to_text(text + "\n\nThis is the last line.").endswith("This is the last line.")


def test_long_beginnings_of_redirects_and_pages_are_read_in_linear_time() -> None:
    assert not is_redirect("#REDIRECT" + " " * 300_000 + "x")
    pages = "<page><title>a</title><revision>" + "<text>" * 100_000 + "</revision></page>"
    [], [row] = read(pages)
    assert row.reason == "unreadable_record"


def test_any_text_of_marks_is_read() -> None:
    draw = random.Random(5)
    marks = [
        "{{",
        "}}",
        "[[",
        "]]",
        "{|",
        "|}",
        "|",
        "\n",
        "<ref>",
        "</ref>",
        "''",
        "=",
        "a ",
        "<nowiki>",
        "&lt;",
        "File:",
    ]
    for _ in range(300):
        text = "".join(draw.choices(marks, k=60))
        assert set(to_text(text)) <= {*text, "<"}, "no text is made up, but for entities"


# --- real dumps


def read_all(folder: Path, pattern: str) -> tuple[list[RawDocument], Counter[str]]:
    source = SourceConfig(name="Wikipedia", dataset="Wikipedia", format="wikipedia", paths=(pattern,))
    documents, rows, _ = read_folder(source, folder)
    return documents, Counter(row.reason for row in rows)


def test_pages_of_a_dump_are_documents_or_rows(real_data: Callable[[str], Path]) -> None:
    folder = real_data("wikipedia")
    documents, rows = read_all(folder, "enwiki*.bz2")
    [file] = folder.glob("enwiki*.bz2")
    dump = bz2.decompress(file.read_bytes())
    assert len(documents) + rows.total() == dump.count(b"<page>") == 206
    assert rows == {"redirect": 99, "other_namespace": 1}
    text = "\n".join(document.text for document in documents)
    marks = re.findall(r"\{\{|\}\}|\[\[|\]\]|\{\||\|\}|<ref|'''|^=+.*=+$", text, re.MULTILINE)
    assert 1000 * len(marks) / len(text) < 0.02
    assert len(text) > 2_900_000


def test_dump_that_is_not_utf8_is_a_row(real_data: Callable[[str], Path]) -> None:
    """The file is UTF-16; dumps of MediaWiki are UTF-8."""
    documents, rows = read_all(real_data("wikipedia"), "bgwiki*.bz2")
    assert (documents, rows) == ([], {"no_record": 1})
