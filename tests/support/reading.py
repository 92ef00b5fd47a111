"""What a source makes of bytes: documents, rows of the ledger, and accounts that balance."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Iterator
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


def damaged_copies(whole: bytes, seed: int, first: int = 0, number: int = 150) -> Iterator[bytes]:
    """Copies of a file, each with some bytes from `first` on replaced, inserted or left out."""
    draw = random.Random(seed)
    for _ in range(number):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(first, len(data))
            data[place : place + draw.randint(0, 6)] = draw.randbytes(draw.randint(0, 6))
        yield bytes(data)
