"""The text of XML documents: parsed by expat without any network, and walked without recursion.

Expat refuses entities that expand to a multiple of the file (`limit on input amplification factor`) and never loads
external ones. A document nested more than `MAX_DEPTH` deep is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

MAX_DEPTH = 500

_SPACE = re.compile(r"[ \t\r\n\f]+")
#: Between two tokens that are written as one word.
_JOINED = re.compile(r"\0[ \t\r\n]*")
_CELLS = re.compile(r" ?\x1f ?")


class XmlError(ValueError):
    """The bytes are not XML, or XML that is refused."""


class _Builder(ET.TreeBuilder):
    """A tree whose tags have no namespaces, of bounded depth."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ET.Element:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise XmlError(f"elements are nested more than {MAX_DEPTH} deep")
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str, /) -> ET.Element:
        self._depth -= 1
        return super().end(tag.rpartition("}")[2])


def parse_xml(data: bytes) -> ET.Element:
    """The root of a document; tags are without namespaces. Raises: XmlError."""
    try:
        return ET.fromstring(data, ET.XMLParser(target=_Builder()))
    except (ET.ParseError, LookupError, UnicodeError, ValueError) as error:
        raise error if isinstance(error, XmlError) else XmlError(f"no XML: {error}") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What the elements of a format are."""

    blocks: Collection[str]
    """Begin and end a paragraph."""
    skipped: Collection[str] = ()
    """Have no text."""
    cells: Collection[str] = ()
    """End with a tab."""


def paragraphs(root: ET.Element, rules: Rules) -> list[str]:
    """The paragraphs below an element, in order, with single spaces; those in a cell are parts of its row."""
    found: list[str] = []
    parts: list[str] = []
    num_cells = 0  # that are open
    for element, is_start in _walk(root, rules.skipped):
        if element.tag in rules.cells:
            num_cells += 1 if is_start else -1
        if element.tag in rules.blocks:
            if num_cells:
                parts.append(" ")
            else:
                _flush(parts, found)
        if is_start:
            parts.append(element.text or "")
        else:
            if element.get("join") in ("right", "both"):
                parts.append("\0")
            parts.append("\x1f" if element.tag in rules.cells else "")
            parts.append((element.tail or "") if element is not root else "")
    _flush(parts, found)
    return found


def _walk(root: ET.Element, skipped: Collection[str]) -> Iterator[tuple[ET.Element, bool]]:
    """Each element twice: before and after its children. A skipped element has only an end."""
    stack: list[tuple[ET.Element, Iterator[ET.Element]]] = [(root, iter(root))]
    yield root, True
    while stack:
        element, children = stack[-1]
        child = next(children, None)
        if child is None:
            stack.pop()
            yield element, False
        elif child.tag in skipped:
            yield child, False
        else:
            yield child, True
            stack.append((child, iter(child)))


def _flush(parts: list[str], found: list[str]) -> None:
    text = _CELLS.sub("\t", _SPACE.sub(" ", _JOINED.sub("", "".join(parts)))).strip()
    parts.clear()
    if text:
        found.append(text)


def element(markup: str, name: str) -> str:
    """The content of the first element of that name; empty without one. A lazy expression takes ten times as long."""
    start = markup.find(f"<{name}>")
    end = markup.find(f"</{name}>", start)
    return markup[start + len(name) + 2 : end] if 0 <= start < end else ""


def text_of(root: ET.Element, path: str) -> str:
    """The text of the first element at a path, with single spaces; empty if there is none."""
    element = root.find(path)
    return "" if element is None else _SPACE.sub(" ", "".join(element.itertext())).strip()
