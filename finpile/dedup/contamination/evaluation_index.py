"""Decontamination: finds documents that contain items of evaluation sets.

An item is the texts of a record (a passage, a question). In a text of at least `ngram` words every run of `ngram` words
is a gram. A shorter text of at least `min_words` words is one gram. Still shorter texts are too common to be evidence;
an item that has only such texts is reported as not checkable. Words are those of near-duplicate detection: ASCII case
is folded, digits are not. Items are brought to Unicode's form NFC, as a build does with documents. No gram spans two
texts.

There are two steps, so that no machine needs the whole corpus:

    find      for each shard: the grams that occur in each of its documents
    decide    for each shard, after the documents of each gram are counted over all shards: a gram in more than
              `max_documents` documents is boilerplate and is ignored; a document is removed if the other grams in it
              cover at least `min_coverage` of an item's words

Matches are found by hash and verified byte by byte, except for ASCII case. Run decontamination after deduplication: an
item in more than `max_documents` copies of one document would count as boilerplate.

In the literature a single gram removes the text around it, or an item is contaminated from a fifth of its words. Here a
single gram would remove filings because of a sentence that securities law makes them share. Coverage of real items
by documents of real corpora:

    .99, .66        LAMBADA, quoted in Mansfield Park
    .43, .37, .32   BoolQ, other revisions of the same paragraphs of Wikipedia
    .23             BoolQ, one sentence of an article
    .10 and less    ConvFinQA, legal boilerplate of 20 among 192 documents of 8-K filings

Source: Brown et al. 2020, Language Models are Few-Shot Learners, appendix C: training text is filtered by 13-grams;
grams in more than 10 documents are ignored; at least 8 words avoid chance matches. Touvron et al. 2023, Llama 2,
appendix A.6: an item is clean below 20 % of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import ContaminationConfig, EvalSetConfig
from finpile.dedup._hash_kernels import I64, U8, U64
from finpile.dedup.contamination import _kernels
from finpile.dedup.contamination._kernels import I32, MAX_WORDS
from finpile.documents.document import text_arrays

#: One row per item: its set, its name in the set, and the texts to search for.
ITEM_SCHEMA = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
        pa.field("texts", pa.list_(pa.large_string()), nullable=False),
    ]
)

#: A gram that occurs in a document, and the bytes `[start, end)` of its first occurrence in it. Rows are unique.
MATCH_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("gram", pa.int32(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)

#: Number of documents that contain a gram; grams without a document have no row.
COUNT_SCHEMA = pa.schema(
    [pa.field("gram", pa.int32(), nullable=False), pa.field("num_documents", pa.int64(), nullable=False)]
)

#: An item that a document contains. `coverage` is the fraction of the item's words in the document; bytes
#: `[start, end)` of the document are the first match.
OVERLAP_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("set", pa.string(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
        pa.field("coverage", pa.float64(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)

#: Bits per gram of the table that is read first: at most one in 16 of the grams that are not in the index pass it.
_BITS_PER_GRAM = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalIndex:
    """Index of the grams of evaluation items. Its grams can be searched for in any number of batches.

    The index of a table of items is equal on all machines, and it can be pickled. To store it, store the items: `build`
    takes a fraction of a second for a million words.
    """

    config: ContaminationConfig
    items: pa.Table
    """`set`, `item`, `num_words` (of all texts) and `num_checked` (of the texts that have grams) of each item."""
    data: U8
    """The bytes of all texts, concatenated."""
    bounds: I64
    """First byte of each word, and the byte after its last byte, in `data`."""
    item_of: I32
    """The item of each word."""
    gram_places: I64
    """The first word of each gram's first occurrence."""
    gram_lengths: I32
    """Number of words of each gram."""
    keys: U64
    slots: I32
    bits: U64
    short_bits: U64
    postings: I64
    """`places[postings[g]:postings[g + 1]]`: the words at which gram `g` begins, ascending."""
    places: I64

    @classmethod
    def build(cls, items: pa.Table, config: ContaminationConfig) -> EvalIndex:
        """Returns the index of `items`, a table of `ITEM_SCHEMA`."""
        texts = items["texts"].combine_chunks()
        text_of_item = np.r_[0, np.cumsum(texts.value_lengths().to_numpy(zero_copy_only=False))]
        data, bounds, hashes, first = _split(
            pa.array([normalize("NFC", text) for text in texts.flatten().to_pylist()], pa.large_string())
        )
        num_words = np.diff(first)
        places, lengths = _grams(first, num_words, config)
        slots = np.zeros(_power_of_two(2 * len(places) + 1), np.int32)
        keys = np.empty(len(places), np.uint64)
        numbers, firsts = _kernels.number_grams(
            data, bounds, hashes, places, lengths, config.ngram, config.min_words, slots, keys
        )
        keys = keys[: len(firsts)].copy()
        is_short = lengths[firsts] < config.ngram
        order = np.argsort(numbers, kind="stable")
        words_of_item = np.diff(first[text_of_item])
        checked = np.where(num_words >= config.min_words, num_words, 0)
        return cls(
            config=config,
            items=pa.table(
                {
                    "set": items["set"],
                    "item": items["item"],
                    "num_words": words_of_item,
                    "num_checked": np.diff(np.r_[0, np.cumsum(checked)][text_of_item]),
                }
            ),
            data=data,
            bounds=bounds,
            item_of=np.repeat(np.arange(items.num_rows, dtype=np.int32), words_of_item),
            gram_places=places[firsts],
            gram_lengths=lengths[firsts],
            keys=keys,
            slots=slots,
            bits=_marked(keys[~is_short]),
            short_bits=_marked(keys[is_short]),
            postings=np.r_[0, np.cumsum(np.bincount(numbers, minlength=len(keys)))].astype(np.int64),
            places=places[order],
        )

    @property
    def num_grams(self) -> int:
        """Number of distinct grams; they are numbered in the order of the items."""
        return len(self.keys)

    def not_checkable(self) -> pa.Table:
        """Returns the rows of `items` whose texts all have fewer than `min_words` words."""
        return self.items.filter(pa.array(self.items["num_checked"].to_numpy() == 0))

    def find(self, texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray) -> pa.Table:
        """Returns the grams that occur in the texts, as `MATCH_SCHEMA`; `row` is the position of a text in the batch.

        `texts` is an array of strings or binaries, or a batch with a column `text`.
        """
        data, offsets = text_arrays(texts)
        config = self.config
        has_short = bool(self.short_bits.any())
        found = _kernels.find_grams(
            data, offsets, config.ngram, config.min_words if has_short else 0, self.data, self.bounds,
            self.gram_places, self.gram_lengths, self.keys, self.slots, self.bits, self.short_bits,
        )  # fmt: skip
        return pa.table(dict(zip(MATCH_SCHEMA.names, found.T, strict=True)), schema=MATCH_SCHEMA)


def count_documents(matches: pa.Table) -> pa.Table:
    """Returns the number of documents of one shard that contain each gram, as `COUNT_SCHEMA`, ascending."""
    grams, counts = np.unique(matches["gram"].to_numpy(), return_counts=True)
    return pa.table({"gram": grams, "num_documents": counts}, schema=COUNT_SCHEMA)


def sum_counts(counts: Iterable[pa.Table]) -> pa.Table:
    """Returns the sum of several tables of counts, as `COUNT_SCHEMA`, ascending. Addition is associative."""
    table = pa.concat_tables([COUNT_SCHEMA.empty_table(), *counts])
    total = table.group_by("gram").aggregate([("num_documents", "sum")]).sort_by("gram")
    columns = {"gram": total["gram"], "num_documents": total["num_documents_sum"]}
    return pa.table(columns, schema=COUNT_SCHEMA)


def boilerplate(counts: pa.Table, config: ContaminationConfig) -> pa.Array:
    """Returns the grams in more than `max_documents` documents, ascending. `counts` are those of the whole corpus."""
    return counts["gram"].filter(pa.array(counts["num_documents"].to_numpy() > config.max_documents)).combine_chunks()


def decide(matches: pa.Table, common: pa.Array, index: EvalIndex) -> pa.Table:
    """Returns the items that documents contain, as `OVERLAP_SCHEMA`.

    The result is sorted by `row`, descending coverage and the order of the items. `matches` must contain all matches of
    each of its rows; `common` is the boilerplate of the whole corpus.
    """
    matches = matches.filter(pa.array(~np.isin(matches["gram"].to_numpy(), common.to_numpy(zero_copy_only=False))))
    at, places = _postings(index, matches["gram"].to_numpy())
    rows, items = matches["row"].to_numpy()[at], index.item_of[places]
    order = np.lexsort((places, items, rows))
    at, places, rows, items = at[order], places[order], rows[order], items[order]
    begins = np.flatnonzero(np.r_[True, (np.diff(rows) != 0) | (np.diff(items) != 0)]) if len(at) else np.empty(0, int)
    covered = _covered(places, index.gram_lengths[matches["gram"].to_numpy()[at]], begins)
    coverage = covered / index.items["num_checked"].to_numpy()[items[begins]]
    chosen = np.flatnonzero(coverage >= _least_coverages(index)[items[begins]])
    ends = np.r_[begins[1:], len(at)]
    starts, stops = matches["start"].to_numpy()[at], matches["end"].to_numpy()[at]
    spans = [_first_run(starts[begins[i] : ends[i]], stops[begins[i] : ends[i]]) for i in chosen]
    order = np.lexsort((items[begins[chosen]], -coverage[chosen], rows[begins[chosen]]))
    best = chosen[order]
    names = index.items.take(pa.array(items[begins[best]]))
    columns: dict[str, Any] = {
        "row": rows[begins[best]],
        "set": names["set"],
        "item": names["item"],
        "coverage": coverage[best],
        "start": [spans[i][0] for i in order],
        "end": [spans[i][1] for i in order],
    }
    return pa.table(columns, schema=OVERLAP_SCHEMA)


def condemned(overlaps: pa.Table) -> Iterator[tuple[int, str]]:
    """Yields the row of each removed document, ascending, and the `detail` of its ledger row.

    The detail names the item of best coverage and the number of further items.
    """
    rows = overlaps["row"].to_numpy()
    firsts, counts = np.unique(rows, return_index=True, return_counts=True)[1:]
    for entry, num in zip(overlaps.take(pa.array(firsts)).to_pylist(), counts.tolist(), strict=True):
        others = f", and {num - 1} more" if num > 1 else ""
        yield (
            entry["row"],
            f"{entry['coverage']:.0%} of {entry['set']} {entry['item']}, first in bytes "
            f"{entry['start']}-{entry['end']}{others}",
        )


def _split(texts: pa.Array) -> tuple[U8, I64, U64, I64]:
    """Returns the bytes of the texts, the bounds and hash of each word, and the first word of each text.

    The last array has one entry more than there are texts.
    """
    data, offsets = text_arrays(texts)
    # Arrow's memory is read-only, that of a pickled index is writable: the kernels would be compiled for both.
    data = data.copy()
    capacity = (len(data) + len(offsets)) // 2 + 1
    bounds, hashes = np.empty((capacity, 2), np.int64), np.empty(capacity, np.uint64)
    first = np.empty(len(offsets), np.int64)
    _kernels.split_words(data, offsets, hashes, bounds, first)
    return data, bounds[: first[-1]].copy(), hashes[: first[-1]].copy(), first


def _grams(first: I64, num_words: I64, config: ContaminationConfig) -> tuple[I64, I32]:
    """Returns the first word and the length of every gram of the texts, in order."""
    short = (num_words >= config.min_words) & (num_words < config.ngram)
    num_grams = np.where(short, 1, np.maximum(num_words - config.ngram + 1, 0))
    length = np.where(short, num_words, config.ngram).astype(np.int32)
    within = np.arange(num_grams.sum()) - np.repeat(np.cumsum(num_grams) - num_grams, num_grams)
    return np.repeat(first[:-1], num_grams) + within, np.repeat(length, num_grams)


def _postings(index: EvalIndex, grams: npt.NDArray[np.int32]) -> tuple[I64, I64]:
    """Returns every place of every gram: the index of the gram in `grams`, and the place."""
    begins = index.postings[grams]
    sizes = index.postings[grams.astype(np.int64) + 1] - begins
    at = np.repeat(np.arange(len(grams)), sizes)
    within = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return at, index.places[np.repeat(begins, sizes) + within]


def _least_coverages(index: EvalIndex) -> npt.NDArray[np.float64]:
    """Returns the `min_coverage` of each item: that of its set, or else the general one."""
    own = {one.name: one.min_coverage for one in index.config.sets if one.min_coverage is not None}
    names = index.items["set"].combine_chunks().dictionary_encode()
    of_set = [own.get(name, index.config.min_coverage) for name in names.dictionary.to_pylist()]
    return np.asarray(np.array(of_set, np.float64)[names.indices.to_numpy()])


def _covered(places: I64, lengths: I32, begins: I64) -> I64:
    """Returns the number of words that the grams of each group cover; places ascend strictly in a group.

    Grams that overlap have the same length, because only the grams of one text overlap.
    """
    if not len(places):
        return np.empty(0, np.int64)
    to_next = np.r_[np.diff(places), MAX_WORDS]
    to_next[begins[1:] - 1] = MAX_WORDS
    return np.asarray(np.add.reduceat(np.minimum(lengths, to_next), begins))


def _first_run(starts: I64, ends: I64) -> tuple[int, int]:
    """Returns the first contiguous run of bytes in the union of the spans."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] > ends[:-1])
    return int(starts[0]), int(ends[breaks[0]] if len(breaks) else ends[-1])


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


def _marked(keys: U64) -> U64:
    """Returns the bit table of the keys, which a search reads first."""
    bits = np.zeros(_power_of_two(max(64, _BITS_PER_GRAM * len(keys))) // 64, np.uint64)
    _kernels.mark_keys(keys, bits)
    return bits


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk. Call it once before workers start."""
    text = "oil rose and gold fell on monday"
    items = pa.table({"set": ["any"], "item": [""], "texts": [[text, text[:8]]]}, schema=ITEM_SCHEMA)
    sets = (EvalSetConfig(name="any", paths=("any.jsonl",), fields=("text",)),)
    EvalIndex.build(items, ContaminationConfig(sets=sets, ngram=3, min_words=2)).find(pa.array([text]))
