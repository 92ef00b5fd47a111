"""The filter `language`."""

from finpile.clean.filters.language.filter import FILTER

__all__ = ["FILTER"]
