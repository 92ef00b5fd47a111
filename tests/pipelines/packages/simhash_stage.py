"""The algorithm `simhash` of another package: documents whose 64-bit SimHashes differ in few bits are near duplicates.

A SimHash has, for each bit, that of the majority of the hashes of a text's words. Two hashes that differ in at most
`max_bits` bits have one of `max_bits` + 1 blocks of bits in common, so documents that share a block are compared.

Source: Charikar 2002, Similarity estimation techniques from rounding algorithms; Manku, Jain and Das Sarma 2007,
Detecting near-duplicates for web crawling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import bounds, to_dict
from finpile.dedup.near.clusters import candidate_pairs
from finpile.dedup.near.verify import word_hashes
from finpile.dedup.order import Order, in_order
from finpile.dedup.plan import (
    NUMBER,
    REMOVAL_SCHEMA,
    Answer,
    Groups,
    Index,
    Part,
    Pass,
    Plan,
    Settings,
    key_table,
    scope_bits,
)
from finpile.documents.document import text_views
from finpile.plugins.stages import Algorithm, Reason
from finpile.splitmix import mix

_U64 = npt.NDArray[np.uint64]
_KEY_SCHEMA = pa.schema([("key", pa.uint64()), ("doc", pa.int64())])
REASON = "similar_simhash"
ALGORITHM = Algorithm(
    name="simhash",
    plan="simhash_stage:plan",
    config="simhash_stage:SimhashConfig",
    after="near",
    rate="near",
    reasons=(Reason(REASON, "a text whose SimHash is near that of a kept text; `detail` has the bits", is_copy=True),),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimhashConfig:
    """Which documents are near duplicates."""

    max_bits: int = 3
    """Bits of 64 in which the SimHashes of two near duplicates differ at most."""

    def __post_init__(self) -> None:
        bounds.within("simhash.max_bits", self.max_bits, 1, 15, "blocks of fewer bits are shared by chance")


def plan(settings: Settings) -> Plan | None:
    """Of documents with near SimHashes, the first one is kept."""
    config: SimhashConfig | None = settings.dedup.added.get("simhash")
    if config is None:
        return None
    search = _Search(config.max_bits, settings.order)
    groups = Groups(name="groups", keys=search.keys, sends=_KEY_SCHEMA, pairs=_pairs, resolve=search.resolve)
    index = Index(keys=search.index_keys, reads=("text",), bytes_of_key=512, reach="connected")
    return Plan(passes=(Pass(name="groups", steps=(groups,), index=index),), settings=[to_dict(config), settings.order])


@dataclass(frozen=True, slots=True)
class _Search:
    max_bits: int
    order: Order

    def keys(self, part: Part) -> pa.Table:
        """The blocks of each document's SimHash."""
        keys = self._blocks(part)
        docs = np.repeat(part.documents[NUMBER].to_numpy(), keys.shape[1])
        return pa.table({"key": keys.ravel(), "doc": docs}, schema=_KEY_SCHEMA)

    def index_keys(self, part: Part) -> pa.Table:
        """The same, with the rows of the documents."""
        keys = self._blocks(part)
        return key_table(keys.ravel(), np.repeat(part.documents["row"].to_numpy(), keys.shape[1]))

    def resolve(self, members: pa.Table, pairs: pa.Table) -> Answer:
        """Keeps, in order, each document that is not yet removed, and removes those near it."""
        members = in_order(members, self.order)
        places = members.select(["id", "shard", "row"]).to_pylist()
        at = {number: place for place, number in enumerate(members[NUMBER].to_pylist())}
        near: dict[int, list[int]] = {}
        for a, b in zip(pairs["a"].to_pylist(), pairs["b"].to_pylist(), strict=True):
            first, later = sorted((at[a], at[b]))
            near.setdefault(first, []).append(later)
        hashes = simhashes(members)
        removed: dict[int, dict[str, Any]] = {}
        for kept in sorted(near):
            for doc in near[kept] if kept not in removed else ():
                if (bits := int(hashes[kept] ^ hashes[doc]).bit_count()) <= self.max_bits:
                    removed.setdefault(doc, {**places[doc], **_because(places[kept], bits)})
        return Answer(pa.Table.from_pylist(list(removed.values()), schema=REMOVAL_SCHEMA))

    def _blocks(self, part: Part) -> _U64:
        """Shape (documents, blocks): the bits of a block, its number and the scope, mixed."""
        num = self.max_bits + 1
        edges = np.array([64 * block // num for block in range(num)], np.uint64)
        sizes = np.array([64 * (block + 1) // num - 64 * block // num for block in range(num)], np.uint64)
        bits = (simhashes(part.documents)[:, np.newaxis] >> edges) & ((np.uint64(1) << sizes) - np.uint64(1))
        return mix(mix(bits) ^ np.arange(num, dtype=np.uint64) ^ scope_bits(part.scope))


def simhashes(documents: pa.Table) -> _U64:
    """The SimHash of each document; 0 for one without words."""
    found = np.zeros(documents.num_rows, np.uint64)
    for row, text in enumerate(text_views(documents)):
        words = np.frombuffer(word_hashes(bytes(text)), np.uint64)
        ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1, bitorder="little").sum(axis=0)
        found[row] = np.packbits(2 * ones > len(words), bitorder="little").view(np.uint64)[0]
    return found


def _pairs(rows: pa.Table) -> Answer:
    return Answer(candidate_pairs(rows).replace_schema_metadata(None))


def _because(kept: dict[str, Any], bits: int) -> dict[str, Any]:
    return {
        "duplicate_of": kept["id"],
        "kept_shard": kept["shard"],
        "kept_row": kept["row"],
        "reason": REASON,
        "detail": f"{bits} of 64 bits differ",
    }
