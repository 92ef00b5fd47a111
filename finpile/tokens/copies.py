"""How many copies of each training document the mixture puts into the stream of tokens, and where they are.

The documents of a row are divided into classes by `num_copies`; all documents of a class have one weight. A document is
in the stream as often as the whole part of its weight says. The fraction that is left selects documents of the class:
those with the least selection keys, as many as bring the class closest to its tokens. So the tokens of a class are its
weight times its tokens to within half of one document, and a larger weight has all documents of a smaller one.

The selection key of a document, and the positions of its second and further copies, are digests of the digest of its
text: unrelated to each other, and dependent on nothing but the text. The first copy is where it is without a mixture.
Documents with equal texts are in the order of their ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config.mixture import MAX_EPOCHS, WeightConfig, exactly
from finpile.documents.document import DIGEST_BYTES, Label
from finpile.errors import RunError

I64 = npt.NDArray[np.int64]

#: Documents of a class in the order in which a fraction selects them, with their tokens.
LENGTH_SCHEMA = pa.schema(
    [
        pa.field("class", pa.int32(), nullable=False),
        pa.field("key", pa.binary(DIGEST_BYTES), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("num_tokens", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentClass:
    """The documents of a row with at least `least` as `num_copies`, up to the next class of the row."""

    dataset: str
    source: str
    least: int
    weight: Fraction | None
    """How often the documents are in the stream, on average over tokens; None until the tokens are counted."""
    last: tuple[str, str] | None = None
    """The selection key, in hex, and id of the last document that the fraction of the weight selects; None: none."""

    @property
    def row(self) -> Label:
        return self.dataset, self.source

    @property
    def whole(self) -> int:
        """Copies of every document."""
        return int(self.weight or 0)

    @property
    def fraction(self) -> Fraction:
        """The part of the class's tokens that has one copy more."""
        return (self.weight or Fraction(0)) - self.whole

    def to_json(self) -> dict[str, Any]:
        weight = None if self.weight is None else str(self.weight)
        last = None if self.last is None else list(self.last)
        return {"dataset": self.dataset, "source": self.source, "least": self.least, "weight": weight, "last": last}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> DocumentClass:
        """The inverse of `to_json`; other keys are ignored."""
        return cls(
            dataset=raw["dataset"],
            source=raw["source"],
            least=raw["least"],
            weight=None if raw["weight"] is None else Fraction(raw["weight"]),
            last=None if raw["last"] is None else (raw["last"][0], raw["last"][1]),
        )


def classes_of(weights: Mapping[Label, WeightConfig]) -> list[DocumentClass]:
    """The classes of all rows, ordered by row and `least`. The weight of a row with a share is open."""
    return [
        DocumentClass(
            dataset=dataset,
            source=source,
            least=least,
            weight=None if weight.share is not None else _epochs(weight) * factor,
        )
        for (dataset, source), weight in sorted(weights.items())
        for least, factor in weight.classes
    ]


def need_counts(classes: Iterable[DocumentClass]) -> bool:
    """Whether the copies depend on the numbers of tokens: for shares and fractions."""
    return any(entry.weight is None or entry.fraction for entry in classes)


def _epochs(weight: WeightConfig) -> Fraction:
    return Fraction(1) if weight.epochs is None else exactly(weight.epochs)


def class_indices(classes: Sequence[DocumentClass], row: Label, num_copies: pa.ChunkedArray | pa.Array) -> I64:
    """The index in `classes` of the class of each document of one row."""
    of_row = [(index, entry.least) for index, entry in enumerate(classes) if entry.row == row]
    least = np.array([entry[1] for entry in of_row])
    places = np.searchsorted(least, np.asarray(num_copies), side="right") - 1
    return np.array([entry[0] for entry in of_row])[places]


def selection_keys(digests: pa.Array | pa.ChunkedArray) -> pa.FixedSizeBinaryArray:
    """The key of each text's digest by which a fraction selects documents."""
    return _derived(digests, b"selected")


def positions(digests: pa.Array | pa.ChunkedArray, copy: int) -> pa.Array | pa.ChunkedArray:
    """The sort keys in the stream of copy 0, 1, ... of documents, from the digests of their texts."""
    return digests if copy == 0 else _derived(digests, b"copy %d" % copy)


def _derived(digests: pa.Array | pa.ChunkedArray, purpose: bytes) -> pa.FixedSizeBinaryArray:
    data = b"".join(
        hashlib.blake2b(digest, digest_size=DIGEST_BYTES, person=purpose).digest() for digest in digests.to_pylist()
    )
    kind = pa.binary(DIGEST_BYTES)
    return pa.FixedSizeBinaryArray.from_buffers(kind, len(digests), [None, pa.py_buffer(data)])


def copies_of(
    classes: Sequence[DocumentClass],
    indices: I64,
    digests: pa.Array | pa.ChunkedArray,
    ids: pa.Array | pa.ChunkedArray,
) -> I64:
    """The number of copies of each document in the stream, from its class, text digest and id."""
    copies = np.array([entry.whole for entry in classes], np.int64)[indices]
    for index, entry in enumerate(classes):
        if entry.last is None:
            continue
        here = np.flatnonzero(indices == index)
        places = pa.array(here)
        last = bytes.fromhex(entry.last[0]), entry.last[1]
        keys = zip(selection_keys(digests.take(places)).to_pylist(), ids.take(places).to_pylist(), strict=True)
        copies[here] += np.fromiter((key <= last for key in keys), np.int64, len(here))
    return copies


def settle(
    classes: Sequence[DocumentClass],
    weights: Mapping[Label, WeightConfig],
    lengths: Sequence[Mapping[int, int]],
    read: Callable[[int], pa.Table],
) -> list[DocumentClass]:
    """The classes with their weights and the documents that fractions select.

    `lengths` has the tokens of each class in each partition of the selection keys, which are ranges in ascending order;
    `read` returns the documents of a partition (`LENGTH_SCHEMA`), sorted by class, key and id.

    Raises: RunError for a share of a row without tokens, a share without tokens of other rows, or one for which the row
    would be repeated too often.
    """
    totals = [sum(part.get(index, 0) for part in lengths) for index in range(len(classes))]
    with_weights = with_shares(classes, weights, totals)
    return [
        replace(entry, last=_last(index, entry.fraction * totals[index], lengths, read)) if entry.fraction else entry
        for index, entry in enumerate(with_weights)
    ]


def with_shares(
    classes: Sequence[DocumentClass], weights: Mapping[Label, WeightConfig], totals: Sequence[int]
) -> list[DocumentClass]:
    """The classes with the weights that shares give; `totals` are the tokens of each class. Raises: as `settle`."""
    shares = {row: exactly(weight.share) for row, weight in weights.items() if weight.share is not None}
    if not shares:
        return list(classes)
    by_epochs = sum(
        (entry.weight * total for entry, total in zip(classes, totals, strict=True) if entry.weight is not None),
        Fraction(0),
    )
    if not by_epochs:
        raise RunError("mixture: no source with epochs above 0 has training tokens, so that shares have no size")
    all_tokens = by_epochs / (1 - sum(shares.values()))
    factors = {(row, least): factor for row, weight in weights.items() for least, factor in weight.classes}
    epochs: dict[Label, Fraction] = {}
    for row, share in shares.items():
        weighted = sum(
            (
                factors[row, entry.least] * total
                for entry, total in zip(classes, totals, strict=True)
                if entry.row == row
            ),
            Fraction(0),
        )
        if not weighted:
            raise RunError(
                f"mixture: {'/'.join(row)} has no training tokens for its share: give it epochs, or remove it"
            )
        epochs[row] = share * all_tokens / weighted
        if epochs[row] > MAX_EPOCHS:
            raise RunError(
                f"mixture: a share of {float(100 * share):g}% repeats {'/'.join(row)} {float(epochs[row]):.6g} times: "
                f"at most {MAX_EPOCHS} are possible, give it a smaller share"
            )
    return [
        entry
        if entry.weight is not None
        else replace(entry, weight=epochs[entry.row] * factors[entry.row, entry.least])
        for entry in classes
    ]


def _last(
    index: int, target: Fraction, lengths: Sequence[Mapping[int, int]], read: Callable[[int], pa.Table]
) -> tuple[str, str] | None:
    """The last selected document of a class: the tokens up to it are closest to `target`; of two, the fewer."""
    before = 0
    for partition, sums in enumerate(lengths):
        here = sums.get(index, 0)
        if not here or before + here < target:
            before += here
            continue
        rows = read(partition)
        rows = rows.filter(pc.equal(rows["class"], index))
        ends = [before, *(before + np.cumsum(rows["num_tokens"].to_numpy())).tolist()]
        at = min(range(len(ends)), key=lambda place: (abs(ends[place] - target), place))
        if at == 0:  # none of this partition, but all of those before it
            return rows["key"][0].as_py().hex(), ""
        return rows["key"][at - 1].as_py().hex(), rows["id"][at - 1].as_py()
    return None
