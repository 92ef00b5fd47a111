"""LaTeX to text: formulas as written, everything else as printed."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources.formats.latex.text import to_text
from tests.support.reading import read_as, read_folder

ARTICLE = r"""\documentclass[a4paper]{article} % class
\newcommand{\R}[2][x]{\mathbb{R}^{#1}}
\title{On \emph{oil}}
\begin{document}
\maketitle
\section*{Wells \& pumps}\label{sec:w}
They pump 5\% more,~see \cite[p.~1]{smith} and
Section~\ref{sec:w}. % a comment
Price is \$5 -- ``high''.

\begin{theorem}[Darcy] Let $q = -k%
\nabla p$. Then
\begin{align*}
  a &= b \\ % no
  c &= d
\end{align*}
\end{theorem}
\begin{itemize}
\item one
\item[b)] two\footnote{Not \textbf{three}.}
\end{itemize}
\begin{tabular}{l|r} a & b \\ \hline 1 & 2 \end{tabular}
\begin{verbatim}
x  = {1} % kept
\end{verbatim}
\begin{thebibliography}{9}\bibitem{smith} Smith.\end{thebibliography}
\end{document}
ignored
"""


def read(data: bytes) -> RawDocument | Removal:
    [item] = read_as("latex", data, "a.tex")
    return item


def test_article() -> None:
    document = read(ARTICLE.encode())
    assert isinstance(document, RawDocument) and document.title == "On oil"
    assert document.text == (
        "Wells & pumps\n\nThey pump 5% more, see [smith] and Section [sec:w]. Price is $5 – “high”.\n\n"
        "Theorem (Darcy). Let $q = -k%\n\\nabla p$. Then\n\n".replace("%\n", "")
        + "\\begin{align*}\n  a &= b \\\\ c &= d\n\\end{align*}\n\n- one\nb) two (Not three.)\n\n"
        "a\tb\n1\t2\n\nx  = {1} % kept"
    )


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r"G\"odel, \'{e}, \c{c}, \v s, na\"{\i}ve, \o re, \ss", "Gödel, é, ç, š, naïve, øre, ß"),
        (r"\textcolor{red}{a} \href{http://x}{b} \emph{c}{\em d} \verb|a  {|", "a b cd a  {"),
        (r"a\\[2pt]b\par c \noindent [d]", "a\nb\n\nc [d]"),
        (
            r"\url{http://x/~b?a=1&b\_c%20d--e} \href{http://x/%20}{y}\footnote{\url{z%}} w",
            "http://x/~b?a=1&b_c%20d--e y (z%) w",
        ),
        (r"\verb|% {|\footnote{a} \url|b| % \url{c} {", "% { (a) |b|"),
        (r"a \iffalse b \figure{c} \fi d \iffalse e", "a d e"),
        (r"\def\x#1{no} \let\a\b \newtheorem{thm}[a]{Thm} yes", "yes"),
        (r"5\$ and $x", "5$ and $x"),
        (r"\[ a \] \( b \) $$c$$", "\\[ a \\]\n\n\\( b \\)\n\n$$c$$"),
    ],
)
def test_commands(source: str, text: str) -> None:
    assert to_text(source).text == text


def test_files_without_text_are_rows() -> None:
    for data, reason in ((rb"\usepackage{x} % no", "empty_text"), (b"\xff", "undecodable")):
        row = read(data)
        assert isinstance(row, Removal) and row.reason == reason


@pytest.mark.parametrize(
    "part",
    ["{", "$", "\\begin{align}", "\\footnote{", "\\[", "$$", "\\item[", "\\'", "\\cite{", "%", "\\\\",
     "a" + " " * 199_999, "\\title" + " " * 199_994],
)  # fmt: skip
def test_text_after_many_marks_that_never_close_is_kept(part: str) -> None:
    """Quadratic time on these 200 KB would take minutes."""
    text = to_text(part * (200_000 // len(part)) + "\n\nThis is the last line.").text
    assert text.endswith("is the last line.")


def test_a_far_end_is_searched_once() -> None:
    source = "\\footnote{\\iffalse}" * 100_000 + "\\fi This is the last line."
    assert to_text(source).text.endswith("() This is the last line.")


def test_words_of_damaged_sources_are_kept() -> None:
    words = [f"word{number}" for number in range(200)]
    draw = random.Random(6)
    for _ in range(50):
        marks = [draw.choice(["{", "}", "\\em ", "~", "\n\n", "\\\\", "``", "--", " ", " "]) for _ in words]
        assert re.findall(r"word\d+", to_text("".join(map("".join, zip(words, marks, strict=True)))).text) == words


def test_book_and_stacks(real_data: Callable[[str], Path]) -> None:
    """Each file is a document or a row, and formulas are those that a regular expression finds."""
    archive = real_data("arxiv") / "hott_book_tex.tar.zst"
    source = SourceConfig(name="N", dataset="D", format="latex", paths=(archive.name,), members=("*.tex",))
    documents, rows, _ = read_folder(source, archive.parent)
    unpack = ["tar", "-I", "zstd", "--wildcards", "-xOf", str(archive), "basics.tex"]
    whole = subprocess.run(unpack, check=True, capture_output=True).stdout.decode()
    names = subprocess.run(["tar", "-I", "zstd", "-tf", str(archive)], check=True, capture_output=True).stdout.split()
    assert len(documents) + len(rows) == sum(name.endswith(b".tex") for name in names)
    [basics] = [document for document in documents if document.locator.endswith("!basics.tex")]
    for name in ("equation", "align", "gather*", "equation*"):
        commented = re.sub(r"(?m)(?<!\\)%.*", "", whole)
        assert basics.text.count(f"\\begin{{{name}}}") == commented.count(f"\\begin{{{name}}}"), name
    rest = re.sub(r"\$[^$]*\$|\\\[.*?\\\]|\\begin\{([\w*]+)\}.*?\\end\{\1\}", "", basics.text, flags=re.DOTALL)
    assert len(re.findall(r"\\[a-zA-Z]+", rest)) < 20
