"""Files of JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def json_lines(records: Iterable[Any]) -> bytes:
    """A line of JSON for each record."""
    return "".join(json.dumps(record) + "\n" for record in records).encode()
