"""What the readers of all formats share: their contract, and the ledger rows of stage `ingest`.

Every file, member and record that cannot be read becomes a ledger row; reading continues behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import BinaryIO, Protocol

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.document import document_id
from finpile.documents.ledger import Removal
from finpile.plugins.format import FORMATS
from finpile.sources.bytes.decoding import spell_surrogates
from finpile.sources.readers.accounting import STRUCTURE, Claim

STAGE = "ingest"

#: Why an input became no document: reasons that any format may give. Formats add reasons of their own.
REASONS = {
    "empty_file": "a file or member of no bytes",
    "too_large": "a record or file above `limits.record` or `limits.member`; `removed_text` has its head",
    "decompression_bomb": "a file that expands more than `limits.ratio` says; what was decoded before is kept",
    "unreadable_file": "cannot be opened or read, or is not what its name says",
    "truncated_file": "a cut file: what precedes the cut is kept, the unfinished record is in `removed_text`",
    "corrupt_file": "compressed data that cannot be decoded from some byte on; what precedes it is kept",
    "corrupt_archive": "an archive or a member of it whose headers or checksums are wrong",
    "no_members": "an archive in which no file matches the source's `members`",
    "no_record": "a file that holds nothing of its format",
    "empty_text": "a text of white space and invisible characters alone",
    "undecodable": "bytes that none of the source's encodings can decode",
    "not_text": "a record that is not for reading (an image, a style sheet, a table for machines)",
    "unreadable_record": "a record, or bytes between records, that break the format",
    "unknown_source": "a record whose field of the source (`name: {field: ...}`) has none of the values in `allow`",
    "reader_error": "a record on which its reader failed in another way: the error's name is in `detail`",
    "unclaimed_bytes": "bytes that a reader passed over and that are not of the format's declared structure",
}

_DETAIL_CHARACTERS = 1000


class Reader(Protocol):
    """The contract of `finpile.plugins.format.Format.read`."""

    def __call__(self, stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
        """Claims all bytes of one input in order, from the current position of the stream.

        A position other than 0 means that the bytes before it are damaged: the reader continues at the next record's
        start, and claims the bytes before it as `Lost`. A cut or corrupt file raises BrokenStream out of `stream`,
        which the reader lets through, with the bytes of the unfinished record as its `partial`. An unclaimed byte, and
        any other exception of the reader, becomes a ledger row.
        """
        ...


def reasons_of(format_name: str) -> Mapping[str, str]:
    """All reasons that inputs of a format may have in the ledger, and their meanings."""
    return {**REASONS, **FORMATS.get(format_name).reasons}


def structure_of(format_name: str) -> Mapping[str, str]:
    """All kinds of structure that inputs of a format may have, and their meanings."""
    return {**STRUCTURE, **FORMATS.get(format_name).structure}


def removal(source: SourceConfig, locator: str, reason: str, detail: str = "", removed_text: bytes = b"") -> Removal:
    """The ledger row of an input that became no document; its date is that of its file's name, by `date_pattern`.

    Raises: ValueError for a reason that is none of the format's.
    """
    if reason not in REASONS and reason not in FORMATS.get(source.format).reasons:
        raise ValueError(
            f"{reason!r} is not a reason of format {source.format}; known: {', '.join(reasons_of(source.format))}"
        )
    return Removal(
        id=document_id(source.label, locator),
        dataset=source.dataset,
        source=source.label,
        locator=locator,
        stage=STAGE,
        reason=reason,
        detail=spell_surrogates(detail[:_DETAIL_CHARACTERS]),
        removed_text=removed_text,
        timestamp=timestamps.from_name(locator, source.date_pattern).moment if source.date_pattern else None,
    )
