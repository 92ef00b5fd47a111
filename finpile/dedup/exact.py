"""Exact duplicates: documents whose texts are equal byte for byte, or optionally except for white space or case.

Texts are compared by 128-bit digests. Among n documents, two different texts have equal digests with probability about
n^2 / 2^129.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup.cuts import DUPLICATE
from finpile.dedup.order import Order, in_order
from finpile.dedup.plan import (
    REMOVAL_SCHEMA,
    Answer,
    Exchange,
    Index,
    Part,
    Pass,
    Plan,
    Sent,
    Settings,
    key_table,
    scope_bits,
)
from finpile.documents.digest import digest_array, text_digests
from finpile.documents.document import DIGEST_BYTES, digest_bits, text_digest, text_views
from finpile.plugins.stages import Algorithm, Reason

_I64 = npt.NDArray[np.int64]

Fold = Literal["none", "whitespace", "case", "case_whitespace"]
REASON = "exact_duplicate"

ALGORITHM = Algorithm(
    name="exact",
    plan="finpile.dedup.exact:plan",
    reasons=(Reason(REASON, "a text equal to a kept one", is_copy=True),),
)

#: The attributes of a document by which a stage chooses between copies. Documents with equal `digest` are copies;
#: `text_digest` is the digest of the unfolded text. `scope` is the dataset, or "" for the corpus.
ROW_SCHEMA = pa.schema(
    [
        pa.field("digest", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("text_digest", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("priority", pa.int32(), nullable=False),
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
        pa.field("id", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)

#: Shards whose rows, about 50 bytes for each document, share a partition. Texts of 50 bytes have rows of the same size.
_SHARDS_OF_UNIT = 8
#: Bytes of a text, about.
_DOCUMENT_BYTES = 2048

#: The columns that order copies of equal priority and time; shard and row break ties between identical documents.
_CONTENT = ("text_digest", "id", "shard", "row")


def plan(settings: Settings) -> Plan | None:
    """Of documents with equal texts, the first one is kept."""
    dedup = settings.dedup
    if not dedup.exact:
        return None
    return Plan(
        passes=(_equal_texts("equal", REASON, dedup.exact_fold, dedup.order),),
        settings=[dedup.exact_fold, dedup.scope, dedup.order],
    )


def equal_remains(settings: Settings) -> Pass:
    """The pass after cuts: of documents whose remaining texts are equal, the first one is kept.

    Equality is that of `dedup.exact_fold`. The digests in the order of the documents are those of the uncut texts.
    """
    return _equal_texts("left", DUPLICATE, settings.dedup.exact_fold, settings.order, is_cut=True)


def _equal_texts(name: str, reason: str, fold: Fold, order: Order, *, is_cut: bool = False) -> Pass:
    stored = fold == "none" and not is_cut
    digests = None if stored else fold
    reads = () if stored else ("text",)
    exchange = Exchange(
        name="digests",
        reads=reads,
        rows=partial(_rows, digests),
        sends=ROW_SCHEMA,
        answer=partial(_duplicates, reason, order),
        replies=REMOVAL_SCHEMA,
        key="digest",
        shards_of_unit=_SHARDS_OF_UNIT,
        is_row_wise=not stored,
    )
    index = Index(keys=partial(_keys, digests), reads=reads, bytes_of_key=_DOCUMENT_BYTES, reach="equal")
    return Pass(name=name, steps=(exchange,), after_cuts=is_cut, index=index, share=0.1 if is_cut else 1.0)


def _rows(fold: Fold | None, part: Part) -> Sent:
    """`ROW_SCHEMA` of the documents of a part; `digest` is the stored digest without a `fold`."""
    documents = part.documents
    columns = {name: documents[name] for name in ROW_SCHEMA.names if name in documents.schema.names}
    columns |= {
        "digest": _digests(fold, part),
        "text_digest": documents["digest"],
        "scope": pa.repeat(part.scope, documents.num_rows),
    }
    return Sent(pa.table(columns).select(ROW_SCHEMA.names).cast(ROW_SCHEMA))


def _duplicates(reason: str, order: Order, rows: pa.Table) -> Answer:
    return Answer(find_duplicates(rows, reason, order))


def _keys(fold: Fold | None, part: Part) -> pa.Table:
    """The digests of documents, each mixed with its scope."""
    return key_table(digest_bits(_digests(fold, part)) ^ scope_bits(part.scope), part.documents["row"])


def _digests(fold: Fold | None, part: Part) -> pa.Array:
    return part.documents["digest"] if fold is None else document_digests(part.documents, fold)


def document_digests(batch: pa.RecordBatch | pa.Table, fold: Fold = "none") -> pa.FixedSizeBinaryArray:
    """Returns the BLAKE2b-128 digest of each text: 16 bytes per document, in the order of the batch.

    With `fold="whitespace"` every run of ASCII white space is replaced by one space, and white space at both ends is
    ignored. `"case"` applies Unicode's full case folding, which maps `ß` to `ss`. `"case_whitespace"` applies both.
    """
    if fold == "none":
        return text_digests(batch)
    return digest_array(text_digest(_folded(view, fold)) for view in text_views(batch))


def _folded(view: memoryview, fold: Fold) -> bytes:
    text = str(view, "utf-8").casefold().encode() if fold.startswith("case") else bytes(view)
    return b" ".join(text.split()) if fold.endswith("whitespace") else text


def find_duplicates(rows: pa.Table, reason: str = REASON, order: Order = "priority") -> pa.Table:
    """Returns the duplicates among `rows` (`ROW_SCHEMA`), as `REMOVAL_SCHEMA` in order of (shard, row).

    `rows` must contain all rows of each of its digests. Of equal texts in one scope, the first in `order` is kept.
    `reason` is the reason in the result.
    """
    rows = in_order(rows, order, within=("scope", "digest"), content=_CONTENT).combine_chunks()
    first, size = _runs(rows)
    removed = np.flatnonzero(first != np.arange(len(first)))
    gone, kept = rows.take(pa.array(removed)), rows.take(pa.array(first[removed]))
    decisions = {
        "id": gone["id"],
        "shard": gone["shard"],
        "row": gone["row"],
        "duplicate_of": kept["id"],
        "duplicate_offset": pc.if_else(
            pc.equal(gone["text_digest"], kept["text_digest"]), pa.scalar(0, pa.int64()), None
        ),
        "kept_shard": kept["shard"],
        "kept_row": kept["row"],
        "reason": pa.repeat(reason, len(removed)),
        "detail": pa.array(_details(removed - first[removed], size[removed], order), pa.string()),
    }
    table = pa.table(decisions, schema=REMOVAL_SCHEMA)
    return table.sort_by([("shard", "ascending"), ("row", "ascending")])


def _details(num_before: _I64, size: _I64, order: Order) -> list[str]:
    """What the ledger says of documents with that number of equal texts before them, and in all."""
    if order == "time":  # later copies must not change the row
        return [f"equal to {num} earlier {'text' if num == 1 else 'texts'}" for num in num_before.tolist()]
    return [f"one of {num} equal texts" for num in size.tolist()]


def _runs(rows: pa.Table) -> tuple[_I64, _I64]:
    """Returns for each row of a sorted table the first row with the same scope and digest, and their number."""
    num = rows.num_rows
    begins = np.ones(num, dtype=bool)
    for name in ("scope", "digest"):
        column = rows[name]
        changes = pc.not_equal(column.slice(1), column.slice(0, max(num - 1, 0))).to_numpy()
        begins[1:] = changes if name == "scope" else begins[1:] | changes
    starts = np.flatnonzero(begins)
    sizes = np.diff(np.r_[starts, num])
    return np.repeat(starts, sizes), np.repeat(sizes, sizes)
