"""Input files of every format to documents; whatever cannot be read to rows of the ledger."""

from __future__ import annotations

from finpile.sources.bytes.streams import BrokenStream, ByteStream
from finpile.sources.readers.accounting import ACCOUNT_SCHEMA, STRUCTURE, Account
from finpile.sources.readers.base import REASONS, reasons_of, removal, structure_of
from finpile.sources.readers.finding import InputFile, find_documents, list_files, list_inputs
from finpile.sources.readers.reading import read_file, read_stream

__all__ = [
    "ACCOUNT_SCHEMA",
    "REASONS",
    "STRUCTURE",
    "Account",
    "BrokenStream",
    "ByteStream",
    "InputFile",
    "find_documents",
    "list_files",
    "list_inputs",
    "read_file",
    "read_stream",
    "reasons_of",
    "removal",
    "structure_of",
]
