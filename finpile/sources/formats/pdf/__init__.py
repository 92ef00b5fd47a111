"""PDF."""

from finpile.sources.formats.pdf.format import FORMAT

__all__ = ["FORMAT"]
