"""The names of elements and entities, with what the kernels of a page need to know of each."""

from __future__ import annotations

import functools
import html
import html.entities
from collections.abc import Mapping

import numpy as np

from finpile.clean import _name_kernels as layout
from finpile.clean import _stack_kernels as stack
from finpile.clean import _writer_kernels as writer
from finpile.clean._tag_kernels import I64, hash_bytes

#: Source: HTML Living Standard, §13.2.6.4 (treatment) and §13.1.2; resiliparse 2.0.1, html2text.rs (blocks).
_KINDS: Mapping[int, str] = {
    stack.CONTAINER: "address article aside blockquote center details dir div dl fieldset figcaption figure footer "
    "header hgroup main menu nav ol section summary ul",
    stack.HEADING: "h1 h2 h3 h4 h5 h6",
    stack.PRE: "listing pre",
    stack.LIST_ITEM: "li",
    stack.DEFINITION: "dd dt",
    stack.PARAGRAPH: "p",
    stack.FORMATTING: "b big code em font i s small strike strong tt u",
    stack.ANCHOR: "a",
    stack.INLINE_VOID: "area br embed img input wbr",
    stack.VOID: "param source track",
    stack.RULE: "hr",
    stack.FORM: "form",
    stack.TABLE: "table",
    stack.SECTION: "tbody tfoot thead",
    stack.ROW: "tr",
    stack.CELL: "td th",
    stack.COLGROUP: "colgroup",
    stack.COL: "col",
    stack.RAW: "script style",
    stack.TITLE: "title",
    stack.METADATA: "base basefont bgsound link meta",
    stack.HTML: "html",
    stack.HEAD: "head",
    stack.BODY: "body",
    stack.UNSUPPORTED: "applet button caption dialog frame frameset iframe image keygen marquee math menuitem nobr "
    "noembed noframes noscript object optgroup option plaintext rb rp rt rtc ruby search select svg template textarea "
    "xmp",
}
_FLAGS: Mapping[int, str] = {
    stack.SPECIAL: "address area article aside base basefont bgsound blockquote body br center col colgroup dd details "
    "dir div dl dt embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html img input "
    "li link listing main menu meta nav ol p param pre script section source style summary table tbody td tfoot th "
    "thead title tr track ul wbr",
    stack.TRANSPARENT: "address div p",
    stack.IMPLIED: "dd dt li p",
    stack.SCOPE: "table td th",
    stack.LIST_SCOPE: "ol ul",
    stack.NEVER_SHOWN: "input ix:header label script style",
    writer.BLOCK: "address article aside blockquote br center details dd dt div dl fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hgroup hr li main nav ol p pre section table tr ul",
    writer.LARGE_MARGIN: "p h1 h2 h3 h4",
    writer.LIST: "ol ul",
    writer.NUMBERED: "ol",
    writer.ITEM: "li",
    writer.ROW_TEXT: "tr",
    writer.CELL_TEXT: "td th",
    writer.BREAK: "br",
    writer.PREFORMATTED: "pre",
    writer.ALTERNATIVE: "area img",
}
_IMPLIED = {layout.TBODY: b"tbody", layout.TR: b"tr", layout.COLGROUP_TAG: b"colgroup", layout.SCRIPT_TAG: b"script"}


@functools.cache
def page_words() -> I64:
    """The array that `finpile.clean._name_kernels` describes; not to be written to."""
    words = np.zeros(layout.NUM_WORDS, np.int64)
    classes: dict[bytes, int] = {}
    for table in (_KINDS, _FLAGS):
        for flag, names in table.items():
            for name in names.encode().split():
                classes[name] = classes.get(name, 0) | flag
    for name, class_ in classes.items():
        _enter(words, layout.ELEMENTS, layout.NUM_NAME_SLOTS, name, class_)
    for entity, characters in html.entities.html5.items():
        encoded = characters.encode()
        value = len(encoded) << layout.LENGTH_SHIFT | int.from_bytes(encoded, "little") if entity[-1] == ";" else -1
        _enter(words, layout.ENTITIES, layout.NUM_ENTITY_SLOTS, entity.encode(), value)
    for number in range(128, 160):
        words[layout.WINDOWS + number - 128] = ord(html.unescape(f"&#{number};"))
    for place, name in _IMPLIED.items():
        words[place], words[place + 1] = _hash(name), classes[name]
    words.flags.writeable = False
    return words


def _hash(name: bytes) -> int:
    return int(np.uint64(hash_bytes(np.frombuffer(name, np.uint8))).view(np.int64))


def _enter(words: I64, table: int, num_slots: int, name: bytes, value: int) -> None:
    key = _hash(name)
    slot = layout.slot_of(key, num_slots)
    while words[table + slot]:
        slot = (slot + 1) % num_slots
    words[table + slot], words[table + num_slots + slot] = key, value
