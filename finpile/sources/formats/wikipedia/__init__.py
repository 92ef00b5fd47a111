"""Dumps of Wikipedia."""

from finpile.sources.formats.wikipedia.format import FORMAT

__all__ = ["FORMAT"]
