"""What a source makes of bytes: documents, rows of the ledger, and accounts that balance."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import FORMATS
from finpile.sources import Account, list_inputs, read_file, read_stream

Item = RawDocument | Removal
Items = tuple[list[RawDocument], list[Removal]]


def split(items: Iterable[Item]) -> Items:
    """The documents, and the rows."""
    found = list(items)
    return [i for i in found if isinstance(i, RawDocument)], [i for i in found if isinstance(i, Removal)]


def read_input(source: SourceConfig, data: str | bytes, locator: str = "a") -> list[Item]:
    """What a source makes of one input, all of whose bytes are accounted for."""
    data = data.encode() if isinstance(data, str) else data
    accounts: list[Account] = []
    items = list(read_stream(FORMATS.get(source.format), io.BytesIO(data), locator, source, accounts.append))
    [account] = accounts
    documents, rows = split(items)
    assert (account.balance(), account.decompressed_bytes) == (0, len(data))
    assert (account.documents, account.removals) == (len(documents), len(rows))
    return items


def read_as(format_name: str, data: str | bytes, locator: str = "a", **settings: Any) -> list[Item]:
    """What a source of a format makes of one input."""
    return read_input(SourceConfig(name="N", dataset="D", format=format_name, paths=("*",), **settings), data, locator)


def read_folder(source: SourceConfig, folder: Path | str) -> tuple[list[RawDocument], list[Removal], list[Account]]:
    """What a source makes of the files in a folder, all of whose bytes are accounted for."""
    accounts: list[Account] = []
    items = [item for file in list_inputs(source, str(folder)) for item in read_file(file, source, accounts.append)]
    assert not any(account.balance() for account in accounts)
    return *split(items), accounts
