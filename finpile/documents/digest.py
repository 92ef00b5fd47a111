"""A digest of a multiset of documents that is independent of their order and additive over shards.

The digest of a document is BLAKE2b-128 of its id, a zero byte and the digest of its text, so that no text is hashed
twice; the digest of a multiset is the sum of these numbers modulo 2^128. So the digest of a union is the sum of the
digests, a document that occurs twice counts twice, and two multisets with equal digests have, up to hash collisions,
the same documents with the same texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import DIGEST_BYTES, text_digest, text_views

_MODULUS = 1 << (8 * DIGEST_BYTES)


def text_digests(documents: pa.RecordBatch | pa.Table) -> pa.FixedSizeBinaryArray:
    """`text_digest` of each text."""
    return digest_array(map(text_digest, text_views(documents)))


def digest_array(digests: Iterable[bytes]) -> pa.FixedSizeBinaryArray:
    """Digests of 16 bytes as an array."""
    data = b"".join(digests)
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(DIGEST_BYTES), len(data) // DIGEST_BYTES, [None, pa.py_buffer(data)]
    )


def multiset_digest(ids: Iterable[str], texts: Iterable[str | bytes | memoryview]) -> int:
    """The sum over all documents, `0 <= digest < 2^128`; 0 if there are none.

    Raises: ValueError if the numbers of ids and texts differ.
    """
    return _sum(ids, (text_digest(text.encode() if isinstance(text, str) else text) for text in texts))


def digest_of_documents(documents: pa.RecordBatch | pa.Table) -> int:
    """The same, from the columns `id` and `digest`."""
    return _sum(documents["id"].to_pylist(), documents["digest"].to_pylist())


def _sum(ids: Iterable[str], contents: Iterable[bytes]) -> int:
    blake2b, total = hashlib.blake2b, 0
    for identity, content in zip(ids, contents, strict=True):
        total += int.from_bytes(blake2b(identity.encode() + b"\0" + content, digest_size=DIGEST_BYTES).digest())
    return total % _MODULUS


def metadata_digest(documents: pa.Table) -> int:
    """The sum over documents of BLAKE2b-128 of the id, a zero byte and all columns except the text, in any order of
    columns."""
    parts: list[pa.Array | pa.Scalar] = []
    for name in sorted(set(documents.column_names) - {"id", "text"}):
        values = documents[name]
        if pa.types.is_timestamp(values.type):  # Parquet has no seconds
            values = values.cast(pa.timestamp("s", "UTC"))
        values = values.cast(pa.string())
        parts += [f"{name} ", pc.fill_null(pc.cast(pc.binary_length(values), pa.string()), "null"), " ", values]
    joined = pc.binary_join_element_wise(*parts, "", null_handling="replace", null_replacement="")
    return _sum(documents["id"].to_pylist(), (row.encode() for row in joined.to_pylist()))


def add(*digests: int) -> int:
    """The digest of the union of multisets."""
    return sum(digests) % _MODULUS


def to_hex(digest: int) -> str:
    """32 hex digits."""
    return f"{digest:0{2 * DIGEST_BYTES}x}"


def from_hex(digits: str) -> int:
    """The inverse of `to_hex`."""
    return int(digits, 16)
