"""Input files of every format to documents; whatever cannot be read to rows of the ledger."""

from __future__ import annotations

from finpile.sources.base import REASONS, InputFile, list_inputs, read_file, removal
from finpile.sources.streams import BrokenStream, ByteStream

__all__ = ["REASONS", "BrokenStream", "ByteStream", "InputFile", "list_inputs", "read_file", "removal"]
