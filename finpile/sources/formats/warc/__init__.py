"""Web archives: WARC and WET."""

from finpile.sources.formats.warc.format import FORMAT

__all__ = ["FORMAT"]
