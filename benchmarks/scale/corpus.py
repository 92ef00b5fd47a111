"""Generates a corpus of a stated size of distinct text, with planted duplicates of known number.

    python -m benchmarks.scale.corpus DATA FOLDER --megabytes 1000 [--seed 1] [--dated]

Documents are sequences of sentences, each composed of the first half of a real sentence and the second half of another
one (`benchmarks.scale.sentences`). Lengths are log-normal, as those of web pages: median 2,000 bytes, mean 3,300. A
document is a function of the seed and its number, so that copies need no stored text. By chance, windows of 200 bytes
practically do not repeat: such a window has parts of three halves or more, and there are 375,000 halves of each kind.

`PLANTED` lists the copies. The documents of a kind, and those that they copy, occur in no other pair. FOLDER gets
Parquet files of about 128 MB of text in `documents/`, and the ground truth: `truth.json` and `truth.parquet`. With
`--dated`, documents have a time of 2000 to 2025 and one of 200 hosts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.scale._text_kernels import write_documents
from benchmarks.scale.sentences import Material, read_material

SHARD_BYTES = 128_000_000
#: Rows of a row group: a few MB of text.
_GROUP_ROWS = 2048
_MEDIAN_BYTES, _SIGMA, _LEAST_BYTES, _MOST_BYTES = 2000, 1.0, 200, 200_000
#: Documents that are in a pair have at least this length.
_PAIRED_BYTES = 1500
#: 2000-01-01 as days since 1970, and the days of 25 years.
_FIRST_DAY, _DAYS, _HOSTS = 10_957, 9_131, 200
#: What a document may have more than its length: one sentence.
_SLACK = 256

_I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """A kind of copy."""

    name: str
    share: float
    """Of all documents."""
    changed: float = 0.0
    """Share of words whose letters are replaced, in a copy of a whole document."""
    span_bytes: int = 0
    """If positive, only this number of bytes is copied, into a document that is otherwise distinct."""


#: Exact copies; near copies of Jaccard similarity .9, .6 and .1 (mean); spans above and below a window of 200 bytes.
PLANTED = (
    Planted(name="exact", share=0.01),
    Planted(name="near", share=0.01, changed=0.01),
    Planted(name="doubtful", share=0.0025, changed=0.05),
    Planted(name="different", share=0.005, changed=0.3),
    Planted(name="span", share=0.02, span_bytes=400),
    Planted(name="short span", share=0.005, span_bytes=150),
)
TRUTH_SCHEMA = pa.schema(
    [
        ("document", pa.int64()),
        ("kind", pa.string()),
        ("source", pa.int64()),
        ("jaccard", pa.float64()),
        ("start", pa.int64()),
        ("source_start", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All documents of a corpus, as arrays with one entry for each."""

    lengths: _I64
    """Bytes at least."""
    kinds: npt.NDArray[np.int8]
    """The place in `PLANTED`, or -1."""
    sources: _I64
    """The document that is copied; the document itself if none is."""

    def __len__(self) -> int:
        return len(self.lengths)


def plan_corpus(size_bytes: int, seed: int) -> Plan:
    """Draws lengths and pairs until the texts have about `size_bytes`."""
    random = np.random.Generator(np.random.PCG64(seed))
    lengths = _lengths(random, size_bytes)
    kinds, sources = np.full(len(lengths), -1, np.int8), np.arange(len(lengths))
    paired = random.permutation(np.flatnonzero(lengths >= _PAIRED_BYTES))
    for kind, planted in enumerate(PLANTED):
        size = round(planted.share * len(lengths))
        copies, copied, paired = np.split(paired, [size, 2 * size])
        kinds[copies], sources[copies] = kind, copied
    return Plan(lengths, kinds, sources)


def _lengths(random: np.random.Generator, size_bytes: int) -> _I64:
    found = np.empty(0, np.int64)
    while found.sum() < size_bytes:
        drawn = random.lognormal(np.log(_MEDIAN_BYTES), _SIGMA, 1 << 16).astype(np.int64)
        found = np.concatenate([found, np.clip(drawn, _LEAST_BYTES, _MOST_BYTES)])
    return found[: int(np.searchsorted(np.cumsum(found), size_bytes)) + 1]


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """Consecutive documents."""

    texts: pa.Array
    text_bytes: int
    truth: pa.Table
    """`TRUTH_SCHEMA` of those that are copies or have a span of another one."""


def compose_documents(plan: Plan, material: Material, seed: int, first: int, last: int) -> Written:
    """The documents `first` to `last` (exclusive); their texts do not depend on this range."""
    documents = np.arange(first, last)
    kinds, sources = plan.kinds[first:last], plan.sources[first:last]
    changed = _setting([planted.changed for planted in PLANTED], kinds).astype(np.float64)
    spans = _setting([planted.span_bytes for planted in PLANTED], kinds).astype(np.int64)
    own = np.where(spans > 0, documents, sources)
    out = np.empty(int(plan.lengths[own].sum() + spans.sum()) + _SLACK * (last - first + 1), np.uint8)
    scratch = np.empty(_MOST_BYTES + _SLACK, np.uint8)
    ends, places = np.zeros(last - first, np.int64), np.full((last - first, 2), -1, np.int64)
    similarities = np.ones(last - first)
    halves = (material.first.data, material.first.offsets, material.second.data, material.second.offsets)
    write_documents(
        seed, documents, sources, changed, spans, plan.lengths, *halves, out, scratch, ends, similarities, places
    )
    offsets = np.concatenate([[0], ends])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    texts = pa.Array.from_buffers(pa.large_string(), last - first, buffers)
    columns = [documents, _names(kinds), sources, similarities, places[:, 0], places[:, 1]]
    truth = pa.table(columns, schema=TRUTH_SCHEMA).filter(pa.array(kinds >= 0))
    return Written(texts, int(ends[-1]), truth)


def _setting(values: Sequence[float], kinds: npt.NDArray[np.int8]) -> npt.NDArray[np.float64]:
    return np.array([*values, 0])[kinds]  # kind -1 is the last entry


def _names(kinds: npt.NDArray[np.int8]) -> pa.Array:
    names = pa.array([*(planted.name for planted in PLANTED), ""])
    return names.take(pa.array(kinds % len(names)))


def write_corpus(
    folder: Path,
    material: Material,
    size_bytes: int,
    seed: int,
    shard_bytes: int = SHARD_BYTES,
    *,
    is_dated: bool = False,
) -> dict[str, object]:
    """Writes the corpus and its ground truth; returns the contents of `truth.json`."""
    plan = plan_corpus(size_bytes, seed)
    (folder / "documents").mkdir(parents=True)
    truths, firsts, text_bytes = [TRUTH_SCHEMA.empty_table()], [], 0
    for number, (first, last) in enumerate(_shards(plan, shard_bytes)):
        written = compose_documents(plan, material, seed, first, last)
        table = pa.table({"number": pa.array(np.arange(first, last)), "text": written.texts})
        if is_dated:
            table = _dated(table, seed)
        path = folder / f"documents/{number:05}.parquet"
        pq.write_table(
            table, path, _GROUP_ROWS, compression="zstd", compression_level=1, use_dictionary=False, write_statistics=[]
        )
        truths.append(written.truth)
        firsts.append(first)
        text_bytes += written.text_bytes
    truth = pa.concat_tables(truths)
    pq.write_table(truth, folder / "truth.parquet")
    facts: dict[str, object] = {
        "seed": seed,
        "documents": len(plan),
        "text_bytes": text_bytes,
        "first_document_of_file": firsts,
        "planted": [{**asdict(kind), "pairs": int(np.sum(plan.kinds == at))} for at, kind in enumerate(PLANTED)],
    }
    (folder / "truth.json").write_text(f"{json.dumps(facts, indent=1)}\n")
    return facts


def _dated(table: pa.Table, seed: int) -> pa.Table:
    """With the columns `timestamp`, more of them in later years, and `url`, whose hosts differ in size."""
    draws = np.random.default_rng([seed, table["number"][0].as_py()])
    days = (np.sqrt(draws.random(table.num_rows)) * _DAYS).astype(np.int32)
    hosts = (_HOSTS * draws.random(table.num_rows) ** 3).astype(np.int64)
    urls = [
        f"https://site{host:03}.example/{number}"
        for host, number in zip(hosts.tolist(), table["number"].to_pylist(), strict=True)
    ]
    times = pa.array(_FIRST_DAY + days, pa.date32()).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC"))
    return table.append_column("timestamp", times).append_column("url", pa.array(urls))


def _shards(plan: Plan, shard_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of documents, each of about `shard_bytes`."""
    which = (np.cumsum(plan.lengths) - plan.lengths) // shard_bytes
    bounds = [*np.flatnonzero(np.r_[True, which[1:] != which[:-1]]).tolist(), len(plan)]
    yield from pairwise(bounds)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dated", action="store_true", help="documents have a time and a URL")
    options = parser.parse_args(arguments)
    material = read_material(options.data)
    size_bytes = int(options.megabytes * 1e6)
    print(json.dumps(write_corpus(options.folder, material, size_bytes, options.seed, is_dated=options.dated)))


if __name__ == "__main__":
    main()
