"""Redirects duplicates whose kept copy was itself removed as a duplicate by a later stage."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KEPT_COPY = re.compile(r"; its kept copy ([0-9a-f]+) was removed by the stage ")


def redirect(removal: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a removal (`stage`, `detail`, `duplicate_of`, `kept_shard`, `kept_row`, ...) with its new kept copy.

    `later` is the removal of the previous kept copy by a later stage. The offset in the new copy is null: unknown.
    """
    detail = f"{removal['detail']}; its kept copy {removal['duplicate_of']} was removed by the stage {later['stage']}"
    moved = {name: later[name] for name in ("duplicate_of", "kept_shard", "kept_row")}
    return {**removal, **moved, "duplicate_offset": None, "detail": detail}


def redirected_from(detail: str) -> list[str]:
    """The ids of earlier kept copies in the `detail` of a removal.

    >>> later = {"stage": "near", "duplicate_of": "c1", "kept_shard": 0, "kept_row": 1}
    >>> redirected_from(redirect({"detail": "equal", "duplicate_of": "b7"}, later)["detail"])
    ['b7']
    """
    return _KEPT_COPY.findall(detail)
