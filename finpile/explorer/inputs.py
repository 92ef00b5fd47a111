"""The bytes of the input files by source, from their accounts in OUT/inputs."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from finpile.output.layout import INPUTS_PART
from finpile.output.published_files import PublishedFiles

_SUMS = ("stored_bytes", "decompressed_bytes", "record_bytes", "ledger_bytes", "member_bytes", "documents")


def input_bytes(files: PublishedFiles, names: Any) -> list[dict[str, Any]]:
    """The sums of the accounts of each source; `structure` by kind. Bytes of members are those of rows of their own.

    Of a build without accounts, as that of `finpile dedup`, none.
    """
    if INPUTS_PART not in files:
        return []
    sums: dict[int, dict[str, Any]] = {}
    for row in files[INPUTS_PART].table().to_pylist():
        number = names.source(row["dataset"], row["source"])
        found = sums.setdefault(
            number, {"source": number, "files": 0, "structure": defaultdict(int), **dict.fromkeys(_SUMS, 0)}
        )
        found["files"] += row["archive"] is None
        if row["archive"] is not None:
            found["stored_bytes"] -= row["stored_bytes"]  # of the archive
        for name in _SUMS:
            found[name] += row[name]
        for kind, size in dict(row["structure"]).items():
            found["structure"][kind] += size
    return [{**sums[number], "structure": dict(sorted(sums[number]["structure"].items()))} for number in sorted(sums)]
