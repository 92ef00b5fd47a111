"""What an HTML page may cost: counts of its markup, and the bounds up to which each way to read it is taken.

The parser (lexbor, in resiliparse) and the search for a page's main content take time that grows with the square of
some counts. Measured with resiliparse 2.0.1 on one core:

| count                                          | what it costs                           | bound               |
|------------------------------------------------|-----------------------------------------|---------------------|
| open elements, summed over all tags            | 5 ns each: end tags search the stack    | 2^26 + 256 per tag  |
| open elements, summed over all bytes           | 8 ns each: the main content reads the   | 2^26 + 64 per byte  |
|                                                | text of each block, and of all in it    | (main content only) |
| nodes, with formatting elements opened again   | 2 us and 360 bytes each                 | 2^19 + 4 per tag    |
| squares of the tags' numbers of attributes     | 1.5 ns each: each is compared with all  | 2^27                |
| options of a <select> before each option       | 12 ns each                              | 2^26                |
| different names of tags and attributes         | chains of a hash table of fixed size    | 8,191               |
| tags                                           | 360 bytes each                          | 2^20                |
| bytes                                          | copies in memory                        | 64 MiB              |

Counts, never a clock: a page is read in the same way on every machine. A page above the bound of the main content alone
is read whole; above another by `strip_markup`, which takes time linear in the page's bytes for any input. A page of
more than `MAX_DEPTH` elements inside each other or `MAX_ATTRIBUTES` attributes in one tag is not a document.
"""

from __future__ import annotations

import functools
import html
import re
from dataclasses import dataclass

import numpy as np

from finpile.clean.html import _cost_kernels, _strip_kernels
from finpile.clean.html import _tag_kernels as tags

#: Above these a page is not read at all.
MAX_DEPTH = 1 << 16
MAX_ATTRIBUTES = 1 << 16
#: Above these no parser sees a page.
MAX_BYTES = 1 << 26
MAX_TAGS = 1 << 20
MAX_NAMES = tags.MAX_NAMES - 1
MAX_STACK_STEPS, STACK_STEPS_PER_TAG = 1 << 26, 256
MAX_NODES, NODES_PER_TAG = 1 << 19, 4
MAX_ATTRIBUTE_STEPS = 1 << 27
MAX_OPTION_STEPS = 1 << 26
#: Above these a page's main content is not searched for.
MAX_SUBTREE_BYTES, SUBTREE_BYTES_PER_BYTE = 1 << 26, 64

#: Source: HTML Living Standard, §13.1.2 and §13.2.6.
_NAMES: dict[int, str] = {
    tags.VOID: "area base basefont bgsound br col embed frame hr image img input keygen link meta param source track "
    "wbr",
    tags.IMPLIED: "dd dt li",
    tags.TABLE_PART: "p tr tbody thead tfoot colgroup",
    tags.CELL: "td th caption",
    tags.RAW: "style textarea title xmp iframe noembed noframes",
    tags.SCRIPT: "script",
    tags.FORMATTING: "b big code em font i s small strike strong tt u",
    tags.ANCHOR: "a nobr",
    tags.ROOT: "html head body",
    tags.OPTION: "option",
    tags.PLAINTEXT: "plaintext",
    tags.MARKER: "applet marquee object table template",
    tags.HEADING: "h1 h2 h3 h4 h5 h6",
    tags.FOREIGN: "math svg",
    tags.SELECT: "select",
    tags.FORM: "form",
    tags.BREAKOUT: "b big blockquote body br center code dd div dl dt em embed font h1 h2 h3 h4 h5 h6 head hr i img "
    "li listing menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var",
    tags.INTEGRATION: "annotation-xml desc foreignobject mi mn mo ms mtext title",
    tags.HIDDEN: "applet datalist iframe ix:header noembed noframes noscript object script select style template "
    "textarea title",
    tags.LINE: "address article aside blockquote body br center dd details dialog dir div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li main menu nav ol option pre search section summary "
    "table tbody tfoot thead tr ul",
    tags.PARAGRAPH: "dd dt h1 h2 h3 h4 p",
    tags.TAB: "td th",
    tags.META: "meta",
    tags.TIME: "time",
}
#: In the order of `_cost_kernels.measure`.
_COUNTS = (
    "num_tags", "max_depth", "stack_steps", "num_nodes", "subtree_bytes", "max_attributes", "attribute_steps",
    "option_steps", "num_names", "num_unclear", "meta_end", "time_end",
)  # fmt: skip
_ENTITY = re.compile(r"&(?:#\d{1,7};?|#[xX][0-9a-fA-F]{1,6};?|[A-Za-z][A-Za-z0-9]{1,31};?)")


class TooComplex(ValueError):
    """A document above the bound of its cleaning; the message has the count and the bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkupCounts:
    """Upper bounds of a page's cost in a parser; the table above has the cost of each."""

    num_bytes: int
    num_tags: int
    max_depth: int
    """Open elements; those that never nest without others between them (paragraphs, parts of tables) left out. Counting
    stops above `MAX_DEPTH`."""
    stack_steps: int
    num_nodes: int
    subtree_bytes: int
    max_attributes: int
    attribute_steps: int
    option_steps: int
    num_names: int
    num_unclear: int
    """Tags whose reading depends on whether SVG or MathML is still open; counting stops at the first."""
    meta_end: int
    """Where the last <meta> ends, in bytes; 0 without one."""
    time_end: int
    """As `meta_end`, of <time>."""

    def too_complex(self) -> str | None:
        """The count for which the page is not read at all, or None."""
        return _above({
            "elements inside each other": (self.max_depth, MAX_DEPTH),
            "attributes in one tag": (self.max_attributes, MAX_ATTRIBUTES),
        })  # fmt: skip

    def beyond_parser(self) -> str | None:
        """The count for which no parser sees the page, or None."""
        return _above({
            "bytes": (self.num_bytes, MAX_BYTES),
            "tags": (self.num_tags, MAX_TAGS),
            "open elements over all tags": (self.stack_steps, MAX_STACK_STEPS + STACK_STEPS_PER_TAG * self.num_tags),
            "nodes": (self.num_nodes, MAX_NODES + NODES_PER_TAG * self.num_tags),
            "pairs of attributes of a tag": (self.attribute_steps, MAX_ATTRIBUTE_STEPS),
            "pairs of options of a <select>": (self.option_steps, MAX_OPTION_STEPS),
            "names of tags and attributes": (self.num_names, MAX_NAMES),
            "tags that may be text": (self.num_unclear, 0),
        })  # fmt: skip

    def beyond_main_content(self) -> str | None:
        """The count for which the page's main content is not searched for, or None."""
        bound = MAX_SUBTREE_BYTES + SUBTREE_BYTES_PER_BYTE * self.num_bytes
        return _above({"open elements over all bytes": (self.subtree_bytes, bound)})


def measure(page: str) -> MarkupCounts:
    """Counts the page's markup in one pass, in time linear in its bytes."""
    data = np.frombuffer(page.encode(), np.uint8)
    counts = _cost_kernels.measure(data, *name_classes(), MAX_DEPTH).tolist()
    return MarkupCounts(num_bytes=len(data), **dict(zip(_COUNTS, counts, strict=True)))


def strip_markup(page: str) -> tuple[str, str]:
    """The text outside of tags and the title, in one pass, in time linear in the page's bytes.

    Runs of white space are one blank, blocks lines, paragraphs have an empty line around them, cells a tab between
    them. Scripts, styles and other content that browsers do not show are left out.
    """
    data = np.frombuffer(page.encode(), np.uint8)
    text, start, end = _strip_kernels.strip_markup(data, *name_classes(), _hash("title"))
    title = data[start:end].tobytes().decode("utf-8", "replace")
    return _unescaped(text.tobytes().decode()), _unescaped(title)


def _unescaped(text: str) -> str:
    """Entities as characters; html.unescape alone would read numbers of any length."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text)


def _above(counts: dict[str, tuple[int, int]]) -> str | None:
    return next((f"{count:,} {name} > {bound:,}" for name, (count, bound) in counts.items() if count > bound), None)


def _hash(name: str) -> np.uint64:
    return np.uint64(tags.hash_name(np.frombuffer(name.encode(), np.uint8)))


@functools.cache
def name_classes() -> tuple[tags.U64, tags.I64]:
    """The classes of names as a hash table with open addressing."""
    found: dict[str, int] = {}
    for flag, names in _NAMES.items():
        for name in names.split():
            found[name] = found.get(name, 0) | flag
    keys, classes = np.zeros(512, np.uint64), np.zeros(512, np.int64)
    for name, flags in found.items():
        key = int(_hash(name))
        slot = (key >> 40) & 511
        while keys[slot]:
            slot = (slot + 1) & 511
        keys[slot], classes[slot] = key, flags
    keys.flags.writeable = classes.flags.writeable = False
    return keys, classes
