"""What the text of an SEC filing says about itself: its items, and the facts of Inline XBRL.

item_titles     the items of Forms 10-K, 10-Q and 8-K, in order, with the words of their titles
items           where each item's section begins and ends
"""

from finpile.filings.items import Item, Items, find_items

__all__ = ["Item", "Items", "find_items"]
