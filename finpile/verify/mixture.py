"""Checks of a mixture: the copies of documents follow from their weights, and the counts of the build are right."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import from_dict
from finpile.config.mixture import MixtureConfig, weight_of_row
from finpile.documents.document import Label
from finpile.tokens.copies import DocumentClass, class_indices, classes_of, copies_of, with_shares
from finpile.verify.check import Check

_I64 = npt.NDArray[np.int64]
_COUNTS = ("documents", "tokens", "effective_documents", "effective_tokens")


def ids_digest(ids: npt.NDArray[np.int32], source: int, place: int = 0) -> int:
    """A digest of a document's ids, the number of its source, and its place in the published files."""
    person = source.to_bytes(4, "little") + place.to_bytes(8, "little", signed=True)
    data = np.ascontiguousarray(ids, np.int32).data
    return int.from_bytes(hashlib.blake2b(data, digest_size=16, person=person).digest())


class Mixture:
    """The recorded classes of documents, and what the documents give for them."""

    def __init__(self, mixture: MixtureConfig, recorded: Sequence[Mapping[str, Any]], sources: Sequence[Label]) -> None:
        self._recorded = recorded
        self._classes = [DocumentClass.from_json(entry) for entry in recorded]
        self._weights = {entry.row: weight_of_row(mixture, entry.row) for entry in self._classes}
        self.sources = tuple(sources)
        self._sums = np.zeros((len(_COUNTS), len(self._classes)), np.int64)
        self._longest = np.zeros(len(self._classes), np.int64)

    @classmethod
    def of(cls, config: Mapping[str, Any], counts: Mapping[str, Any]) -> Mixture | None:
        """The mixture of a build, from its manifest; None for a build without one."""
        mixture = from_dict(config).mixture if config.get("mixture") is not None else None
        if mixture is None:
            return None
        return cls(mixture, counts["mixture"], [(row[0], row[1]) for row in counts["sources"]])

    @property
    def most_copies(self) -> int:
        """The largest possible number of copies of a document."""
        return max((entry.whole + (entry.last is not None) for entry in self._classes), default=1)

    def source_of(self, table: pa.Table) -> int:
        """The number of the source of a documents shard."""
        return self.sources.index(_row(table))

    def copies(
        self, table: pa.Table, digests: Sequence[bytes], num_tokens: _I64, is_train: npt.NDArray[np.bool_]
    ) -> Any:
        """The copies of each document of a shard, by the recorded classes; also counts them."""
        indices = class_indices(self._classes, _row(table), table["num_copies"])
        copies = copies_of(self._classes, indices, pa.array(digests, pa.binary(16)), table["id"]) * is_train
        counted = (is_train.astype(np.int64), num_tokens * is_train, copies, copies * num_tokens)
        for sums, values in zip(self._sums, counted, strict=True):
            np.add.at(sums, indices, values)
        np.maximum.at(self._longest, indices, num_tokens * is_train)
        return copies.tolist()

    def check(self) -> Check:
        """Whether weights are those of the corpus file, and the tokens of each class match its weight."""
        wrong: list[str] = []
        tokens = self._sums[_COUNTS.index("tokens")].tolist()
        expected = with_shares(classes_of(self._weights), self._weights, tokens)
        if [(entry.row, entry.least, entry.weight) for entry in expected] != [
            (entry.row, entry.least, entry.weight) for entry in self._classes
        ]:
            wrong.append("the weights are not those of the corpus file")
        for entry, raw, sums, longest in zip(
            self._classes, self._recorded, self._sums.T.tolist(), self._longest.tolist(), strict=True
        ):
            found = dict(zip(_COUNTS, sums, strict=True))
            label = "/".join(entry.row)
            wrong += [
                f"{name} of {label} are {raw[name]}, the documents give {found[name]}"
                for name in _COUNTS
                if raw[name] != found[name]
            ]
            if abs(found["effective_tokens"] - (entry.weight or Fraction(0)) * found["tokens"]) * 2 > longest:
                wrong.append(
                    f"{label} has {found['effective_tokens']} effective tokens: expected {entry.weight} times "
                    f"{found['tokens']}, to within half a document"
                )
        return Check.of("mixture: tokens of each source = weight x tokens", wrong, f"{len(self._classes)} classes")


def _row(table: pa.Table) -> Label:
    return table["dataset"][0].as_py(), table["source"][0].as_py()
