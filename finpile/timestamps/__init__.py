"""Publication dates from fields, headers, URLs and file names; `finpile.clean.html.dates` reads those of HTML.

The sources of a date have the priority field or header > html > url > filename (`TIMESTAMP_ORIGINS` of
`finpile.documents.document`).

    clock       times, zones, plausible moments
    numeric     dates of three numbers, whose order is a property of the field
    periods     years, halves, quarters and months, which count as their last second
    values      all other values
    declared    `date_format` of a source
    evidence    the order of day and month that the values of a field prove
    paths       file names and URLs

All moments are aware, in UTC, and truncated to whole seconds. A moment without a zone is read as UTC.
"""

from finpile.timestamps.clock import EARLIEST, LATEST, is_plausible, plausible
from finpile.timestamps.declared import DateFormat, date_format
from finpile.timestamps.field_order import DateEvidence
from finpile.timestamps.numeric import ORDERS, Order, is_order_open, possible_orders
from finpile.timestamps.paths import check_pattern, from_name, from_url
from finpile.timestamps.values import Reading, parse, read

__all__ = [
    "EARLIEST",
    "LATEST",
    "ORDERS",
    "DateEvidence",
    "DateFormat",
    "Order",
    "Reading",
    "check_pattern",
    "date_format",
    "from_name",
    "from_url",
    "is_order_open",
    "is_plausible",
    "parse",
    "plausible",
    "possible_orders",
    "read",
]
