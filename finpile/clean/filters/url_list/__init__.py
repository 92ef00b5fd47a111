"""The filter `url_list`."""

from finpile.clean.filters.url_list.filter import FILTER

__all__ = ["FILTER"]
