"""Documents of which no rule reads words: their texts get the normal form as Arrow data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import timestamps
from finpile.clean.stage.dating import PRECISION
from finpile.clean.stage.document_rows import as_clean
from finpile.config import SourceConfig
from finpile.documents.blank import visible_class
from finpile.documents.document import DOCUMENT_SCHEMA, HTML, UNREADABLE_TIMESTAMP, with_column
from finpile.plugins.format import FORMATS

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plain:
    """The documents of a batch that the stage keeps and of which it changes at most the text, to its normal form."""

    rows: _Mask
    """Which documents of the batch."""
    batch: pa.RecordBatch
    """These, as `CLEAN_SCHEMA`, in their order."""


def find_plain(batch: pa.RecordBatch, source: SourceConfig, *, drop_undated: bool) -> Plain:
    """Finds plain documents of a batch of `RAW_SCHEMA`: every other step would leave them as they are."""
    rows = _untouched(batch, source, drop_undated=drop_undated)
    documents = batch.select(DOCUMENT_SCHEMA.names).cast(DOCUMENT_SCHEMA)
    documents = documents if rows.all() else documents.filter(pa.array(rows))
    texts, is_done = documents["text"], np.ones(documents.num_rows, bool)
    if source.clean.normalise:
        from finpile.clean.stage.normalise import normal_texts  # its kernels

        texts, is_done = normal_texts(texts)
    is_done &= pc.match_substring_regex(texts, visible_class()).to_numpy(zero_copy_only=False)
    documents = with_column(documents, "text", texts)
    if not is_done.all():
        documents = documents.filter(pa.array(is_done))
        rows[rows] = is_done
    return Plain(rows=rows, batch=as_clean(documents))


def _untouched(batch: pa.RecordBatch, source: SourceConfig, *, drop_undated: bool) -> _Mask:
    """The documents that no step changes, but for the normal form of their texts."""
    cleaning, form = source.clean, FORMATS.get(source.format)
    reads_words = cleaning.mojibake == "repair" or cleaning.html == "always" or cleaning.filters
    if reads_words or source.date_pattern or form.describe or (cleaning.items == "documents" and form.sections):
        return np.zeros(batch.num_rows, bool)
    moment, undated = batch["timestamp"], pc.is_null(batch["timestamp"])
    early, late = (pa.scalar(bound, moment.type) for bound in (timestamps.EARLIEST, timestamps.LATEST))
    has_evidence = pc.or_(pc.is_valid(batch["url"]), pc.not_equal(batch["timestamp_origin"], "none"))
    has_precision = pc.match_substring(batch["meta"], PRECISION)
    written = pc.fill_null(pc.not_equal(batch["raw_timestamp"], ""), False)
    touched = [
        written if source.date_format else pc.and_(written, undated),
        pc.match_substring(batch["meta"], UNREADABLE_TIMESTAMP),
        pc.fill_null(pc.or_(pc.less(moment, early), pc.greater_equal(moment, late)), False),
        undated if drop_undated else pc.and_(undated, pc.or_(has_evidence, has_precision)),
        pc.fill_null(pc.equal(batch["title"], ""), False),
    ]
    if cleaning.html == "auto":
        touched.append(pc.equal(batch["media_type"], HTML))
    found: _Mask = ~np.logical_or.reduce([column.to_numpy(zero_copy_only=False) for column in touched])
    return found
