"""Checks of the undated documents of a corpus as of a day: documents up to the day explain what was decided about them.

Undated documents come after all others, so later documents are the first thing that can have shaped them. That every
document which a row of the ledger names is there, `finpile.verify.as_of` checks. Here, two decisions are made again
that name none, or not all:

    copies       the rows of equal texts count 1, 2, ... earlier ones, up to the number of equal texts in the corpus
    templates    each line or paragraph that was cut is in enough other documents of its group

The ledger has no metadata: a document that is removed counts for each group of its source, unless its group follows
from its path. So a cut may pass that has too few documents, and none fails that has enough.

Decision: docs/decisions/0070-undated-documents-are-decided-again.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.as_of.cut import Cut
from finpile.config import CorpusConfig, TemplatesConfig, from_dict
from finpile.dedup import exact, templates
from finpile.dedup.templates import blocks
from finpile.documents.document import Label, digest_bits, text_views
from finpile.documents.labels import document_labels
from finpile.documents.ledger import Spans
from finpile.output.manifest import CERTIFICATE
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages
from finpile.verify.check import Check
from finpile.verify.output import Output

_U64 = npt.NDArray[np.uint64]
#: Rules whose labels need no metadata.
_OF_ORIGIN = ("source", "folder")
#: The label of documents whose group is unknown; no document has it.
_UNKNOWN = "\0"
_EARLIER_TEXTS = re.compile(r"equal to (\d+) earlier")
_GROUP = re.compile(r"earlier documents of (.*)", re.DOTALL)
_COLUMNS = ("id", "dataset", "source", "locator", "timestamp")


def checks(output: Output) -> list[Check]:
    """Reads the ledger, and if undated documents are copies or were cut as templates, all texts once or twice."""
    certificate = output.manifest.get(CERTIFICATE)
    if certificate is None or not certificate["undated"]:
        return []
    config, texts = from_dict(output.config), _Texts(output)
    copies, templates = _Copies(config), _Templates(config)
    for rows in texts.ledger():
        copies.add_rows(rows)
        templates.add_rows(rows)
    if templates.cuts:
        for documents, _ in texts.read():
            templates.add_cut(documents)
    if copies.groups or templates.cuts:
        for documents, is_kept in texts.read():
            copies.count(documents)
            templates.count(documents, is_kept)
    cut = Cut.of(certificate)
    counted = f"{copies.num_rows:,} copies and {sum(map(len, templates.cuts.values())):,} cuts"
    name = f"documents up to {cut.day} explain the copies and templates of undated ones"
    return [Check.of(name, [*copies.wrong(), *templates.wrong()], counted)]


class _Texts:
    """The clean documents of a corpus: those that are kept, and those that dedup stages removed."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._spans = Spans()
        self._dedup = [name for name in stages.dedup_stages() if name != TAKEDOWN]

    def ledger(self) -> Iterator[pa.Table]:
        """The rows of each dedup stage; its spans are known then."""
        for name in self._dedup:
            for _, rows in self._output.tables(f"removed/stage={name}"):
                self._spans.add(rows)
                yield rows

    def read(self) -> Iterator[tuple[pa.Table, bool]]:
        """Documents of one source with the texts that `clean` left, and whether they are kept."""
        for _, documents in self._output.tables("documents"):
            yield self._with_clean_texts(documents, text_views(documents)), True
        for name in self._dedup:
            for _, rows in self._output.tables(f"removed/stage={name}", [*_COLUMNS, "start", "removed_text"]):
                whole = rows.filter(pc.is_null(rows["start"]))
                if whole.num_rows:
                    yield self._with_clean_texts(whole, whole["removed_text"].to_pylist()), False

    def _with_clean_texts(self, documents: pa.Table, texts: Iterable[Any]) -> pa.Table:
        found = [self._clean(name, bytes(text)) for name, text in zip(documents["id"].to_pylist(), texts, strict=True)]
        column = pa.array(found, pa.large_binary()).cast(pa.large_string())
        kept = [name for name in documents.column_names if name not in ("text", "removed_text", "start")]
        table = documents.select(kept).append_column("text", column)
        return table.append_column("digest", exact.document_digests(table))

    def _clean(self, identifier: str, text: bytes) -> bytes:
        for stage in reversed(self._dedup):
            text = self._spans.before(stage, identifier, text)
        return text


class _Copies:
    """Equal texts of which one is undated."""

    def __init__(self, config: CorpusConfig) -> None:
        self._fold = config.dedup.exact_fold
        self._is_one_scope = config.dedup.scope == "corpus"
        self._numbers: dict[tuple[str, bytes], list[int]] = {}
        self._sizes: Counter[tuple[str, bytes]] = Counter()
        self._first: dict[tuple[str, bytes], str] = {}
        self.groups: set[tuple[str, bytes]] = set()
        """The scope and the digest of the texts."""
        self.num_rows = 0
        """Undated documents that were removed as copies."""

    def add_rows(self, rows: pa.Table) -> None:
        """Adds rows of one stage of the ledger."""
        rows = rows.filter(pc.equal(rows["reason"], exact.REASON))
        texts = rows["removed_text"].cast(pa.large_string())
        keys = self._keys(rows.select(_COLUMNS).append_column("text", texts))
        undated = pc.is_null(rows["timestamp"]).to_pylist()
        for key, row, is_undated in zip(keys, rows.select(["id", "detail"]).to_pylist(), undated, strict=True):
            found = _EARLIER_TEXTS.match(row["detail"])
            self._numbers.setdefault(key, []).append(int(found[1]) if found else 0)
            if is_undated:
                self.num_rows += 1
                self.groups.add(key)
                self._first.setdefault(key, row["id"])

    def count(self, documents: pa.Table) -> None:
        """Counts the clean texts of documents."""
        if self.groups:
            self._sizes.update(key for key in self._keys(documents) if key in self.groups)

    def wrong(self) -> list[str]:
        return [
            f"{self._first[key]} and its copies are equal to {', '.join(map(str, sorted(self._numbers[key])))} earlier "
            f"texts, and {self._sizes[key]} equal texts are there"
            for key in sorted(self.groups)
            if sorted(self._numbers[key]) != list(range(1, self._sizes[key]))
        ]

    def _keys(self, documents: pa.Table) -> list[tuple[str, bytes]]:
        digests = exact.document_digests(documents, self._fold).to_pylist()
        scopes = documents["dataset"].to_pylist()
        return [("" if self._is_one_scope else scope, key) for scope, key in zip(scopes, digests, strict=True)]


class _Templates:
    """Lines and paragraphs that were cut from undated documents."""

    def __init__(self, config: CorpusConfig) -> None:
        self._config = config.dedup.templates or TemplatesConfig()
        rules: dict[Label, set[str | None]] = {}
        for source in config.sources:
            for row in source.rows:
                rules.setdefault((source.dataset, row), set()).add(source.template_group)
        self._rules = rules
        self._groups: dict[str, str] = {}
        self._documents: list[pa.Table] = []
        self._wanted: _U64 = np.empty(0, np.uint64)
        self._texts: dict[int, set[int]] = {}
        self.cuts: dict[str, list[tuple[int, int]]] = {}
        """The spans by document."""

    def add_rows(self, rows: pa.Table) -> None:
        """Adds rows of one stage of the ledger."""
        rows = rows.filter(pc.and_(pc.equal(rows["reason"], templates.REASON), pc.is_null(rows["timestamp"])))
        for row in rows.to_pylist():
            self.cuts.setdefault(row["id"], []).append((row["start"], row["end"]))
            found = _GROUP.search(row["detail"])
            self._groups[row["id"]] = found[1] if found else _UNKNOWN

    def add_cut(self, documents: pa.Table) -> None:
        """Keeps the documents that were cut."""
        mine = documents.filter(pc.is_in(documents["id"], pa.array(sorted(self.cuts))))
        if mine.num_rows:
            self._documents.append(mine.select([*_COLUMNS, "text", "digest"]))
            for groups in (self._named(mine), [_UNKNOWN] * mine.num_rows):
                self._wanted = np.union1d(self._wanted, blocks.block_keys(mine, groups)[0])

    def count(self, documents: pa.Table, is_kept: bool) -> None:
        """Counts the texts that have one of their lines and paragraphs, up to the number that is enough."""
        rules = self._rules.get((documents["dataset"][0].as_py(), documents["source"][0].as_py()), {None})
        if not self.cuts or rules == {None}:
            return
        (rule, *others) = sorted(rule or "" for rule in rules)
        is_known = not others and (is_kept or rule in _OF_ORIGIN)
        labels = document_labels(documents, rule) if is_known else [_UNKNOWN] * documents.num_rows
        hashes, docs = blocks.block_keys(documents, labels)
        hits = np.flatnonzero(np.isin(hashes, self._wanted))
        digests = digest_bits(documents["digest"])[docs[hits]]
        for key, digest in zip(hashes[hits].tolist(), digests.tolist(), strict=True):
            found = self._texts.setdefault(key, set())
            if len(found) <= self._config.min_documents:
                found.add(digest)

    def wrong(self) -> list[str]:
        return [problem for documents in self._documents for problem in self._unexplained(documents)]

    def _named(self, documents: pa.Table) -> list[str | None]:
        return [self._groups[name] for name in documents["id"].to_pylist()]

    def _unexplained(self, documents: pa.Table) -> Iterator[str]:
        """Cuts of lines that too few other texts have."""
        groups = self._named(documents)
        hashes, anywhere = (blocks.block_keys(documents, of)[0] for of in (groups, [_UNKNOWN] * len(groups)))
        enough = [
            key
            for key, other in dict(zip(hashes.tolist(), anywhere.tolist(), strict=True)).items()
            if len(self._texts.get(key, set()) | self._texts.get(other, set())) > self._config.min_documents
        ]
        first = np.full(len(enough), np.iinfo(np.int64).min)
        columns = [
            np.array(enough, np.uint64),
            first,
            np.zeros(len(enough), np.uint64),
            np.zeros(len(enough), np.int32),
        ]
        known = pa.table(list(map(pa.array, columns)), schema=blocks.BLOCK_SCHEMA)
        spans = blocks.template_spans(documents, groups, known, self._config)
        allowed: dict[int, list[tuple[int, int]]] = {}
        for span in spans.select(["row", "start", "end"]).to_pylist():
            allowed.setdefault(span["row"], []).append((span["start"], span["end"]))
        for row, name in enumerate(documents["id"].to_pylist()):
            for start, end in self.cuts[name]:
                if not any(first <= start and end <= last for first, last in allowed.get(row, ())):
                    yield (
                        f"{name} has no bytes {start} to {end}, a template, and fewer than "
                        f"{self._config.min_documents} other texts of its group may have it"
                    )
