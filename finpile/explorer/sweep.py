"""The sweep of the vocabulary size for the pages, from the files of `finpile tokenizer sweep --output`."""

from __future__ import annotations

from typing import Any

from finpile import storage
from finpile.errors import InputError
from finpile.report.sweep import TABLE_NAME


def read_sweep(folder: str) -> dict[str, Any]:
    """The table of a sweep, and its curve: vocabulary size and bytes of the encoded text, in order of the sizes.

    Raises: InputError for a folder that holds no sweep.
    """
    url = storage.join(folder, f"{TABLE_NAME}.json")
    try:
        found = storage.read_json(url)
        points = [[row["values"][key] for key in ("vocab_size", "encoded_bytes")] for row in found["rows"]]
        table = {key: found[key] for key in ("name", "title", "caption", "columns", "footnotes")}
        rows = [{"kind": row["kind"], "shown": row["shown"]} for row in found["rows"]]
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        raise InputError(f"{url} is no sweep: name the --output of `finpile tokenizer sweep`") from None
    return {**table, "rows": rows, "points": points}
