"""A Numba kernel that counts what parsing an HTML page would cost at most.

Source: HTML Living Standard, §13.2.6, https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.clean.html._tag_kernels import (
    ANCHOR,
    BREAKOUT,
    CELL,
    END,
    FOREIGN,
    FORM,
    FORMATTING,
    HEADING,
    I64,
    IMPLIED,
    INTEGRATION,
    LINE,
    LT,
    MARKER,
    META,
    NAME_SLOTS,
    OPTION,
    ORDINARY,
    OTHER,
    PARAGRAPH,
    PLAINTEXT,
    RAW,
    ROOT,
    SCRIPT,
    SELECT,
    START,
    TABLE_PART,
    TEXT,
    TIME,
    TREATMENT,
    U8,
    U64,
    UNFINISHED,
    cdata_end,
    class_of,
    find,
    next_tag,
    raw_end,
    starts_cdata,
)
from finpile.clean.html._uncounted import uncounted

#: Indices of what `measure` returns.
(NUM_TAGS, MAX_DEPTH, STACK_STEPS, NUM_NODES, SUBTREE_BYTES, MAX_ATTRIBUTES, ATTRIBUTE_STEPS, OPTION_STEPS, NUM_NAMES,
 NUM_UNCLEAR, META_END, TIME_END) = range(12)  # fmt: skip
_NUM_COUNTS = 12

#: How many of the formatting elements opened last are searched for the one that an end tag closes.
_FORMATTING_WINDOW = 16
#: Bytes of `<a>`, the shortest start tag: each opens one element at most, and one formatting element.
_LEAST_TAG_BYTES = 3
#: The adoption agency runs 8 times, once per block above the formatting element; each may hide a paragraph.
_BLOCKS_ADOPTED = 3


@kernel
def measure(data: U8, keys: U64, classes: I64, max_depth: int) -> Any:
    """Upper bounds of what a parser does with a page, by the indices above; see `finpile.clean.html.markup`.

    A model of the parser's stack of open elements: what the parser has open, the model has open. Where it is not known
    that the parser closes an element, the model keeps it. Elements that the parser never nests without others between
    (paragraphs, parts of tables, options) are left out: they at most double the depth. Stops above `max_depth`.
    """
    return _measure(data, keys, classes, np.zeros(NAME_SLOTS, np.uint64), max_depth)


@inner
def _measure(data: U8, keys: U64, classes: I64, names: U64, max_depth: int) -> Any:
    """As `measure`; `names` is room for the names that were seen."""
    data, keys, classes, names = uncounted(data), uncounted(keys), uncounted(classes), uncounted(names)
    counts = np.zeros(_NUM_COUNTS, np.int64)
    num_names = np.int64(0)  # no literal: it would be a type of its own to compile `next_tag` for
    size = data.shape[0]
    room = min(size // _LEAST_TAG_BYTES, max_depth + 1) + 1
    stack, contexts = np.empty(room, np.uint64), np.empty(room, np.int64)  # names; contexts outside of them
    blocked = np.empty(room, np.uint8)  # not in `stack`, but maybe open above: 1 a paragraph, 2 a part of a table
    opened, opened_in, opened_at = np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64)
    depth = num_opened = 0  # of `stack`; of the formatting elements
    context = last_context = 0  # the table cell, or the like, inside which end tags find formatting elements
    num_foreign, is_foreign, foreign_depth = 0, False, -1  # SVG and MathML open; surely inside; where it is so again
    forms_stay = False
    root_attributes = num_selects = num_options = 0
    at = before = np.int64(0)
    while True:
        at = find(data, at, LT)
        if at >= size:
            break
        kind, name, end, num_attributes, slash, num_names = next_tag(data, at, names, num_names)
        if kind == OTHER and num_foreign and starts_cdata(data, at):
            if not is_foreign:
                counts[NUM_UNCLEAR] += 1
                break
            end = cdata_end(data, at)
        if kind not in (START, END):
            counts[NUM_NODES] += kind in (OTHER, TEXT)
            if kind == UNFINISHED:  # no tag, but its attributes are held in memory
                counts[MAX_ATTRIBUTES] = max(counts[MAX_ATTRIBUTES], num_attributes)
                counts[ATTRIBUTE_STEPS] += num_attributes * num_attributes
            at = end
            continue
        weight = 1 + depth + num_opened
        counts[NUM_TAGS] += 1
        counts[STACK_STEPS] += weight
        counts[NUM_NODES] += 1 + 2 * num_opened
        counts[SUBTREE_BYTES] += weight * (at - before)
        if weight > counts[MAX_DEPTH]:
            counts[MAX_DEPTH] = weight
            if weight > max_depth + 1:
                break
        before, at = at, end
        class_ = class_of(name, keys, classes)
        treatment = class_ & TREATMENT
        if treatment == HEADING:
            name = np.uint64(1)  # one heading's end tag closes another
        if kind == END:
            if treatment in (FORMATTING, ANCHOR):
                for back in range(min(num_opened, _FORMATTING_WINDOW)):
                    found = num_opened - 1 - back
                    is_inside = opened_in[found] == context and depth - opened_at[found] <= _BLOCKS_ADOPTED
                    if opened[found] == name and is_inside:
                        for later in range(found, num_opened - 1):
                            opened[later], opened_in[later] = opened[later + 1], opened_in[later + 1]
                            opened_at[later] = opened_at[later + 1]
                        num_opened -= 1
                        break
            is_below = depth > 1 and stack[depth - 2] == name != stack[depth - 1]
            if is_below and class_ & LINE and not num_foreign:  # an item ends with its list
                depth -= class_of(stack[depth - 1], keys, classes) & TREATMENT == IMPLIED
            if treatment == TABLE_PART and class_ & PARAGRAPH and depth and blocked[depth - 1] == 1:
                blocked[depth - 1] = 0
            # Blocks close whatever is open inside, other elements only without a block inside.
            closes = class_ & LINE != 0 or treatment >= MARKER or depth == 0 or blocked[depth - 1] == 0
            if treatment == FORM and (depth == 0 or stack[depth - 1] != name):
                forms_stay = True  # the parser forgets the form, so that later end tags may not close it
            closes = closes and not (treatment == FORM and forms_stay)
            if depth and stack[depth - 1] == name and closes:
                depth -= 1
                if treatment in (MARKER, SELECT):
                    context = contexts[depth]
                if treatment == SELECT:
                    num_selects -= 1
                    num_options *= num_selects > 0
                elif treatment == FOREIGN:
                    num_foreign -= 1
                    is_foreign = is_foreign and num_foreign > 0
                if depth == foreign_depth:
                    is_foreign, foreign_depth = num_foreign > 0, -1
            elif num_foreign:
                is_foreign, foreign_depth = False, -1
            continue
        # A start tag.
        if class_ & META:
            counts[META_END] = end
        elif class_ & TIME:
            counts[TIME_END] = end
        counts[MAX_ATTRIBUTES] = max(counts[MAX_ATTRIBUTES], num_attributes)
        counts[ATTRIBUTE_STEPS] += num_attributes * num_attributes
        pushes = treatment in (ORDINARY, IMPLIED, HEADING) or treatment >= MARKER
        if treatment == ROOT:  # one element, however many tags; each adds its attributes
            pushes = False
            counts[ATTRIBUTE_STEPS] += 2 * num_attributes * root_attributes
            root_attributes += num_attributes
        elif treatment == OPTION:
            pushes = False
            num_options += num_selects > 0
            counts[OPTION_STEPS] += num_options
        elif treatment == CELL:
            last_context += 1
            context = last_context
        if depth and treatment in (CELL, TABLE_PART):
            blocked[depth - 1] |= 1 if class_ & PARAGRAPH else 2
        if treatment == FOREIGN and slash:
            pushes = False
        foreign_tag = is_foreign and not class_ & BREAKOUT
        if num_foreign:
            pushes = True
            if not foreign_tag:
                is_foreign = False
            else:
                pushes = not slash
                if class_ & INTEGRATION and pushes:
                    is_foreign, foreign_depth = False, depth
        if foreign_tag:
            pass
        elif treatment in (FORMATTING, ANCHOR):
            last = num_opened - 1
            replaces = treatment == ANCHOR and num_opened and opened[last] == name  # the link before, if still inside
            if not (replaces and opened_in[last] == context and depth - opened_at[last] <= _BLOCKS_ADOPTED):
                opened[num_opened], opened_in[num_opened], opened_at[num_opened] = name, context, depth
                num_opened += 1
        elif treatment == PLAINTEXT:
            counts[NUM_UNCLEAR] += 1
            break
        elif treatment in (RAW, SCRIPT):
            if num_foreign:
                counts[NUM_UNCLEAR] += 1
                break
            at = raw_end(data, end, name, treatment == SCRIPT)
        elif treatment == IMPLIED and not num_foreign and depth:
            top = stack[depth - 1]
            if top == name or (class_ & PARAGRAPH and class_of(top, keys, classes) == class_):
                depth -= 1  # a new item ends the one before
        if not pushes:
            continue
        stack[depth], contexts[depth], blocked[depth] = name, context, 0
        depth += 1
        if treatment in (MARKER, SELECT):
            last_context += 1
            context = last_context
        if treatment == SELECT:
            num_selects += 1
        elif treatment == FOREIGN:
            is_foreign = is_foreign or num_foreign == 0
            num_foreign += 1
    counts[SUBTREE_BYTES] += (1 + depth + num_opened) * (size - before)
    counts[MAX_DEPTH] = max(counts[MAX_DEPTH], 1 + depth + num_opened) - 1
    counts[NUM_NAMES] = num_names
    return counts
