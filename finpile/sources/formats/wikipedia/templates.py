"""The text of templates of wikitext that print words in a sentence or a cell; all others print none.

A template's text comes from its parameters alone, since pages do not have the definitions. What a page of the English
Wikipedia shows is the reference; names of other wikis are those of the same templates.
"""

from __future__ import annotations

import re

#: Templates that print a parameter: its position, from 1; negative from the end.
_SPOKEN = {
    **dict.fromkeys(("nowrap", "nobr", "small", "smaller", "midsize", "big", "large", "larger", "smallcaps", "sc"), 1),
    **dict.fromkeys(
        ("quote", "blockquote", "cquote", "noitalic", "nobold", "visible anchor", "vanchor", "main other"), 1
    ),
    **dict.fromkeys(
        ("em", "strong", "strike", "sub", "sup", "math", "mvar", "var", "code", "tt", "abbr", "tooltip"), 1
    ),
    **dict.fromkeys(
        ("formatnum", "nts", "iast", "unicode", "ipa", "nihongo", "linktext", "'\"", "angbr", "angle bracket"), 1
    ),
    **dict.fromkeys(("ill", "interlanguage link", "flag", "flagu", "flagcountry", "railgauge", "track gauge"), 1),
    **dict.fromkeys(("lang", "transl", "transliteration", "rtl-lang", "script", "wikt-lang"), -1),
    **dict.fromkeys(("sort", "color", "font color", "resize"), -1),
    "langx": 2,
}
#: Beginnings of names of templates for each language or script, which print their first parameter.
_SPOKEN_PREFIXES = ("lang-", "script/")
#: Symbols that are templates because wikitext reads them as marks; dashes, blanks, and marks beside those of italics.
_SYMBOLS = {
    "!": "|",
    "=": "=",
    "-": "",
    "pi": "π",
    "eqm": "⇌",
    "'": "'",
    "'s": "'s",
    "' \"": "' \"",
    "\" '": "\" '",
    '-"': '"',
    "-'": "'",
    **dict.fromkeys(("snd", "snds", "spnd", "spaced ndash", "spaced en dash"), " – "),
    **dict.fromkeys(("ndash", "en dash"), "–"),
    **dict.fromkeys(("mdash", "mdashb", "em dash"), "—"),
    **dict.fromkeys(("dot", "·"), " · "),
    **dict.fromkeys(("nbsp", "thinsp", "spaces", "space"), " "),
}
#: Words of cells, where the template has no text of its own.
_WORDS = {"yes": "Yes", "no": "No", "won": "Won", "nom": "Nominated", "n/a": "N/A", "tba": "TBA"}
#: What is before the first parameter. Ships have the name behind their prefix.
_BEFORE = {
    **{name: f"{name.upper()} " for name in ("hms", "uss", "ss", "mv", "rms", "hmas", "hmcs", "ms", "rv", "sms")},
    **dict.fromkeys(("circa", "c.", "ca."), "c. "),
    **dict.fromkeys(("as of", "asof"), "As of "),
    **dict.fromkeys(("floruit", "fl."), "fl. "),
    **dict.fromkeys(("us$", "usd"), "US$"),
    "reign": "r. ",
    "gbp": "£",
    "e": "×10^",
}
#: Of these, the ones with a year or two.
_SPANS = frozenset(("circa", "c.", "ca.", "floruit", "fl.", "reign"))
#: What is between the parameters of templates that print several, and the number of those.
_JOINED = {
    **dict.fromkeys(("sortname", "bibleref", "bibleverse"), (" ", 2)),
    **dict.fromkeys(("chem", "chem2"), ("", 30)),
    "hlist": (" · ", 100),
    "sfrac": ("/", 2),
}
_DIGITS = re.compile(r"[−+-]?[.,]?\d")
_NUMBER = re.compile(r"\A\s*\d{1,3}\s*=")
_NAMED = re.compile(r"\s*(?!\d+\s*=)([\w-]{1,40})\s*=")


def template_text(content: str) -> str:
    """The text of a template, of which `content` is what is between its braces.

    >>> template_text("sortname|Adam|Smith"), template_text("cite book|title=x"), template_text("frac|1|2")
    ('Adam Smith', '', '1/2')
    """
    name, *parameters = content.split("|")
    name = " ".join(name.replace("_", " ").split()).lower()
    if name in _SYMBOLS:
        return _SYMBOLS[name]
    if name.startswith("formatnum:"):
        return name.removeprefix("formatnum:")
    values = [_NUMBER.sub("", parameter).strip() for parameter in parameters if not _NAMED.match(parameter)]
    if name in _WORDS:
        return values[0] if values and values[0] else _WORDS[name]
    place = _SPOKEN.get(name) or int(name.startswith(_SPOKEN_PREFIXES))
    if place:
        return values[place - 1 if place > 0 else place] if len(values) >= abs(place) else ""
    if name in _JOINED:
        between, most = _JOINED[name]
        return between.join(values[:most])
    return _composed(name, values, _named(parameters)) if values and values[0] else ""


def _measure(values: list[str]) -> str:
    """A number and its unit; also of a range, several dimensions, or a measure in two units.

    >>> _measure(["5", "km", "mi", "0"]), _measure(["5", "to", "10", "km", "mi"]), _measure(["6", "ft", "2", "in", "m"])
    ('5 km', '5 to 10 km', '6 ft 2 in')
    """
    end = 2
    while end + 1 < len(values) and _DIGITS.match(values[end]):
        end += 2
    return " ".join(values[:end]).replace(" - ", "–")


def _named(parameters: list[str]) -> dict[str, str]:
    found = (_NAMED.match(parameter) for parameter in parameters)
    pairs = zip(found, parameters, strict=True)
    return {match[1]: parameter[match.end() :].strip() for match, parameter in pairs if match}


def _composed(name: str, values: list[str], named: dict[str, str]) -> str:
    """The text of a template that adds signs or words to its first parameter."""
    if name in ("convert", "cvt"):
        return _measure(values) if len(values) > 1 else ""
    if name in ("frac", "fraction"):
        *whole, above, below = ["1", *values] if len(values) == 1 else values[:3]
        return " ".join([*whole, f"{above}/{below}"])
    if name == "val":
        power = f"×10^{named['e']}" if "e" in named else ""
        return f"{values[0]}{power} {named.get('u') or named.get('ul', '')}".rstrip()
    before = _BEFORE.get(name)
    if before is None:
        return ""
    span = "–".join(filter(None, values[:2])) if name in _SPANS else values[0]
    return f"{before.lower() if named.get('lc') else before}{span}"
