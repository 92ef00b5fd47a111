"""Filings of EDGAR."""

from finpile.sources.formats.edgar.format import FORMAT

__all__ = ["FORMAT"]
