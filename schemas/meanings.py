"""What the code cannot say of the artifacts: the meaning of each column, and of fields that have no docstring."""

from __future__ import annotations

from collections.abc import Mapping

from finpile.document import TIMESTAMP_ORIGINS
from finpile.layout import LEDGER_STAGES
from finpile.split import HELDOUT, TRAIN

DOCUMENT_MEANINGS = {
    "id": "32 hex digits: BLAKE2b-128 of source, a zero byte, locator",
    "dataset": "first level of Table 1",
    "source": "second level of Table 1",
    "text": "UTF-8",
    "timestamp": "when the document was published; null where that is not known",
    "timestamp_origin": f"where the timestamp was found: {', '.join(TIMESTAMP_ORIGINS)}",
    "locator": "path below the corpus root, `!member` inside an archive, `#` and byte offset or ordinal inside a file",
    "url": "address, where the source tells one",
    "title": "title, where the source tells one",
    "license": "usage rights: the record's own, or those of the source's entry in the corpus file",
    "num_copies": "1 + the documents that were removed as duplicates of this one",
    "meta": "JSON object: whatever else the source knew",
    "media_type": "between ingest and clean only: text/plain or text/html",
    "raw_timestamp": "between ingest and clean only: the record's date as it was written, where it is text or a number",
    "split": f"side of the temporal split: {TRAIN} or {HELDOUT}",
}
LEDGER_MEANINGS = {
    "id": "of the document that lost text; of an input that became no document, the id it would have had",
    "dataset": DOCUMENT_MEANINGS["dataset"],
    "source": DOCUMENT_MEANINGS["source"],
    "locator": DOCUMENT_MEANINGS["locator"],
    "stage": f"who took it out: {', '.join(LEDGER_STAGES)}",
    "reason": "snake_case, from the stage's closed list",
    "detail": "for a person: the measured value against the bound, or the decoder's message",
    "duplicate_of": "id of the kept document that stands for this one",
    "duplicate_offset": "byte at which `removed_text` stands there; null where it does not stand there byte for byte",
    "start": "first byte taken, in the text as it stood before the stage; null for the whole document",
    "end": "byte after the last one taken; where it equals `start`, a defect was mended and no text taken",
    "removed_text": "the bytes that were taken",
}
INPUT_MEANINGS = {
    "dataset": DOCUMENT_MEANINGS["dataset"],
    "source": DOCUMENT_MEANINGS["source"],
    "locator": "path of the file relative to the corpus, then `!` and its path in an archive",
    "archive": "locator of the archive that holds it; null for a file",
    "stored_bytes": "bytes on disk or in the archive, compressed or not",
    "decompressed_bytes": "bytes that its compression gave; the sum of records, ledger, members and structure",
    "record_bytes": "of documents",
    "ledger_bytes": "of rows of the ledger of the stage ingest; `removed_text` has the beginning of a long one",
    "member_bytes": "of files in it that have rows of their own; 0 for a .zip, all of which is structure",
    "structure": "bytes by kind of structure: what the format has beside its records",
    "skipped_bytes": "stored bytes that could not be decompressed, so that no decompressed bytes correspond to them",
    "documents": "read from it",
    "removals": "its rows in the ledger, stage ingest",
    "removed_bytes": "bytes of `removed_text` of these rows",
}
MERGED_MEANINGS = {
    "piece": "its bytes; rows are in their order",
    "log_prob": "natural logarithm of its probability in the model before the cut to the vocabulary size",
    "num_models": "of how many chunk models it was a part",
}

VOCABULARY_MEANINGS = {
    "id": "token id: the 256 bytes by value, pieces by falling probability, the end of a document last",
    "piece": "its bytes",
    "log_prob": "natural logarithm of its probability, a multiple of 10^-12; null for the end of a document",
    "num_models": "of how many chunk models it was a part; null where not known",
    "origin": "learned, added_byte (a byte that never occurred) or special",
}

#: Fields whose names say it all to their owner, and too little to a stranger.
UNSAID: Mapping[tuple[str, str], str] = {
    ("CorpusConfig", "name"): "Name of the corpus, for reports.",
    ("DedupConfig", "exact"): "Of equal texts one is kept.",
    ("TokensConfig", "sequence_length"): "Tokens of one training sequence.",
    ("TrainConfig", "preset"): "`tiny` or `bloomberggpt-50b`: whatever this file does not say.",
}
