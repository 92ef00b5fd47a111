"""The meaning of each column, and of fields without a docstring, for the rendered schemas."""

from __future__ import annotations

from collections.abc import Mapping

from finpile.documents.document import TIMESTAMP_ORIGINS
from finpile.documents.split import HELDOUT, TRAIN
from finpile.plugins.stages import ledger_stages

DOCUMENT_MEANINGS = {
    "id": "32 hex digits: BLAKE2b-128 of source, a zero byte, locator",
    "dataset": "first level of Table 1",
    "source": "second level of Table 1",
    "text": "UTF-8",
    "timestamp": "publication date; null if unknown",
    "timestamp_origin": f"source of the timestamp: {', '.join(TIMESTAMP_ORIGINS)}",
    "locator": "path below the corpus root, `!member` inside an archive, `#` and byte offset or ordinal inside a file",
    "url": "URL of the document, if the source has one",
    "title": "title of the document, if the source has one",
    "license": "usage rights: the record's own, or those of the source's entry in the corpus file",
    "num_copies": "1 + the number of documents that were removed as duplicates of this one",
    "meta": "JSON object: all other fields of the source",
    "media_type": "between ingest and clean only: text/plain or text/html",
    "raw_timestamp": "between ingest and clean only: the unparsed date of the record, if it is text or a number",
    "digest": "between clean and split only: BLAKE2b-128 of the text",
    "facts": "between clean and split only: facts of Inline XBRL, which are published in facts/",
    "split": f"side of the temporal split: {TRAIN} or {HELDOUT}",
    "sub_source": "part of the row (site, outlet, form) by the source's rule `sub_source`; in builds with such a rule",
}
LEDGER_MEANINGS = {
    "id": "id of the document with the removed text; for an unreadable input, the id that its document would have",
    "dataset": DOCUMENT_MEANINGS["dataset"],
    "source": DOCUMENT_MEANINGS["source"],
    "locator": DOCUMENT_MEANINGS["locator"],
    "stage": f"stage that removed the text: {', '.join(ledger_stages())}",
    "reason": "snake_case, from the stage's closed list",
    "detail": "for people: the measured value and the bound, or the decoder's message",
    "duplicate_of": "id of the kept copy",
    "duplicate_offset": "byte position of `removed_text` in the kept copy's text before the stage; null if it is not "
    "one range there, or its place is unknown",
    "start": "first removed byte, in the document's text before the stage; null for the whole document",
    "end": "byte after the last removed byte; if equal to `start`, a defect was repaired and no text removed",
    "removed_text": "the removed bytes",
    "timestamp": "the date with which `clean` keeps the document, or would keep it; null if there is none",
}
FACT_MEANINGS = {
    "id": "id of the document",
    "fact": "number of the fact in its page, from 0, in the order of the page",
    "concept": "name of the concept with its prefix, such as us-gaap:Revenues",
    "value": "the number that is reported, sign and scale applied, as a decimal; true or false of a box; another text "
    "as it is shown; null for nil, for words and formats that are not known, and for more than 256 characters",
    "shown": "as the page shows it, with single spaces; null for more than 256 characters",
    "unit": "USD, shares, USD/shares, ...; null for a text fact",
    "decimals": "to how many decimals the value is exact, such as -6, or INF",
    "sign": "- if the tag says that the value is negative",
    "period_start": "first day of the period; null for an instant",
    "period_end": "last day of the period, or the day of the instant",
    "dimensions": "axes and their members",
    "filer": "identifier of the entity that the fact is about: the CIK of a filing with the SEC",
    "hidden": "whether the page hides the fact",
    "start": "first byte in the text of the document; null if the text does not show the fact, or a part of it was cut",
    "end": "byte after the last one; null if `start` is",
    "form": "form of the filing, from its header",
    "accession": "accession number of the filing, from its header",
    "filed": "filing date, from its header",
    "accepted": "moment of acceptance in New York, from its header",
    "timestamp": "timestamp of the document: when the fact became public",
}
INPUT_MEANINGS = {
    "dataset": DOCUMENT_MEANINGS["dataset"],
    "source": DOCUMENT_MEANINGS["source"],
    "locator": "path of the file relative to the corpus, then `!` and its path in an archive",
    "archive": "locator of the archive that contains the file; null for a file outside archives",
    "stored_bytes": "size on disk or in the archive, compressed or not",
    "decompressed_bytes": "size after decompression: the sum of records, ledger, members and structure",
    "record_bytes": "bytes of documents",
    "ledger_bytes": "bytes of ledger rows of the stage ingest; `removed_text` has the beginning of a long one",
    "member_bytes": "bytes of members with rows of their own; 0 for a .zip, which counts as structure as a whole",
    "structure": "bytes by kind of structure: parts of the format other than records",
    "skipped_bytes": "stored bytes that could not be decompressed and so have no decompressed bytes",
    "documents": "number of documents read from the file",
    "removals": "number of its ledger rows of the stage ingest",
    "removed_bytes": "bytes of `removed_text` of these rows",
}
MERGED_MEANINGS = {
    "piece": "bytes of the piece; rows are sorted by them",
    "log_prob": "natural logarithm of the probability in the model before the cut to the vocabulary size",
    "num_models": "number of chunk models with this piece",
}

VOCABULARY_MEANINGS = {
    "id": "token id: the 256 bytes by value, pieces by falling probability, the end of a document last",
    "piece": "bytes of the piece",
    "log_prob": "natural logarithm of the probability, a multiple of 10^-12; null for the end of a document",
    "num_models": "number of chunk models with this piece; null if unknown",
    "origin": "learned, added_byte (a byte that never occurred) or special",
}

TOKEN_INDEX_MEANINGS = {
    "file": "the file of the document, relative to OUT",
    "row": "its row there, from 0",
    "first_token": "tokens of the document before the piece; 0 but for the first piece of a shard",
    "first_byte": "bytes of the document before the piece; 0 but for the first piece of a shard",
    "num_tokens": "tokens of the piece, the end of the document included",
}

ATTRIBUTE_MEANINGS = {
    "id": "the document, as in `documents` and `removed`",
    "name": "the id of its record in the input; else that of the document",
    "locator": "its place in the input",
    "stage": "which stage removes it; null for a kept document with copies",
    "reason": "why; null for a kept document with copies",
    "start": "first byte of a span in the text as it was read; null for the whole document",
    "end": "end of the span",
    "group": "the id of the kept document of the copies; of a span the digest of its text",
    "group_size": "documents or spans of the group, the kept one included",
    "kept": "the id of the document that keeps the text; null if none does",
    "is_kept": "whether this is the kept document of the group",
}

LICENSE_MEANINGS = {
    "id": "the document",
    "license": "the licence of its record, else of its source; null for none",
    "text_bytes": "UTF-8 bytes of its text",
}

#: Descriptions of fields without a docstring.
UNSAID: Mapping[tuple[str, str], str] = {
    ("CorpusConfig", "name"): "Name of the corpus, for reports.",
    ("DedupConfig", "exact"): "Whether to remove all but one of the documents with equal text.",
    ("TokensConfig", "sequence_length"): "Tokens of one training sequence.",
}
