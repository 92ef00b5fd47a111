"""Decontamination: documents that hold an item of an evaluation set.

An item is a record's texts (a passage, a question). Of a text of at least `ngram` words every run of `ngram` words is
a gram; one of `min_words` or more is one gram as a whole; what is shorter is too common to tell anything, and an item
of nothing else is reported as one that cannot be checked. Words are those of near-duplicate detection: ASCII case is
folded, digits never. No gram reaches across two texts.

Two steps, so that no machine holds the corpus:

    find      each shard: which grams stand in which of its documents
    decide    each shard, once the documents of each gram are counted over all of them: a gram of more than
              `max_documents` documents is boilerplate and counts for nothing; a document goes where the grams left
              cover `min_coverage` of an item's words in it

Hashes find, words prove: every match is compared byte by byte, ASCII case aside. Decontaminate after duplicates are
gone: an item in more than `max_documents` copies of one document would pass for boilerplate.

In the literature a single gram takes what surrounds it out of a document, or spoils an item from a fifth of its words
on. Here a single one would take filings for a sentence that securities law made them share. What real corpora hold of
real items:

    .99, .66        LAMBADA, quoted in Mansfield Park
    .43, .37, .32   BoolQ, other revisions of the same paragraphs of Wikipedia
    .23             BoolQ, one sentence of an article
    .10 and less    ConvFinQA, legal boilerplate of 20 among 192 documents of 8-K filings

Source: Brown et al. 2020, Language Models are Few-Shot Learners, appendix C: 13-grams to filter training text, those
in more than 10 documents ignored, at least 8 words to avoid chance hits. Touvron et al. 2023, Llama 2, appendix A.6:
an item is clean below 20 % of its tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import ContaminationConfig, EvalSetConfig
from finpile.dedup._hash_kernels import (
    I64,
    U8,
    U64,
)
from finpile.dedup.contamination import _kernels
from finpile.dedup.contamination._kernels import (
    I32,
    MAX_WORDS,
)
from finpile.document import text_arrays

REASON = "contamination"

#: One row an item: its set, its name in the set, and the texts to look for.
ITEM_SCHEMA = pa.schema(
    [
        pa.field("set", pa.string(), nullable=False),
        pa.field("item", pa.string(), nullable=False),
        pa.field("texts", pa.list_(pa.large_string()), nullable=False),
    ]
)

#: A gram that stands in a document, and the bytes `[start, end)` of its first occurrence there. A row is unique.
MATCH_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("gram", pa.int32(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
    ]
)

#: In how many documents a gram stands; grams of none are left out.
COUNT_SCHEMA = pa.schema(
    [pa.field("gram", pa.int32(), nullable=False), pa.field("num_documents", pa.int64(), nullable=False)]
)

#: An item that a document holds. `coverage` is the part of the item's words, `[start, end)` the first run of bytes.
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

#: Bits of the table looked into first, for each gram: at most one in 16 of the grams that are not there passes it.
_BITS_PER_GRAM = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalIndex:
    """The grams of evaluation items, to be looked for in any number of batches; the same on every machine.

    To store it, store the items: `build` is a fraction of a second for a million words. Pickles too.
    """

    config: ContaminationConfig
    items: pa.Table
    """`set`, `item`, `num_words` (in all), `num_checked` (words of the texts looked for) of each item."""
    data: U8
    """The bytes of all texts."""
    bounds: I64
    """First byte of each word, and the byte after its last, in `data`."""
    item_of: I32
    """The item of each word."""
    gram_places: I64
    """The word at which each gram first stands."""
    gram_lengths: I32
    """Words of each gram."""
    keys: U64
    slots: I32
    bits: U64
    short_bits: U64
    postings: I64
    """`places[postings[g]:postings[g + 1]]`: the words at which gram `g` begins, ascending."""
    places: I64

    @classmethod
    def build(cls, items: pa.Table, config: ContaminationConfig) -> EvalIndex:
        """The index of the items, a table of `ITEM_SCHEMA`."""
        texts = items["texts"].combine_chunks()
        text_of_item = np.r_[0, np.cumsum(texts.value_lengths().to_numpy(zero_copy_only=False))]
        data, bounds, hashes, first = _split(texts.flatten())
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
        """Distinct grams; they are numbered in the order of the items."""
        return len(self.keys)

    def not_checkable(self) -> pa.Table:
        """The items of which every text has fewer than `min_words` words: `set`, `item`, `num_words`, `num_checked`."""
        return self.items.filter(pa.array(self.items["num_checked"].to_numpy() == 0))

    def find(self, texts: pa.RecordBatch | pa.Table | pa.Array | pa.ChunkedArray) -> pa.Table:
        """The grams that stand in the texts, as `MATCH_SCHEMA`; `row` is a text's number in the batch.

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
    """In how many documents of one shard each gram stands, as `COUNT_SCHEMA`, ascending."""
    grams, counts = np.unique(matches["gram"].to_numpy(), return_counts=True)
    return pa.table({"gram": grams, "num_documents": counts}, schema=COUNT_SCHEMA)


def sum_counts(counts: Iterable[pa.Table]) -> pa.Table:
    """The counts of all shards together, as `COUNT_SCHEMA`, ascending; sums of sums are as good."""
    table = pa.concat_tables([COUNT_SCHEMA.empty_table(), *counts])
    total = table.group_by("gram").aggregate([("num_documents", "sum")]).sort_by("gram")
    columns = {"gram": total["gram"], "num_documents": total["num_documents_sum"]}
    return pa.table(columns, schema=COUNT_SCHEMA)


def boilerplate(counts: pa.Table, config: ContaminationConfig) -> pa.Array:
    """The grams of more than `max_documents` documents, ascending. `counts` are those of the whole corpus."""
    return counts["gram"].filter(pa.array(counts["num_documents"].to_numpy() > config.max_documents)).combine_chunks()


def decide(matches: pa.Table, common: pa.Array, index: EvalIndex) -> pa.Table:
    """The items that documents hold, as `OVERLAP_SCHEMA`: by `row`, best coverage first, then in the items' order.

    `matches` are all those of the rows in it; `common` is the boilerplate of the whole corpus.
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
    """Each document that goes, ascending by `row`, and the ledger's `detail`: its best item and how many more."""
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
    """The bytes of the texts, bounds and hash of each word, and the first word of each text, one more than texts."""
    data, offsets = text_arrays(texts)
    data = data.copy()  # Arrow's memory is read-only; a pickled index would not be, and the kernels compile anew
    capacity = (len(data) + len(offsets)) // 2 + 1
    bounds, hashes = np.empty((capacity, 2), np.int64), np.empty(capacity, np.uint64)
    first = np.empty(len(offsets), np.int64)
    _kernels.split_words(data, offsets, hashes, bounds, first)
    return data, bounds[: first[-1]].copy(), hashes[: first[-1]].copy(), first


def _grams(first: I64, num_words: I64, config: ContaminationConfig) -> tuple[I64, I32]:
    """First word and length of every gram of the texts, in order."""
    short = (num_words >= config.min_words) & (num_words < config.ngram)
    num_grams = np.where(short, 1, np.maximum(num_words - config.ngram + 1, 0))
    length = np.where(short, num_words, config.ngram).astype(np.int32)
    within = np.arange(num_grams.sum()) - np.repeat(np.cumsum(num_grams) - num_grams, num_grams)
    return np.repeat(first[:-1], num_grams) + within, np.repeat(length, num_grams)


def _postings(index: EvalIndex, grams: npt.NDArray[np.int32]) -> tuple[I64, I64]:
    """Every place of every gram: the gram's number in `grams`, and the place."""
    begins = index.postings[grams]
    sizes = index.postings[grams.astype(np.int64) + 1] - begins
    at = np.repeat(np.arange(len(grams)), sizes)
    within = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return at, index.places[np.repeat(begins, sizes) + within]


def _least_coverages(index: EvalIndex) -> npt.NDArray[np.float64]:
    """The `min_coverage` of each item: its set's own, or the one for all."""
    own = {one.name: one.min_coverage for one in index.config.sets if one.min_coverage is not None}
    names = index.items["set"].combine_chunks().dictionary_encode()
    of_set = [own.get(name, index.config.min_coverage) for name in names.dictionary.to_pylist()]
    return np.asarray(np.array(of_set, np.float64)[names.indices.to_numpy()])


def _covered(places: I64, lengths: I32, begins: I64) -> I64:
    """Words covered by the grams of each group; places ascend strictly in a group. Grams that overlap are equally long.

    That is so because only the grams of one text overlap.
    """
    if not len(places):
        return np.empty(0, np.int64)
    to_next = np.r_[np.diff(places), MAX_WORDS]
    to_next[begins[1:] - 1] = MAX_WORDS
    return np.asarray(np.add.reduceat(np.minimum(lengths, to_next), begins))


def _first_run(starts: I64, ends: I64) -> tuple[int, int]:
    """The first run of bytes that overlapping spans cover together."""
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    breaks = np.flatnonzero(starts[1:] > ends[:-1])
    return int(starts[0]), int(ends[breaks[0]] if len(breaks) else ends[-1])


def _power_of_two(at_least: int) -> int:
    return 1 << (at_least - 1).bit_length()


def _marked(keys: U64) -> U64:
    """The table looked into first."""
    bits = np.zeros(_power_of_two(max(64, _BITS_PER_GRAM * len(keys))) // 64, np.uint64)
    _kernels.mark_keys(keys, bits)
    return bits


def compile_kernels() -> None:
    """Compiles every kernel, or loads it from Numba's cache on disk: call it once before workers start."""
    text = "oil rose and gold fell on monday"
    items = pa.table({"set": ["any"], "item": [""], "texts": [[text, text[:8]]]}, schema=ITEM_SCHEMA)
    sets = (EvalSetConfig(name="any", paths=("any.jsonl",), fields=("text",)),)
    EvalIndex.build(items, ContaminationConfig(sets=sets, ngram=3, min_words=2)).find(pa.array([text]))
