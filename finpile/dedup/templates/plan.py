"""The plan of templates. `finpile.dedup.templates.blocks` has the rule.

    blocks   the first documents of each block --by hash--> templates --by part--> the parts that have them
    decide   each part cuts the templates of its documents; those of which too little is left are removed

All clean documents are counted, those that `exact` removes among them: equal texts count once. After the cuts, all but
one of equal remainders are removed (`finpile.dedup.exact`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from finpile.config import TemplatesConfig, to_dict
from finpile.dedup._hash_kernels import I64
from finpile.dedup.cuts import short_documents
from finpile.dedup.exact import equal_remains
from finpile.dedup.order import Order
from finpile.dedup.plan import (
    IS_REMOVED,
    SPAN_SCHEMA,
    Answer,
    Decision,
    Exchange,
    Found,
    Index,
    Part,
    Pass,
    Plan,
    Sent,
    Settings,
    key_table,
)
from finpile.dedup.templates import blocks
from finpile.documents.labels import document_labels, label_columns

#: Shares of the work: counting of blocks, cuts, and the comparison of what is left.
_COUNTING = 0.67


def plan(settings: Settings) -> Plan | None:
    """Lines and paragraphs that earlier documents of a group have are cut."""
    templates, rules = settings.dedup.templates, settings.template_groups
    if templates is None:
        return None
    cutting = _Cutting(templates, rules, settings.order)
    reads = ("dataset", "source", "text", *label_columns(rules))
    exchange = Exchange(
        name="blocks",
        reads=reads,
        rows=cutting.blocks,
        sends=blocks.BLOCK_SCHEMA,
        answer=cutting.templates,
        replies=blocks.BLOCK_SCHEMA,
        share=_COUNTING,
    )
    is_causal = settings.order == "time"
    index = Index(keys=cutting.keys, reads=reads, bytes_of_key=32, reach="shared", is_causal=is_causal)
    cut = Pass(
        name="cut",
        steps=(exchange,),
        decide=cutting.decide,
        reads=reads,
        cuts=True,
        sees_removed=True,
        sources=frozenset(number for number, rule in enumerate(rules) if rule is not None),
        index=index,
    )
    return Plan(
        passes=(cut, equal_remains(settings)) if settings.dedup.exact else (cut,),
        settings=[to_dict(templates), rules, settings.dedup.exact_fold, settings.order],
        counts=_counts,
        kernels=blocks.TEMPLATE_GROUPS,
    )


def _counts(found: Found, opened: Any) -> dict[str, Any]:
    """`grouped` is the number of documents that have a group."""
    (cut,) = (counted.sums for counted in found["cut"])
    duplicates = sum(counted.sums["removed"] for counted in found.get("left", ()))
    return {
        **{name: cut[name] for name in ("spans", "cut_bytes", "grouped", "exchanged_bytes")},
        "removed": cut["removed"] + duplicates,
        "duplicates": duplicates,
    }


@dataclass(frozen=True, slots=True)
class _Cutting:
    """The functions of the pass, with their settings."""

    config: TemplatesConfig
    rules: Sequence[str | None]
    order: Order

    def blocks(self, part: Part) -> Sent:
        groups, num = self._groups(part.documents), self.config.min_documents
        return Sent(blocks.block_rows(part.documents, groups, num, part.number, self._times(part)))

    def templates(self, rows: pa.Table) -> Answer:
        return Answer(blocks.templates(rows.combine_chunks(), self.config.min_documents))

    def decide(self, part: Part) -> Decision:
        documents, known = part.documents, part.replies["blocks"]
        groups = self._groups(documents)
        removed = documents[IS_REMOVED].to_pylist()
        left = [None if is_removed else group for group, is_removed in zip(groups, removed, strict=True)]
        spans = blocks.template_spans(documents, left, known, self.config, self._times(part))
        rows = documents["row"].to_numpy()[spans["row"].to_numpy()]
        spans = spans.set_column(0, SPAN_SCHEMA.field("row"), pa.array(rows))
        short = short_documents(documents, spans, self.config.min_chars)
        return Decision(short, spans, {"grouped": sum(group is not None for group in groups)})

    def keys(self, part: Part) -> pa.Table:
        """The blocks of documents."""
        hashes, docs = blocks.block_keys(part.documents, self._groups(part.documents))
        return key_table(hashes, part.documents["row"].to_numpy()[docs])

    def _times(self, part: Part) -> I64 | None:
        return blocks.times_in_order(part.places(self.order)[0]) if self.order == "time" else None

    def _groups(self, documents: pa.Table) -> list[str | None]:
        """The group of each document; none if its source has no rule."""
        if len(self.rules) == 1:
            return _labels(documents, self.rules[0])
        sources = documents["priority"].to_numpy()
        found: list[str | None] = [None] * len(sources)
        for source in np.unique(sources).tolist():
            rows = np.flatnonzero(sources == source)
            mine = documents if len(rows) == len(sources) else documents.take(pa.array(rows))
            for row, label in zip(rows.tolist(), _labels(mine, self.rules[source]), strict=True):
                found[row] = label
        return found


def _labels(documents: pa.Table, rule: str | None) -> list[str | None]:
    return [None] * documents.num_rows if rule is None else document_labels(documents, rule)
