"""Source code: a file is a document, its language that of its name, its licence that of an SPDX line, or of the nearest
licence file above it in its archive.

Binary, minified and generated files are rows of the ledger, by the bounds of Codex's data (Chen et al. 2021,
https://arxiv.org/abs/2107.03374, section 3.1): lines of 100 characters on average, or one of 1,000.

Source: names of languages, https://github.com/github-linguist/linguist; https://spdx.dev/learn/handling-license-info.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import UTF8, decode
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, Refused, read_bytes

_MAX_MEAN_LINE, _MAX_LINE = 100, 1000
_HEAD_CHARACTERS = 4096
_SPDX = re.compile(r"SPDX-License-Identifier:[ \t]*([\w.+\-() ]{1,200}\w\)?\+?)")
_GENERATED = re.compile(
    r"@generated\b|\bDO NOT EDIT\b|(?i:\b(?:auto-?|automatically |machine[ -])generated (?:by|from|file)\b)"
)
#: Text for readers has long lines: paragraphs.
_PROSE = frozenset(("AsciiDoc", "Markdown", "reStructuredText", "Text", "TeX", "Jupyter Notebook"))
_LANGUAGES = {
    "Ada": "adb ads", "AsciiDoc": "adoc asciidoc", "Assembly": "asm s", "Awk": "awk", "Batchfile": "bat cmd",
    "C": "c h", "C#": "cs", "C++": "cc cpp cxx hh hpp hxx ipp", "CMake": "cmake", "COBOL": "cbl cob", "CSS": "css",
    "Clojure": "clj cljs", "CoffeeScript": "coffee", "Crystal": "cr", "Cuda": "cu cuh", "D": "d", "Dart": "dart",
    "Elixir": "ex exs", "Elm": "elm", "Emacs Lisp": "el", "Erlang": "erl hrl", "F#": "fs fsi fsx",
    "Fortran": "f f90 f95 for", "GLSL": "glsl frag vert", "Go": "go", "Groovy": "groovy", "HCL": "tf hcl",
    "HTML": "html htm", "Haskell": "hs", "INI": "ini cfg", "JSON": "json", "Java": "java",
    "JavaScript": "js cjs mjs jsx",
    "Jupyter Notebook": "ipynb", "Julia": "jl", "Kotlin": "kt kts", "Lua": "lua", "M4": "m4", "MATLAB": "m",
    "Makefile": "mk mak", "Markdown": "md markdown", "Nim": "nim", "Nix": "nix", "OCaml": "ml mli",
    "Objective-C++": "mm", "PHP": "php", "PLSQL": "pls pkb pks", "Pascal": "pas", "Perl": "pl pm perl t",
    "PowerShell": "ps1 psm1", "Prolog": "pro", "Protocol Buffer": "proto", "Python": "py pyi pyx", "R": "r",
    "Racket": "rkt", "Ruby": "rb", "Rust": "rs", "SQL": "sql", "Scala": "scala sc", "Scheme": "scm ss",
    "Shell": "sh bash zsh ksh",
    "Solidity": "sol", "Stan": "stan", "Swift": "swift", "SystemVerilog": "sv svh", "TOML": "toml", "Tcl": "tcl",
    "TeX": "tex sty cls bib", "Text": "txt", "TypeScript": "ts tsx", "VBA": "bas", "VHDL": "vhd vhdl",
    "Verilog": "v vh",
    "Vim Script": "vim", "Visual Basic .NET": "vb", "XML": "xml xsd xsl", "YAML": "yaml yml", "Zig": "zig",
    "reStructuredText": "rst",
}  # fmt: skip
_BY_SUFFIX = {suffix: language for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()}
_BY_NAME = {"makefile": "Makefile", "gnumakefile": "Makefile", "dockerfile": "Dockerfile", "cmakelists.txt": "CMake"}
_INTERPRETERS = {
    "sh": "Shell", "bash": "Shell", "dash": "Shell", "zsh": "Shell", "python": "Python", "perl": "Perl", "ruby": "Ruby",
    "node": "JavaScript", "awk": "Awk", "gawk": "Awk", "tclsh": "Tcl", "wish": "Tcl", "lua": "Lua", "Rscript": "R",
}  # fmt: skip
_SHEBANG = re.compile(rb"#![ \t]*\S*?(?:/env[ \t]+(?:-\S+[ \t]+)*)?([A-Za-z]+)[\d.]*(?=\s)")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The text of a file as it is; its locator is the file's."""
    return read_bytes(stream, locator, source, partial(_code, locator, source))


def _code(locator: str, source: SourceConfig, data: bytes) -> Converted:
    name = re.split(r"[/!]", locator)[-1]
    if b"\0" in data:
        raise Refused("binary", "it has zero bytes")
    language = language_of(name, data)
    if language is None:
        raise Refused("not_text", f"{name}: a file of no known language")
    text = decode(data, source.encoding or UTF8)[0]
    if language not in _PROSE:
        _refuse_machines_text(text)
    licenses = _SPDX.findall(text[:_HEAD_CHARACTERS])
    return Converted(
        text=text, title=name, license=licenses[0].strip() if licenses else None, meta={"language": language}
    )


def language_of(name: str, data: bytes = b"") -> str | None:
    """The language of a file by its name, else by its first line.

    >>> language_of("a/setup.PY"), language_of("Makefile"), language_of("run", b"#!/usr/bin/env -S python3 -u\\n")
    ('Python', 'Makefile', 'Python')
    """
    base = name.rpartition("/")[2].lower()
    stem, dot, suffix = base.rpartition(".")
    found = _BY_NAME.get(base) or (_BY_SUFFIX.get(suffix) if dot and stem else None)
    if found is None and (interpreter := _SHEBANG.match(data)):
        found = _INTERPRETERS.get(interpreter[1].decode())
    return found


def _refuse_machines_text(text: str) -> None:
    """Raises: Refused for text that no one wrote, or for machines."""
    lines = [len(line) for line in text.splitlines()]
    longest, mean = max(lines, default=0), sum(lines) / max(1, len(lines))
    if longest > _MAX_LINE or mean > _MAX_MEAN_LINE:
        raise Refused("minified", f"lines of {mean:.0f} characters on average, {longest} at most")
    if found := _GENERATED.search(text[:_HEAD_CHARACTERS]):
        raise Refused("generated", f"says {found[0]!r}")


FORMAT = Format(
    name="code",
    read=read,
    has_licenses=True,
    has_license_files=True,
    meta={
        "language": "the programming language, by the name of the file",
        "license_file": "the file of an archive from which the document has its licence",
    },
    reasons={
        "binary": "a file with zero bytes",
        "minified": "code whose lines have more than 100 characters on average, or one more than 1,000",
        "generated": "code whose first 4,096 characters say that a program wrote it",
    },
)
