"""Compiles the kernels of cleaning, those of rare pages and of all filters included."""

from __future__ import annotations

from finpile.clean.filters.language import filter as language
from finpile.clean.html.markup import strip_markup
from finpile.clean.stage import clean
from finpile.clean.words import words


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk, for example while an image is built.

    A build compiles those that most pages need (`finpile.clean.compile_kernels`) and those of its filters.
    """
    clean.compile_kernels()
    words.compile_kernels()
    language.compile_kernels()
    strip_markup("<p>x")
