"""LaTeX to text in one pass: formulas stay as they are written, all other commands become text or disappear.

Time and memory are linear in the source, whatever it nests: braces are matched once, and what has no end is looked for
once. Commands that a document defines are not expanded.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

_TOKEN = re.compile(
    r"\\begin\s*\{(?P<begin>[^{}\n]{1,40})\}|\\end\s*\{(?P<end>[^{}\n]{1,40})\}|\\(?P<command>[a-zA-Z@]+)\*?|"
    r"\\(?P<symbol>.)|%[^\n]*(?:\n[ \t]*)?|\$\$?|[{}~&]|``|''|---?",
    re.DOTALL,
)
_BRACES = re.compile(
    r"\\(?:url|path|nolinkurl|href)\s*(?P<address>\{(?:\\[^\n]|[^{}\\\n])*\})"
    r"|\\verb(?P<mark>[^\w\s*])[^\n]*?(?P=mark)|\\.|[{}]|%[^\n]*",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([%#&_~{}])")
_LETTER = re.compile(r"[a-zA-Z@]")
_TITLE = re.compile(r"\\title\s*+(?:\[[^\[\]]{0,400}\]\s*+)?\{")
_OPTION = re.compile(r"\[[^\[\]]{0,400}\]")
_NAME = re.compile(r"\\[a-zA-Z@]+\*?")
_DEFINED = re.compile(r"\s*\\[a-zA-Z@]+[^{}\n]{0,100}(?=\{)")
_SPACE = re.compile(r"[ \t]*\n?[ \t]*")
_INLINE_END = re.compile(r"(?:[^$\\]|\\.)*?(\$|\n[ \t]*\n)", re.DOTALL)
_VERB = re.compile(r"([^\w\s*])([^\n]*?)\1")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MATHS = _words(
    "equation align gather multline eqnarray displaymath math alignat flalign split cases array subequations dmath "
    "xymatrix tikzcd CD diagram prooftree mathpar"
)
_VERBATIM = _words("verbatim Verbatim lstlisting minted alltt")
_DROPPED = _words("comment tikzpicture picture pspicture thebibliography filecontents")
#: Environments whose name LaTeX prints before their text, and what their arguments say.
_NAMED = _words(
    "theorem lemma proposition corollary definition remark example proof claim conjecture exercise question note "
    "fact observation notation hypothesis assumption problem situation remarks examples construction"
)
_HEADINGS = _words("part chapter section subsection subsubsection paragraph subparagraph title caption")
#: Commands that print nothing, as the space behind them does.
_SWITCHES = _words(
    "em it bf tt sc sl rm sf itshape bfseries ttfamily scshape slshape rmfamily sffamily upshape mdseries normalfont "
    "tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge noindent indent centering raggedright "
    "raggedleft protect relax null displaystyle hline toprule midrule bottomrule"
)
_KEYS = _words(
    "cite citep citet citeauthor citeyear citealp citealt parencite textcite autocite ref eqref pageref autoref cref "
    "Cref vref nameref hyperref"
)
#: How many arguments in braces a command has that are not text.
_NUM_ARGUMENTS = {
    **dict.fromkeys(_words(
        "label bibliography bibliographystyle includegraphics input include usepackage RequirePackage documentclass "
        "vspace hspace index pagestyle thispagestyle pagenumbering bibitem nocite hypersetup graphicspath vskip hskip "
        "phantom hphantom vphantom color pagecolor numberwithin theoremstyle geometry date author affil email address "
        "thanks subjclass keywords institute newcounter newlength newsavebox usetikzlibrary captionsetup tikzset "
        "special stepcounter"
    ), 1),
    **dict.fromkeys(_words(
        "newcommand renewcommand providecommand newtheorem setlength addtolength setcounter addtocounter newif let "
        "DeclareMathOperator rule SetKwInOut"
    ), 2),
    **dict.fromkeys(_words("newenvironment renewenvironment definecolor providecolor addcontentsline"), 3),
}  # fmt: skip
#: Commands that print the last one of their arguments.
_LAST_OF = {"textcolor": 2, "href": 2, "multicolumn": 3, "resizebox": 3, "scalebox": 2, "colorbox": 2, "raisebox": 2}
_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328",
    "b": "\u0331",
}  # fmt: skip
_ACCENTED = re.compile(r"\s*(?:\{\s*(?:\\?([A-Za-z]))?\s*\}|\\([ij])(?![A-Za-z])\s?|([A-Za-z]))")
_PRINTED = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "aa": "å", "AA": "Å",
    "i": "ı", "j": "ȷ", "S": "§", "P": "¶", "dag": "†", "ddag": "‡", "copyright": "©", "pounds": "£", "euro": "€",
    "ldots": "...", "dots": "...", "textellipsis": "...", "textbackslash": "\\", "textasciitilde": "~",
    "LaTeX": "LaTeX",
    "TeX": "TeX", "LaTeXe": "LaTeX2e", "BibTeX": "BibTeX", "textendash": "–", "textemdash": "—", "textquoteleft": "‘",
    "textquoteright": "’", "textquotedblleft": "“", "textquotedblright": "”", "textdegree": "°", "textbar": "|",
    "textless": "<", "textgreater": ">", "textregistered": "®", "texttrademark": "™", "textbullet": "•",
    "quad": " ", "qquad": " ", "newline": "\v", "linebreak": "\v", "par": "\f", "smallskip": "\f", "medskip": "\f",
    "bigskip": "\f", "newpage": "\f", "clearpage": "\f", "maketitle": "\f", "space": " ", "slash": "/", "tab": "\t",
}  # fmt: skip
_SYMBOLS = {
    "\\": "\v",
    ",": " ",
    ";": " ",
    ":": " ",
    " ": " ",
    "\n": " ",
    "!": "",
    "-": "",
    "/": "",
    "@": "",
    "(": "",
    ")": "",
}
#: Spaces that must not be folded, between `to_text` and `_finished`.
_KEPT = str.maketrans({"\n": "\v", " ": "\x1c", "\t": "\x1d"})
_UNKEPT = str.maketrans({"\v": "\n", "\x1c": " ", "\x1d": "\t"})
_INPUT = str.maketrans(dict.fromkeys("\v\f\x1c\x1d\x1e\0", " "))


#: Characters of an argument that is converted on its own.
_MAX_ARGUMENT = 1000


class Text(NamedTuple):
    """The text of a source."""

    text: str
    title: str


def to_text(source: str) -> Text:
    """The text of a document, or of a part of one that has no `\\begin{document}`.

    >>> to_text(r"\\section{Oil} \\emph{Rose} by $x^2$\\% --- see~\\cite{a}.").text
    'Oil\\n\\nRose by $x^2$% — see [a].'
    """
    converter = _Converter(source.translate(_INPUT))
    begin = converter.source.find("\\begin{document}")
    title = converter.title(begin if begin >= 0 else len(source))
    start = begin + len("\\begin{document}") if begin >= 0 else 0
    end = converter.source.find("\\end{document}", start)
    text = converter.convert(start, end if end >= 0 else len(converter.source))
    return Text(text, title)


class _Converter:
    def __init__(self, source: str) -> None:
        self.source = source
        self._closing = _matching_braces(source)
        self._found: dict[str, tuple[int, int]] = {}
        """Of a text where the last search began, and its place from there on; the end of the source without one."""

    def title(self, end: int) -> str:
        """The text of the first title before `end`; empty if there is none."""
        match = _TITLE.search(self.source, 0, end)
        close = self._closing.get(match.end() - 1) if match else None
        return " ".join(self.convert(match.end(), close).split()) if match and close else ""

    def convert(self, at: int, end: int) -> str:
        """The text of a span of the source."""
        source, out = self.source, []
        while (token := _TOKEN.search(source, at, end)) is not None:
            out.append(source[at : token.start()])
            at = token.end()
            if token["command"]:
                at, printed = self._command(token["command"], at, end)
            elif token["begin"]:
                at, printed = self._begin(token, end)
            elif token["end"]:
                printed = "\f"
            elif token["symbol"]:
                at, printed = self._symbol(token["symbol"], at, end)
            else:
                at, printed = self._mark(token[0], at, end)
            out.append(printed)
        out.append(source[at:end])
        return _finished("".join(out))

    def _command(self, name: str, at: int, end: int) -> tuple[int, str]:
        if name in _ACCENTS and (found := _ACCENTED.match(self.source, at, end)):
            return found.end(), _accented(name, found)
        if name == "verb" and (found := _VERB.match(self.source, at, end)):
            return found.end(), found[2].translate(_KEPT)
        if name in ("url", "path", "nolinkurl") and (close := self._argument(at, end)) > at:
            return close, _ESCAPED.sub(r"\1", self.source[self.source.find("{", at) + 1 : close - 1])
        if name == "iffalse":
            close = self._find("\\fi", at, end)
            return (close + len("\\fi") if close >= 0 else at), ""
        if name == "item":
            option = _OPTION.match(self.source, at, end)
            label = self._inner(option.start() + 1, option.end() - 1) if option else "-"
            return (option.end() if option else at), f"\v{label} "
        if (option := _OPTION.match(self.source, at, end)) is not None and name not in _PRINTED:
            at = option.end()
        if name in _HEADINGS:
            return self._printed_argument(at, end, "\f", "\f")
        if name in ("footnote", "footnotetext"):
            return self._printed_argument(at, end, " (", ")")
        if name in _KEYS:
            close = self._argument(at, end)
            start = self.source.find("{", at, close) + 1
            return (close, f"[{self.source[start : close - 1].strip()}]") if close > at else (at, "")
        if name in ("def", "gdef", "edef", "xdef") and (found := _DEFINED.match(self.source, at, end)):
            return self._argument(found.end(), end), ""
        if number := _NUM_ARGUMENTS.get(name) or _LAST_OF.get(name, 1) - 1:
            for _ in range(number):
                at = self._argument(at, end, with_name=True)
            return at, ""
        printed = _PRINTED.get(name, "")
        return self._behind_space(at, end) if printed.isalpha() or name in _SWITCHES else at, printed

    def _begin(self, token: re.Match[str], end: int) -> tuple[int, str]:
        name, at = token["begin"].rstrip("*"), token.end()
        kind = name if name in _MATHS | _VERBATIM | _DROPPED else ""
        if kind and (close := self._find(f"\\end{{{token['begin']}}}", at, end)) >= 0:
            after = close + len(f"\\end{{{token['begin']}}}")
            if kind in _DROPPED:
                return after, "\f"
            raw = self.source[at:close].strip("\n") if kind in _VERBATIM else self.source[token.start() : after]
            return after, f"\f{_without_comments(raw).translate(_KEPT) if kind in _MATHS else raw.translate(_KEPT)}\f"
        option = _OPTION.match(self.source, at, end)
        at = option.end() if option else at
        if name in _NAMED:
            said = self._inner(option.start() + 1, option.end() - 1) if option else ""
            return at, f"\f{name.capitalize()}{f' ({said})' if said else ''}. "
        if name in ("tabular", "tabularx", "tabulary", "longtable", "minipage", "wrapfigure", "multicols", "list"):
            for _ in range(2 if name in ("tabularx", "tabulary", "wrapfigure", "list") else 1):
                at = self._argument(at, end)
        return at, "\f"

    def _symbol(self, symbol: str, at: int, end: int) -> tuple[int, str]:
        if symbol in ("[", "("):
            close = self._find("\\]" if symbol == "[" else "\\)", at, end)
            if close >= 0:
                raw = _without_comments(self.source[at - 2 : close + 2])
                return close + 2, f"\f{raw.translate(_KEPT)}\f" if symbol == "[" else " ".join(raw.split())
        if symbol in _ACCENTS and (found := _ACCENTED.match(self.source, at, end)):
            return found.end(), _accented(symbol, found)
        if symbol == "\\" and (option := _OPTION.match(self.source, at, end)):
            at = option.end()
        return at, _SYMBOLS.get(symbol, "" if symbol in _ACCENTS else symbol)

    def _mark(self, mark: str, at: int, end: int) -> tuple[int, str]:
        if mark == "$":
            found = _INLINE_END.match(self.source, at, end)
            is_closed = found is not None and found[1] == "$"
            maths = _without_comments(found[0]) if found and is_closed else ""
            return (found.end(), f"${' '.join(maths.split())}") if found and is_closed else (at, "$")
        if mark == "$$":
            close = self._find("$$", at, end)
            raw = _without_comments(self.source[at - 2 : close + 2])
            return (close + 2, f"\f{raw.translate(_KEPT)}\f") if close >= 0 else (at, "$$")
        printed = {"~": " ", "&": "\x1e", "``": "“", "''": "”", "--": "–", "---": "—"}
        return at, printed.get(mark, "")

    def _find(self, text: str, at: int, end: int) -> int:
        """The next place of a text, or -1; no part of the source is searched twice for it."""
        start, found = self._found.get(text, (0, -1))
        if not start <= at <= found:
            found = self.source.find(text, at)
            while text == "\\fi" and found >= 0 and _LETTER.match(self.source, found + len(text)):
                found = self.source.find(text, found + 1)
            found = found if found >= 0 else len(self.source)
            self._found[text] = at, found
        return found if found < end else -1

    def _argument(self, at: int, end: int, *, with_name: bool = False) -> int:
        """The end of an argument in braces, or `at` if none follows; a command's name is one, too, `with_name`."""
        start = self._behind_space(at, end)
        close = self._closing.get(start)
        if close is not None and close < end:
            after = close + 1
            while with_name and (option := _OPTION.match(self.source, after, end)):
                after = option.end()
            return after
        if with_name and (name := _NAME.match(self.source, start, end)):
            after = name.end()
            while option := _OPTION.match(self.source, after, end):
                after = option.end()
            return after
        return at

    def _behind_space(self, at: int, end: int) -> int:
        found = _SPACE.match(self.source, at, end)
        return found.end() if found else at

    def _printed_argument(self, at: int, end: int, before: str, behind: str) -> tuple[int, str]:
        """An argument between two texts; a long one is text that follows, so that nothing is read twice."""
        close = self._argument(at, end)
        if not 0 < close - at <= _MAX_ARGUMENT:
            return at, before
        return close, f"{before}{self._inner(self.source.find('{', at) + 1, close - 1)}{behind}"

    def _inner(self, start: int, end: int) -> str:
        """The text of an argument, on one line."""
        return " ".join(self.convert(start, end).split())


def _accented(accent: str, found: re.Match[str]) -> str:
    letter = found[1] or found[2] or found[3] or ""
    return unicodedata.normalize("NFC", letter + _ACCENTS[accent]) if letter else ""


def _matching_braces(source: str) -> dict[int, int]:
    closing: dict[int, int] = {}
    opened: list[int] = []
    for found in _BRACES.finditer(source):
        if found["address"]:  # where a percent sign begins no comment
            closing[found.start("address")] = found.end() - 1
        elif found[0] == "{":
            opened.append(found.start())
        elif found[0] == "}" and opened:
            closing[opened.pop()] = found.start()
    return closing


def _without_comments(maths: str) -> str:
    return re.sub(r"(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*)?", r"\1", maths) if "%" in maths else maths


def _finished(text: str) -> str:
    """Lines of a paragraph are joined, paragraphs are separated by an empty line."""
    text = re.sub(r"(?<![ \t])[ \t]*+\n[ \t]*+\n\s*", "\f", text)
    text = re.sub(r" ?\x1e ?", "\x1d", re.sub(r"[ \t\n]+", " ", text))
    text = re.sub(r" ?\v ?", "\v", re.sub(r"(?<![ \v])[ \v]*+\f[ \f\v]*", "\n\n", text))
    return text.translate(_UNKEPT).strip()
