"""Checks of a corpus as of a day: nothing in it is later, or was decided by what is later."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.as_of.cut import Cut, ends_of
from finpile.config.tokenizer import sample_bytes
from finpile.dedup import exact
from finpile.dedup.order import UNDATED
from finpile.dedup.redirects import redirected_from
from finpile.documents.segments import segments_of, share_of
from finpile.documents.split import TRAIN
from finpile.errors import count_of
from finpile.output.manifest import CERTIFICATE
from finpile.output.takedowns import TAKEDOWN
from finpile.verify.check import Check
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads documents and ledger; there are no such checks for other builds."""
    certificate = output.manifest.get(CERTIFICATE)
    if certificate is None:
        return []
    trained, config = output.counts.get("tokenizer", {}), output.config["tokenizer"]
    trains = config is not None and config["use"] is None
    share = trained.get("share_of_text", 1.0)
    found = _Found(Cut.of(certificate), tuple(config["train_on"]) if trains else (), share)
    for path, table in output.tables("documents", ["dataset", "id", "timestamp", "split", "text"]):
        found.add_documents(path, table)
    for path, table in output.tables("removed", ["id", "timestamp", "detail", "duplicate_of"]):
        found.add_ledger(path, table)
    return [
        found.check(),
        *([found.check_tokenizer(trained, sample_bytes(config["sample"]))] if trained and trains else []),
    ]


class _Found:
    """What documents and ledger have."""

    def __init__(self, cut: Cut, train_on: Collection[str], share: float) -> None:
        self._cut = cut
        self._train_on = train_on
        self._share = share
        self._ends: dict[str, int] = {}
        self._named: dict[str, int] = {}
        """Documents that rows of the ledger name, each with the smallest `end` of the documents of these rows."""
        self._wrong: list[str] = []
        self._num_rows = {"documents": 0, "removed": 0}
        self._train_bytes = 0
        self._text_bytes = 0

    def add_documents(self, path: str, table: pa.Table) -> None:
        self._add("documents", path, table)
        if table.num_rows and (not self._train_on or table["dataset"][0].as_py() in self._train_on):
            training = table.filter(pc.equal(table["split"], TRAIN))
            texts = training["text"].cast(pa.large_string())
            self._text_bytes += pc.sum(pc.binary_length(texts)).as_py() or 0
            if self._share < 1:
                texts, _ = segments_of(texts, exact.document_digests(training), self._share)
            self._train_bytes += pc.sum(pc.binary_length(texts)).as_py() or 0

    def add_ledger(self, path: str, table: pa.Table) -> None:
        self._add("removed", path, table)
        if path.startswith(f"removed/stage={TAKEDOWN}/"):
            return
        ends = pa.array(ends_of(table["timestamp"]))
        table = table.select(["detail", "duplicate_of"]).append_column("end", ends)
        for row in table.filter(pc.is_valid(table["duplicate_of"])).to_pylist():
            for other in (row["duplicate_of"], *redirected_from(row["detail"])):
                self._named[other] = min(self._named.get(other, UNDATED), row["end"])

    def _add(self, folder: str, path: str, table: pa.Table) -> None:
        self._num_rows[folder] += table.num_rows
        self._ends.update(zip(table["id"].to_pylist(), ends_of(table["timestamp"]).tolist(), strict=True))
        late = table.filter(pa.array(~self._cut.has(table["timestamp"]))).select(["id", "timestamp"])
        self._wrong += [f"{path}: {row['id']} is of {row['timestamp']}" for row in late.to_pylist()]

    def check(self) -> Check:
        """Of the dates of documents, and of those that decisions name: these are not after the document of the row."""
        wrong = [
            *self._wrong,
            *(f"{name} is named, and is not there" for name in sorted(self._named - self._ends.keys())),
        ]
        wrong += [
            f"{name} is named by a document before it"
            for name, end in sorted(self._named.items())
            if self._ends.get(name, end) > end
        ]
        documents, rows = (self._num_rows[name] for name in ("documents", "removed"))
        counted = f"{count_of(documents, 'document')} and {count_of(rows, 'row of the ledger')}"
        return Check.of(f"nothing is later than {self._cut.day}, and no decision names what is", wrong, counted)

    def check_tokenizer(self, trained: Mapping[str, Any], most: int | None) -> Check:
        """Of the text that the vocabulary counts, with a sample of `most` bytes."""
        wrong = []
        if self._share != share_of(self._text_bytes, most):
            wrong = [f"the sample is {self._share} of the text, {share_of(self._text_bytes, most)} is true"]
        if trained["trained_bytes"] != self._train_bytes:
            wrong += [f"it was trained on {trained['trained_bytes']:,} bytes, the documents have {self._train_bytes:,}"]
        return Check.of("the vocabulary counts these training documents alone", wrong, f"{self._train_bytes:,} bytes")
