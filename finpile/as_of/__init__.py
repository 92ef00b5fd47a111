"""The corpus as it would have been built on a day: documents and ledger of a build by filter.

Under `dedup: {order: time}` every decision about a document depends on earlier documents alone. So the documents up to
a day, and the rows of the ledger about documents up to that day, are those of a build of the documents up to that day.
Only `num_copies` counts later documents; the ledger has these.

A document is of the last moment that its timestamp can mean (`finpile.dedup.order`); a day means its end. Undated
documents are of no day. Rows of the ledger follow the timestamp of their document; those about inputs that became no
document are undated, but for records and parts of records with a date, and files with one in their name.

Decision: docs/decisions/0059-as-of-is-a-filter.md.
"""

from finpile.as_of.cut import Cut, check_causal
from finpile.as_of.documents import (
    check_day,
    count_again,
    must_decide,
    parts_of_day,
    takedowns_of_day,
    write_cut,
    write_takedowns,
)

__all__ = [
    "Cut",
    "check_causal",
    "check_day",
    "count_again",
    "must_decide",
    "parts_of_day",
    "takedowns_of_day",
    "write_cut",
    "write_takedowns",
]
