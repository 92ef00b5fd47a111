"""When a document was published: dates read from fields, headers, URLs and file names; `finpile.clean.html_dates` reads
those of HTML.

Evidence is asked for in the order field or header > html > url > filename (`TIMESTAMP_ORIGINS` of `finpile.document`).

    clock       times, zones, plausible moments
    numeric     dates of three numbers, whose order is a property of the field
    periods     years, halves, quarters and months, which count as their last second
    values      all other values
    declared    `date_format` of a source
    evidence    which order the values of a whole field prove
    paths       file names and URLs

All moments are aware, in UTC, and cut to whole seconds. A moment without a zone is taken for UTC.
"""

from finpile.timestamps.clock import EARLIEST, LATEST, is_plausible
from finpile.timestamps.declared import DateFormat, date_format
from finpile.timestamps.evidence import DateEvidence
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
    "possible_orders",
    "read",
]
