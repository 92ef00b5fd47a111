"""Documents that the stage `clean` divided into parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any


def parts_more(cleaned: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """By dataset and source, the parts less the documents that they are of, from the counts of the stage `clean`."""
    return Counter({(row["dataset"], row["source"]): row.get("parts_more", 0) for row in cleaned["sources"]})
