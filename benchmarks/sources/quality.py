"""Pages as plain text beside peers, in one run: speeches of the Federal Reserve, and articles of Wikipedia.

    python -m benchmarks.sources.quality [--data DATA] [--results FOLDER]

Speeches: words are runs of ASCII letters and digits, in lower case. Precision is the share of a tool's words that the
reference has, counting each word as often as it occurs; recall the share of the reference's words that the tool has;
F1 their harmonic mean; all three are means over pages. There are two references: the text beside each page, made by
others, without notes; and the words of the element `article` of the page itself, whose name a tool may know. A text is
*whole* if it has no menu of the site and its last eight words end in the last fifth of the article before its notes, or
if the page has no such element.

Read the two references together: all tools have the notes as words that the texts do not have, but jusText, which
leaves out many of them, and with them a tenth of the article.

Articles: leftover markup is what the patterns of the table below find in a tool's text. Redirects are not articles.
Elements whose content is not wikitext (`math`, `code`, `nowiki`, ...) are removed from the pages first, since their
braces and bars are text; a page in which wikitext is escaped as in XML is unescaped first. A tool that drops all text
has no leftover markup; therefore the characters of all texts, and the share of prose kept: of the runs of ten words or
more between marks, each without its first and last word, outside of templates, references, comments, tables, files and
galleries, those whose words are in the tool's text in the same order.

finpile's converter was mended after these pages were read (header cells, rows outside of tables, empty cells, links to
other languages); before that it left 127 marks in the single pages, and 19 in the dump.

Peers are compared where they are installed: `pip install trafilatura justext lxml_html_clean mwparserfromhell
wikiextractor`.
"""

from __future__ import annotations

import argparse
import bz2
import html
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import members_of
from finpile.clean.html.page import to_text as page_to_text
from finpile.clean.stage.normalise import normalise
from finpile.sources.bytes.decoding import decode
from finpile.sources.formats.wikipedia import wikitext

Tool = Callable[[str], str]
PEERS = ("resiliparse", "trafilatura", "jusText", "mwparserfromhell", "wikiextractor")
_OURS = "finpile"
_ENWIKI = "wikipedia/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_NUM_WORST = 10
#: What a reader found on the pages with most marks.
_READ: Mapping[str, str] = {
    "raith_rovers": "the data have the page without its line breaks, and tables begin a line",
    "United-Kingdom": "the page lacks the beginning of a reference",
    "Bodmin": "a link to a category that the page shows",
    "list": "a tag before the bar of a cell",
    "ASCII": "text",
    "Afghanistan": "text",
}
#: The first words of the site's menu.
_MENU = "Main Menu Toggle Button"
#: The first note; its number in the speech has an anchor of the same form.
_NOTES = re.compile(r'<a\b[^<>]*\bname="f(?:n|ootnote)?1"')
_SCRIPT = re.compile(r"<(script|style|noscript)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_NUM_LAST_WORDS = 8
_LAST_PART = 0.8
#: Names of the namespaces of files and categories in the heads of the dumps from which the single pages are.
_NAMESPACES = wikitext.NAMESPACES | {"datei", "kategorie", "kategori", "lêer"}
#: Marks of wikitext that no reader of a page sees.
LEFTOVER: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "braces": ("marks of templates", re.compile(r"\{\{|\}\}")),
    "table": ("marks of tables and rows at the start of a line", re.compile(r"^[ \t]*(?:\{\||\|\}|\|-)", re.MULTILINE)),
    "bar": ("bars, as between parameters and cells", re.compile(r"\|")),
    "link": ("marks of links", re.compile(r"\[\[|\]\]")),
    "address": ("marks of links with an address", re.compile(r"\[(?:https?:|ftp:)?//|\[mailto:")),
    "quotes": ("bold and italics", re.compile(r"''+")),
    "tag": ("tags", re.compile(
        r"</?(?:ref|references|br|hr|p|div|span|small|big|su[bp]|font|center|gallery|nowiki|table|t[rdh]|[suib]|poem"
        r"|blockquote|timeline|includeonly|noinclude|onlyinclude)\b[^<>]*>", re.IGNORECASE)),
    "comment": ("marks of comments", re.compile(r"<!--|-->")),
    "attribute": ("attributes of cells and tags", re.compile(
        r"\b(?:class|style|colspan|rowspan|align|valign|width|bgcolor|scope)\s*=\s*[\"'\w#]")),
    "file": ("prefixes of files and categories", re.compile(
        r"\b(?:file|image|datei|bild|lêer|category|kategorie|kategori):\S", re.IGNORECASE)),
    "option": ("options of files before their caption", re.compile(r"\b(?:thumb|mini|\d+px)\|")),
    "language": ("links to other languages, a line each", re.compile(r"^[a-z]{2}(?:-[a-z-]+)?:\S.*$", re.MULTILINE)),
    "heading": ("marks of headings", re.compile(r"^==+.*==+[ \t]*$", re.MULTILINE)),
    "list": ("marks of lists", re.compile(r"^[*#:;]", re.MULTILINE)),
    "entity": ("entities", re.compile(r"&(?:[a-z]{2,8}|#\d+);")),
    "switch": ("switches", re.compile(r"__[A-Z]{3,}__")),
}  # fmt: skip
_OPAQUE = re.compile(
    r"<(math|chem|code|pre|nowiki|source|syntaxhighlight|tt)\b[^<>]*(?<!/)>.*?</\1\s*>", re.DOTALL | re.IGNORECASE
)
_REDIRECT = re.compile(r"\s*#\w+\s*:?\s*\[\[")
_NOT_PROSE = [
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        r"<!--.*?-->",
        r"<ref\b[^<>]*/>",
        r"<(ref|gallery|timeline|imagemap|score)\b[^<>]*>.*?</\1\s*>",
    )
]
_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\|).)*?\n[ \t]*\|\}", re.DOTALL)
_FILE = re.compile(r"\[\[[^\[\]|]*:(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]")
_MARKS = re.compile(r"[\[\]{}<>|=*#:;&_\n]|''+|https?\S*")
_MIN_RUN = 8
_MAX_NESTED = 20


class Page(NamedTuple):
    """A page with its name, as its source has it."""

    name: str
    content: str


class Overlap(NamedTuple):
    """How far a text has the words of its reference."""

    precision: float
    recall: float
    f1: float


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def overlap(words: Iterable[str], reference: Iterable[str]) -> Overlap:
    """Zero where one side has no words."""
    ours, theirs = Counter(words), Counter(reference)
    common = (ours & theirs).total()
    if not common:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(common / ours.total(), common / theirs.total(), 2 * common / (ours.total() + theirs.total()))


def leftover(text: str) -> Counter[str]:
    """Marks of each kind."""
    return Counter({kind: len(pattern.findall(text)) for kind, (_, pattern) in LEFTOVER.items()})


def prose_runs(source: str) -> list[str]:
    """Words of the runs of prose in wikitext, each with a space between its words.

    A run is without its first and last word: words have marks in them (`[[bond]]s`).
    """
    for pattern in _NOT_PROSE:
        source = pattern.sub("\n", source)
    for _ in range(_MAX_NESTED):
        source, count = _INNERMOST.subn("\n", source)
        if not count:
            break
    runs = [words_of(run)[1:-1] for run in _MARKS.split(_FILE.sub("\n", source))]
    return [" ".join(run) for run in runs if len(run) >= _MIN_RUN]


def num_kept(runs: Iterable[str], text: str) -> int:
    """Runs whose words are in the text in this order."""
    words = f" {' '.join(words_of(text))} "
    return sum(f" {run} " in words for run in runs)


def is_whole(text: str, article: str | None) -> bool:
    """Whether a text beside a page ends where the speech does; `article` is the page's element, None without one."""
    words = words_of(text)
    if not words or _MENU in text:
        return False
    if article is None:
        return True
    notes = [found.start() for found in _NOTES.finditer(article)]
    speech = " ".join(words_of(_text_of(article[: notes[-1]] if notes else article)))
    last = " ".join(words[-_NUM_LAST_WORDS:])
    at = speech.rfind(last)
    return at >= 0 and at + len(last) >= _LAST_PART * len(speech)


def _text_of(markup: str) -> str:
    body = HTMLTree.parse(_SCRIPT.sub(" ", markup)).body
    return body.text if body else ""


def article_of(page: str) -> str | None:
    """The markup of the page's element `article`."""
    document = HTMLTree.parse(page).document
    found = document.query_selector("#article") if document else None
    return found.html if found else None


def _peer(module: str, make: Callable[[Any], Tool]) -> Tool | None:
    """The tool of a peer; None if it is not installed."""
    return make(import_module(module)) if find_spec(module.partition(".")[0]) else None


def page_tools() -> dict[str, Tool]:
    """Tools from HTML to text: those that search for the main content, then those that take the whole page."""
    found: dict[str, Tool | None] = {
        f"{_OURS}, page of the Web": lambda page: normalise(page_to_text(page, main_content=True).text),
        "resiliparse, main content": lambda page: extract_plain_text(page, main_content=True),
        "trafilatura": _peer("trafilatura", lambda it: lambda page: it.extract(page) or ""),
        "jusText": _peer("justext", _paragraphs),
        f"{_OURS}, whole page": lambda page: normalise(page_to_text(page, main_content=False).text),
        "resiliparse, whole page": extract_plain_text,
    }
    return {name: tool for name, tool in found.items() if tool}


def _paragraphs(module: Any) -> Tool:
    words = module.get_stoplist("English")
    return lambda page: "\n".join(found.text for found in module.justext(page, words) if not found.is_boilerplate)


def wikitext_tools() -> dict[str, Tool]:
    found: dict[str, Tool | None] = {
        _OURS: lambda page: wikitext.to_text(page, _NAMESPACES),
        "mwparserfromhell, strip_code": _peer(
            "mwparserfromhell", lambda it: lambda page: str(it.parse(page).strip_code())
        ),
        "wikiextractor": _peer("wikiextractor.extract", _extractor),
    }
    return {name: tool for name, tool in found.items() if tool}


def _extractor(module: Any) -> Tool:
    return lambda page: "\n".join(module.Extractor(1, 1, "", "Page", [page]).clean_text(page, html_safe=False))


def speeches(data: Path) -> list[tuple[Page, str]]:
    """Pages with the texts beside them."""
    folder = data / "fin_centralbank"
    pages = {Path(name).stem: raw for name, raw in members_of(folder / "fed_speeches_html_sample.tar.zst", r"\.htm$")}
    texts = {Path(name).stem: raw for name, raw in members_of(folder / "fed_speeches_txt.tar.zst", r"\.txt$")}
    encodings = ("utf-8", "cp1252")
    return [
        (Page(name, decode(raw, encodings)[0]), decode(texts[name], encodings)[0])
        for name, raw in sorted(pages.items())
    ]


def single_pages(data: Path) -> Iterator[Page]:
    """Wikitext of single pages."""
    for name, raw in members_of(data / "wikipedia/wikitext_pages.tar.zst"):
        page = raw.decode()
        yield Page(Path(name).stem, html.unescape(page) if "&lt;ref" in page else page)


def dumped_pages(data: Path) -> Iterator[Page]:
    """Wikitext of the pages of a dump, found by regular expressions."""
    dump = bz2.decompress((data / _ENWIKI).read_bytes()).decode()
    for page in re.findall(r"<page>.*?</page>", dump, re.DOTALL):
        [title] = re.findall(r"<title>(.*?)</title>", page)
        content = re.search(r"<text\b[^<>]*>(.*?)</text>", page, re.DOTALL)
        yield Page(html.unescape(title), html.unescape(content[1]) if content else "")


def articles(pages: Iterable[Page]) -> list[Page]:
    """The pages that are not redirects, without elements whose content is not wikitext."""
    return [Page(name, _OPAQUE.sub(" ", page)) for name, page in pages if not _REDIRECT.match(page)]


def speech_tables(pages: list[tuple[Page, str]]) -> Iterator[str]:
    """The tables of precision, recall and F1, and the worst pages."""
    found = {page.name: article_of(page.content) for page, _ in pages}
    whole = {page.name for page, text in pages if is_whole(text, found[page.name])}
    with_text = {page.name for page, text in pages if words_of(text)}
    rows, by_tool = [], {}
    for name, tool in page_tools().items():
        say(name)
        texts = {page.name: words_of(tool(page.content)) for page, _ in pages}
        beside = {page.name: overlap(texts[page.name], words_of(text)) for page, text in pages}
        within = {key: overlap(texts[key], words_of(_text_of(it))) for key, it in found.items() if it}
        cells = [beside, {key: it for key, it in beside.items() if key in whole}, within]
        cells[0] = {key: it for key, it in beside.items() if key in with_text}
        by_tool[name] = beside
        rows.append([name, *(f"{mean:.4f}" for group in cells for mean in _means(group))])
    groups = (f"{len(with_text)} texts", f"{len(whole)} whole texts", f"{sum(map(bool, found.values()))} articles")
    head = ["tool", *(f"{group}: {it}" for group in groups for it in ("precision", "recall", "F1"))]
    yield table(head, rows)
    yield _worst_speeches(by_tool, {page.name: text for page, text in pages}, whole)


def _means(found: Mapping[str, Overlap]) -> list[float]:
    return [sum(it[place] for it in found.values()) / max(1, len(found)) for place in range(3)]


def _worst_speeches(by_tool: Mapping[str, Mapping[str, Overlap]], texts: Mapping[str, str], whole: set[str]) -> str:
    ours = next(iter(by_tool))
    names = sorted(texts, key=lambda name: by_tool[ours][name].f1)[:_NUM_WORST]
    rows = []
    for name in names:
        text = texts[name]
        cause = (
            "no words" if not words_of(text) else "the text has the site's menu" if _MENU in text
            else "the text ends before the speech does" if name not in whole else "notes below the speech"
        )  # fmt: skip
        rows.append([name, cause, *(f"{found[name].f1:.3f}" for found in by_tool.values())])
    return table(["page", "the text beside it", *by_tool], rows)


class _Converted(NamedTuple):
    """A tool's texts of a set of pages."""

    num_chars: int
    num_kept: int
    marks: dict[str, Counter[str]]


def convert(tool: Tool, pages: list[Page], runs: Mapping[str, list[str]]) -> _Converted:
    texts = {page.name: tool(page.content) for page in pages}
    kept = sum(num_kept(runs[name], text) for name, text in texts.items())
    marks = {name: leftover(text) for name, text in texts.items()}
    return _Converted(sum(map(len, texts.values())), kept, marks)


def wikitext_tables(pages: list[Page]) -> Iterator[str]:
    """Leftover markup by tool and kind, and the worst pages."""
    runs = {page.name: prose_runs(page.content) for page in pages}
    num_runs = sum(map(len, runs.values()))
    results = {}
    for name, tool in wikitext_tools().items():
        say(name)
        results[name] = convert(tool, pages, runs)
    size = sum(len(page.content) for page in pages)
    sums = {name: sum(it.marks.values(), Counter()) for name, it in results.items()}
    yield table(
        ["tool", "articles", "characters in", "characters out", "marks", "marks in 1,000 characters", "prose kept"],
        [
            [name, f"{len(pages)}", f"{size:,}", f"{it.num_chars:,}", f"{sums[name].total():,}",
             f"{1000 * sums[name].total() / max(1, it.num_chars):.3f}", f"{it.num_kept / max(1, num_runs):.2%}"]
            for name, it in results.items()
        ],
    )  # fmt: skip
    yield table(
        ["marks", *results],
        [[kind, *(f"{sums[name][kind]:,}" for name in results)] for kind in LEFTOVER],
    )
    ours = results[_OURS].marks
    worst = [name for name in sorted(ours, key=lambda name: -ours[name].total())[:_NUM_WORST] if ours[name].total()]
    yield table(
        ["page",  f"marks of {_OURS}", "what a reader found", *list(results)[1:]],
        [
            [name, ", ".join(f"{count} {kind}" for kind, count in sorted(ours[name].items()) if count),
             _READ.get(name, "not read"), *(f"{it.marks[name].total():,}" for it in list(results.values())[1:])]
            for name in worst
        ],
    )  # fmt: skip


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "quality", "Quality of texts beside peers", [_OURS, *PEERS])
    report.add(*__doc__.strip().split("\n\n")[2:])
    missing = [name for name in PEERS if not find_spec(name.lower())]
    if missing:
        report.add(f"Not installed, and therefore not compared: {', '.join(missing)}.")
    pages = speeches(arguments.data)
    main_table, worst = speech_tables(pages)
    report.add(f"## Speeches: {len(pages)} pages of federalreserve.gov", main_table)
    report.add(f"The {_NUM_WORST} pages on which {_OURS} has the lowest F1, and the F1 of each tool:", worst)
    kinds = [[f"`{kind}`", meaning, _code(pattern.pattern)] for kind, (meaning, pattern) in LEFTOVER.items()]
    report.add("## Articles: what is leftover markup", table(["marks", "meaning", "pattern"], kinds))
    for title, found in (("single pages", single_pages), ("pages of an English dump", dumped_pages)):
        given = list(found(arguments.data))
        totals, by_kind, worst = wikitext_tables(articles(given))
        report.add(f"## Articles: {len(given)} {title}", totals, by_kind)
        report.add(
            f"The pages in which {_OURS} leaves most marks, at most {_NUM_WORST}, and the marks that the others leave:",
            worst,
        )
    return 0


def _code(pattern: str) -> str:
    r"""In a cell of a Markdown table, where a bar is written as `\|`."""
    return f"`` {pattern.replace('|', chr(92) + '|')} ``"


if __name__ == "__main__":
    sys.exit(main())
