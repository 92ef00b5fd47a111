"""Sources in LaTeX."""

from finpile.sources.formats.latex.format import FORMAT

__all__ = ["FORMAT"]
