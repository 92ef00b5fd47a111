"""Reading input files and cleaning their documents, in batches."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean import clean_batch
from finpile.config import CorpusConfig, SourceConfig
from finpile.documents.document import DOCUMENT_SCHEMA, PLAIN, RAW_SCHEMA, DocumentBuilder
from finpile.documents.ledger import LEDGER_SCHEMA, Removal, ledger_table
from finpile.sources.readers.reading import read_file
from finpile.sources.readers.record_evidence import FieldEvidence
from finpile.timestamps import DateEvidence, Order
from finpile_pipelines.corpus.ingest import IngestTask, find_inputs, plan
from finpile_pipelines.exchange.arrow_bytes import one_batch
from finpile_pipelines.executors.batches import Composite
from finpile_pipelines.executors.elements import Outputs, first_output, second_output

#: Text of one batch.
BATCH_BYTES = 16 << 20


class ReadDocuments(Composite):
    """Reads all sources of a corpus file; applied to a pipeline, it returns `Outputs(kept, removed)`.

    `kept` has the documents as they were read: `finpile.documents.document.RAW_SCHEMA` and `priority`, the position of
    the document's source in `config.sources`. `removed` has a row for each record that cannot be read.

    Args:
        config: The corpus file, from `finpile.load_config`.
        batch_bytes: The text of one batch, about. A task reads input files of about this size, or one larger file.

    Unlike `finpile build`, it does not account for each byte of the input, and a field that no record has is not
    an error.

    Raises:
        InputError: A pattern matches no file, or two patterns of a row match the same file.
    """

    def __init__(self, config: CorpusConfig, batch_bytes: int = BATCH_BYTES) -> None:
        super().__init__()
        self._tasks = plan(config, find_inputs(config), batch_bytes)
        self._batch_bytes = batch_bytes

    def expand(self, pipeline: beam.Pipeline) -> Outputs:
        tasks = pipeline | "Tasks" >> beam.Create(self._tasks, reshuffle=True)
        read = tasks | "Read" >> beam.FlatMap(read_batches, self._batch_bytes)
        return Outputs(read | "Documents" >> beam.Filter(_is_raw), read | "Unreadable" >> beam.Filter(_is_ledger))


class CleanDocuments(Composite):
    """Cleans documents as their sources ask; returns `Outputs(kept, removed)`.

    The input has the columns of `finpile.documents.document.RAW_SCHEMA` (or of `DOCUMENT_SCHEMA`, which is plain text)
    and `priority`, the position of the document's source in `config.sources`, as `ReadDocuments` gives it. `kept` has
    `DOCUMENT_SCHEMA` and `priority`, without the facts of Inline XBRL; `removed` has documents, spans and dates that
    the cleaning removes.

    Dates such as 2/10/2008 need the order of day and month. It is found from all dates of a source, so documents are
    cleaned after all of them are read.

    Raises in the pipeline:
        InputError: The dates of a source need an order that their values do not prove.
    """

    def __init__(self, config: CorpusConfig) -> None:
        super().__init__()
        self._sources = config.sources
        self._drop_undated = config.heldout.undated == "drop"

    def expand(self, batches: beam.PCollection[pa.RecordBatch]) -> Outputs:
        sources, drop_undated = self._sources, self._drop_undated

        def clean(
            part: tuple[int, pa.RecordBatch], orders: Mapping[int, Order | None]
        ) -> tuple[pa.RecordBatch, pa.RecordBatch]:
            return clean_part(part, sources, orders, drop_undated)

        def order(found: tuple[int, Any]) -> tuple[int, Order | None]:
            return found[0], _date_order(found[1], sources[found[0]])

        parts = batches | "BySource" >> beam.FlatMap(by_source)
        evidence = parts | "Dates" >> beam.Map(_dates) | beam.GroupByKey()
        orders = beam.pvalue.AsDict(evidence | "Order" >> beam.Map(order))
        both = parts | "Clean" >> beam.Map(clean, orders)
        return Outputs(both | "Kept" >> beam.FlatMap(first_output), both | "Removed" >> beam.FlatMap(second_output))


def read_batches(task: IngestTask, batch_bytes: int) -> Iterator[pa.RecordBatch]:
    """The documents of a task's files (`RAW_SCHEMA` and `priority`) and ledger rows, as batches of either schema."""
    builder = DocumentBuilder(task.source.dataset, task.source.label)
    removals: list[Removal] = []
    removed_bytes = 0
    for file in task.files:
        for item in read_file(file, task.source):
            if isinstance(item, Removal):
                removals.append(item)
                removed_bytes += len(item.removed_text)
            else:
                builder.append(item)
            if builder.size_bytes >= batch_bytes:
                yield _with_priority(builder.flush(), task.entry)
            if removed_bytes >= batch_bytes:
                yield one_batch(ledger_table(removals))
                removals, removed_bytes = [], 0
    if len(builder):
        yield _with_priority(builder.flush(), task.entry)
    if removals:
        yield one_batch(ledger_table(removals))


def by_source(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The documents of each source of a batch, as `RAW_SCHEMA`."""
    size = batch.num_rows
    has_priority = "priority" in batch.schema.names
    entries = batch["priority"].to_numpy() if has_priority else np.zeros(size, np.int32)
    defaults = {"media_type": pa.array([PLAIN] * size, pa.string()), "raw_timestamp": pa.nulls(size, pa.string())}
    columns = [batch[name] if name in batch.schema.names else defaults[name] for name in RAW_SCHEMA.names]
    raw = pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)
    for entry in np.unique(entries).tolist():
        yield entry, raw.filter(pa.array(entries == entry))


def clean_part(
    part: tuple[int, pa.RecordBatch],
    sources: tuple[SourceConfig, ...],
    orders: Mapping[int, Order | None],
    drop_undated: bool,
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The clean documents of one source, with `priority`, and the rows of the ledger."""
    entry, batch = part
    cleaned = [
        clean_batch(rows, source, orders[entry], drop_undated=drop_undated)
        for source, rows in _by_row(batch, sources[entry])
    ]
    kept = pa.concat_batches([one.batch.select(DOCUMENT_SCHEMA.names) for one in cleaned])
    return _with_priority(kept, entry), one_batch(ledger_table(row for one in cleaned for row in one.removals))


def _by_row(batch: pa.RecordBatch, source: SourceConfig) -> list[tuple[SourceConfig, pa.RecordBatch]]:
    """The documents of each row of a source that has several."""
    if isinstance(source.name, str):
        return [(source, batch)]
    names = pc.unique(batch["source"]).to_pylist()
    return [(source.of_row(name), batch.filter(pc.equal(batch["source"], name))) for name in names]


def _dates(part: tuple[int, pa.RecordBatch]) -> tuple[int, str]:
    """What the written dates of a batch show about their order, as JSON."""
    dates = DateEvidence()
    for locator, written in zip(part[1]["locator"].to_pylist(), part[1]["raw_timestamp"].to_pylist(), strict=True):
        if written:
            dates.add(locator, written)
    return part[0], json.dumps(dates.to_json())


def _date_order(found: Any, source: SourceConfig) -> Order | None:
    evidence = FieldEvidence()
    for dates in sorted(found):
        evidence.dates.merge(DateEvidence.from_json(json.loads(dates)))
    return evidence.date_order(source)


def _with_priority(batch: pa.RecordBatch, entry: int) -> pa.RecordBatch:
    return batch.append_column("priority", pa.array(np.full(batch.num_rows, entry, np.int32)))


def _is_raw(batch: pa.RecordBatch) -> bool:
    return "text" in batch.schema.names


def _is_ledger(batch: pa.RecordBatch) -> bool:
    return bool(batch.schema.equals(LEDGER_SCHEMA))
