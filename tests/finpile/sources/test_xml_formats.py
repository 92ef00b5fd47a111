"""Journal articles (JATS), patents (USPTO) and debates (TEI), and the XML that all of them refuse."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.sources.readers.xml_text import MAX_DEPTH, Rules, XmlError, paragraphs, parse_xml
from tests.support.reading import Items, read_as, read_folder, split

ARTICLE = """<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS//EN" "JATS-journalpublishing1.dtd">
<article article-type="research-article" xmlns:xlink="http://www.w3.org/1999/xlink"><front>
<journal-meta><journal-title>PLOS ONE</journal-title></journal-meta>
<article-meta><article-id pub-id-type="doi">10.1/x</article-id>
<title-group><article-title>On <italic>oil</italic></article-title></title-group>
<pub-date><year>2012</year><month>4</month></pub-date><pub-date><day>3</day><month>2</month><year>2012</year></pub-date>
<permissions><license xlink:href="http://creativecommons.org/licenses/by/4.0/"><p>Free.</p></license></permissions>
<abstract><title>Aim</title><p>We  drill.</p></abstract></article-meta></front>
<body><sec><title>Method</title><p>Deep &#8804; 9 km <xref>[1]</xref>.</p>
<table-wrap><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></table-wrap></sec></body>
<back><ref-list><ref>Nobody 1999</ref></ref-list></back></article>"""
PATENT = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE us-patent-grant SYSTEM "us-patent-grant-v42-2006-08-23.dtd" [ ]>
<us-patent-grant><us-bibliographic-data-grant><publication-reference><document-id><country>US</country>
<doc-number>0{}</doc-number><kind>B2</kind><date>20090421</date></document-id></publication-reference>
<invention-title>A pump</invention-title></us-bibliographic-data-grant>
<abstract><p>It pumps.</p></abstract><description><heading>BACKGROUND</heading><p>Oil <b>1</b>.</p></description>
<claims><claim><claim-text>1. A pump:<claim-text>with a valve.</claim-text></claim-text></claim></claims>
</us-patent-grant>
"""
DEBATE = """<TEI xmlns="http://www.tei-c.org/ns/1.0" xml:lang="en"><teiHeader><fileDesc>
<titleStmt><title>Sitting</title></titleStmt>
<sourceDesc><bibl><date when="2015-10-26">26.10.2015</date></bibl></sourceDesc></fileDesc></teiHeader>
<text><body><div><note>The chair</note><u><seg><s><w>Good</w> <w join="right">day</w> <pc>.</pc></s></seg>
<vocal><desc>laughs</desc></vocal><seg>We begin.</seg></u></div></body></text></TEI>"""


def read(name: str, data: str | bytes) -> Items:
    return split(read_as(name, data, "a.xml"))


def test_article_has_title_abstract_body_and_its_earliest_date() -> None:
    [document], [] = read("jats", ARTICLE)
    assert document == RawDocument(
        locator="a.xml",
        text="On oil\n\nAim\n\nWe drill.\n\nMethod\n\nDeep ≤ 9 km [1].\n\na\tb\n\n1\t2",
        timestamp=datetime(2012, 2, 3, tzinfo=UTC),
        timestamp_origin="header",
        url="https://doi.org/10.1/x",
        title="On oil",
        meta={
            "type": "research-article",
            "journal": "PLOS ONE",
            "license": "http://creativecommons.org/licenses/by/4.0/",
        },
    )


def test_patents_of_a_file_are_documents() -> None:
    sequence = '<?xml version="1.0"?>\n<sequence-cwu>ACGT</sequence-cwu>\n'
    [first, second], [row] = read("uspto", PATENT.format(7) + sequence + PATENT.format(8))
    assert first.text == "A pump\n\nIt pumps.\n\nBACKGROUND\n\nOil 1.\n\n1. A pump:\n\nwith a valve."
    assert (first.locator, first.timestamp) == ("a.xml#0", datetime(2009, 4, 21, tzinfo=UTC))
    assert (first.meta, second.meta["patent"]) == ({"patent": "07", "kind": "B2"}, "08")
    assert (row.reason, row.removed_text.decode()) == ("not_text", sequence)


def test_broken_patent_costs_itself_alone() -> None:
    broken = PATENT.format(8).replace("</abstract>", "</abstact>")
    documents, [row] = read("uspto", PATENT.format(7) + broken + PATENT.format(9))
    assert [document.meta["patent"] for document in documents] == ["07", "09"]
    assert (row.reason, row.removed_text.decode()) == ("unreadable_record", broken.rstrip("\n"))


def test_debate_has_its_paragraphs_and_joined_words() -> None:
    [document], [] = read("tei", DEBATE)
    assert document.text == "The chair\n\nGood day.\n\nWe begin."
    assert (document.title, document.timestamp) == ("Sitting", datetime(2015, 10, 26, tzinfo=UTC))
    assert document.meta == {"language": "en"}


@pytest.mark.parametrize("name", ["jats", "tei", "uspto"])
@pytest.mark.parametrize(
    ("data", "detail"),
    [
        ("<?xml version='1.0'?><other/>", "<other>"),
        ("<?xml version='1.0'?><a><b></a>", "mismatched tag"),
        ("<?xml version='1.0' encoding='none'?><a/>", "unknown encoding"),
        ("<?xml version='1.0'?>" + "<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "nested more than 500 deep"),
        ("<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", ""),
    ],
)
def test_other_and_broken_xml_is_a_row(name: str, data: str, detail: str) -> None:
    documents, [row] = read(name, data)
    assert documents == [] and detail in row.detail and row.removed_text == data.encode()


def test_entities_that_multiply_are_refused() -> None:
    """A billion laughs: https://libexpat.github.io/doc/api/latest/#billion-laughs."""
    entities = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 10))
    bomb = f"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e0 'laugh at this'>{entities}]><a>&e9;</a>"
    with pytest.raises(XmlError, match="amplification"):
        parse_xml(bomb.encode())


def test_paragraphs_have_the_text_of_all_elements_that_are_not_skipped() -> None:
    root = parse_xml(b"<r>a<p>b<i>c</i>d<x>no</x>e</p>f<p/>g</r>")
    assert paragraphs(root, Rules(blocks=("p",), skipped=("x",))) == ["a", "bcde", "f", "g"]


# --- real files


def read_all(folder: Path, name: str, path: str) -> tuple[list[RawDocument], Counter[str]]:
    source = SourceConfig(name="N", dataset="D", format=name, paths=(path,), members=("*xml",))
    documents, rows, _ = read_folder(source, folder)
    return documents, Counter(row.reason for row in rows)


def unpacked(archive: Path) -> bytes:
    return subprocess.run(["tar", "-I", "zstd", "-xOf", str(archive)], check=True, capture_output=True).stdout


def test_articles_of_pubmed_central(real_data: Callable[[str], Path]) -> None:
    folder = real_data("pubmed_central")
    documents, rows = read_all(folder, "jats", "pmc_nxml_samples.tar.zst")
    assert (len(documents), rows) == (8, {"no_record": 1})  # one file is a PubMed record, with no article
    assert all(document.timestamp and document.title for document in documents)


@pytest.mark.slow
def test_articles_of_plos(real_data: Callable[[str], Path]) -> None:
    archive = real_data("pubmed_central") / "plos_jats_xml.tar.zst"
    documents, rows = read_all(archive.parent, "jats", archive.name)
    listed = subprocess.run(["tar", "-I", "zstd", "-tf", str(archive)], check=True, capture_output=True, text=True)
    assert len(documents) + rows.total() == sum(line.endswith(".xml") for line in listed.stdout.splitlines())
    assert len(documents) > 100


@pytest.mark.slow
def test_patents_of_the_office(real_data: Callable[[str], Path]) -> None:
    archive = real_data("uspto") / "uspto_grant_xml.tar.zst"
    documents, rows = read_all(archive.parent, "uspto", archive.name)
    declarations = len(re.findall(rb"<\?xml\s", unpacked(archive)))
    assert len(documents) + rows.total() - rows["no_record"] - rows["empty_file"] == declarations
    assert len(documents) > 250


def test_debates_of_parlamint(real_data: Callable[[str], Path]) -> None:
    documents, rows = read_all(real_data("europarl"), "tei", "parlamint_tei.tar.zst")
    assert (len(documents), rows) == (7, {})
    assert all(document.timestamp and document.timestamp.year == 2015 for document in documents)


def test_paragraphs_in_a_cell_are_in_the_line_of_its_row() -> None:
    table = "<table><tr><td><p>a</p><p>b</p></td><td>1<list><list-item><p>x</p></list-item></list></td></tr></table>"
    rules = Rules(blocks=("p", "tr", "list-item"), cells=("td",))
    assert paragraphs(parse_xml(f"<body>{table}<p>c</p></body>".encode()), rules) == ["a b\t1 x", "c"]
