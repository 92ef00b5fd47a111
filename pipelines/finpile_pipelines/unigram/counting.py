"""Counts the pretokens of each chunk and writes one file per chunk. Later steps read these counts, not the texts.

Chunks are those of `finpile_pipelines.unigram.chunks`; a domain with one chunk of all its text is counted without
cutting its texts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer import PretokenCounts, count_pretokens

from finpile import storage
from finpile.documents.document import Label, label_of
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, split_by_partition
from finpile_pipelines.exchange.tasks import After, Gather, Tasks
from finpile_pipelines.progress import report_part, report_progress
from finpile_pipelines.unigram.chunks import (
    AddBucketSizes,
    BucketSizes,
    Edges,
    bucket_sizes,
    edges_from_json,
    edges_to_json,
    split_to_chunks,
)
from finpile_pipelines.unigram.run import TrainingRun
from finpile_pipelines.unigram.texts import Domain, TextFile, TrainingTexts

#: Bytes of text that are counted at once. Bounds the memory of a task independently of the file size.
_BLOCK_BYTES = 64 << 20
_ONE_CHUNK = np.zeros(0, np.int64)
_COUNTS_SCHEMA = pa.schema([("pretoken", pa.large_binary()), ("frequency", pa.int64())])


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk that has text, and its size in bytes and pretokens."""

    number: int
    label: Label
    num_bytes: int
    num_pretokens: int
    num_distinct: int

    def to_json(self) -> dict[str, Any]:
        """The chunk's entry in `training.json`."""
        return {
            "chunk": self.number,
            "dataset": self.label[0],
            "source": self.label[1],
            "bytes": self.num_bytes,
            "pretokens": self.num_pretokens,
            "distinct_pretokens": self.num_distinct,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`."""
        label = label_of(row)
        return cls(row["chunk"], label, row["bytes"], row["pretokens"], row["distinct_pretokens"])


def count_texts(run: TrainingRun, texts: TrainingTexts) -> list[Chunk]:
    """Writes the counts of each chunk to `chunk_file`. Returns the chunks that have text, in ascending order."""
    domains = {domain.label: domain for domain in texts.domains}
    labels = {
        domain.first_chunk + index: domain.label for domain in texts.domains for index in range(domain.num_chunks)
    }
    folder, sizes = run.folder, texts.sizes or (0,) * len(texts.files)

    def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
        number, table = group
        counts = merge_counts(table)
        write_counts(chunk_file(folder, number), counts)
        sizes = (counts.num_bytes, counts.num_pretokens, len(counts.pretokens))
        return Chunk(number, labels[number], *sizes).to_json()

    split = {label: domain for label, domain in domains.items() if domain.num_chunks > 1}

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        edges: Any = {}
        after = None
        if split:
            tasks = Tasks(texts.files, 0.2, sizes, note="sizes of chunks")
            measured = pipeline | "Measured" >> tasks | "Measure" >> graph.FlatMap(_measure_file, split)
            chosen = measured | graph.CombinePerKey(AddBucketSizes()) | "Choose" >> graph.Map(edges_to_json, split)
            gathered = chosen | "GatherEdges" >> Gather(run.folder.file("edges.json"), edges_from_json)
            chosen_edges = gathered | "Edges" >> graph.Map(lambda passed: passed.summary)
            edges, after = graph.AsSingleton(chosen_edges), After(gathered)
        exchange = ExchangeByPartition(run.engine.exchange_transport, run.exchange_folder, "ByChunk", 0.2 / len(labels))
        tasks = Tasks(enumerate(zip(texts.files, sizes, strict=True)), 0.6 if split else 0.8, sizes, after=after)
        counted = pipeline | tasks | "Count" >> graph.FlatMap(_count_file, domains, edges)
        return counted | exchange | "Write" >> graph.Map(write)

    rows = run.step("count", construct, lambda rows: f"{len(rows)} chunks")
    return sorted(map(Chunk.from_json, rows), key=lambda chunk: chunk.number)


def chunk_file(folder: WorkFolder, number: int) -> WorkFile:
    """The URL of a chunk's counts."""
    return folder.numbered("counts", number)


def counts_table(counts: PretokenCounts) -> pa.Table:
    """The counts as a table, for exchanges and files."""
    return pa.table([counts.pretokens, pa.array(counts.frequencies)], schema=_COUNTS_SCHEMA)


def merge_counts(table: pa.Table) -> PretokenCounts:
    """The sum of the counts in `table`; each of its batches holds the counts of one origin."""
    parts = [
        PretokenCounts(pretokens=batch["pretoken"], frequencies=batch["frequency"].to_numpy())
        for batch in table.to_batches()
    ]
    return parts[0].merge(parts[1:])


def write_counts(file: storage.File, counts: PretokenCounts) -> None:
    """Writes the counts to a Parquet file."""
    storage.write_parquet(file, counts_table(counts))


def read_counts(file: storage.File) -> PretokenCounts:
    """Reads a file that `write_counts` wrote."""
    table = storage.read_parquet(file)
    return PretokenCounts(
        pretokens=table["pretoken"].combine_chunks().cast(pa.large_binary()),
        frequencies=own_array(table["frequency"]),
    )


def own_array(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """A copy of the column as a writable array. Numba would compile a kernel again for a read-only array."""
    numbers: npt.NDArray[Any] = column.to_numpy().copy()
    return numbers


def _measure_file(file: TextFile, split: Mapping[Label, Domain]) -> Iterator[tuple[Label, BucketSizes]]:
    """The bytes of each bucket in one file, for the domains that have several chunks."""
    for label, texts in _blocks(file):
        if label in split:
            yield label, bucket_sizes(texts, split[label].share)


def _count_file(
    task: tuple[int, tuple[TextFile, int]], domains: Mapping[Label, Domain], edges: Edges
) -> Iterator[PartitionedTables]:
    """The pretoken counts of one file, by chunk; one set of tables per block of text."""
    number, (file, size_bytes) = task
    done = 0
    for block, (label, texts) in enumerate(_blocks(file)):
        if label not in domains:
            continue
        domain = domains[label]
        first = domain.first_chunk
        if label in edges or domain.share < 1:
            table, chunk = split_to_chunks(texts, edges.get(label, _ONE_CHUNK), domain.share)
            parts: Mapping[int, pa.Table] = split_by_partition(table, chunk + first)
        else:
            parts = {first: pa.table({"text": texts})}
        counts = {name: counts_table(count_pretokens(part["text"])) for name, part in parts.items()}
        report_progress(len(texts), texts.nbytes)
        done += texts.nbytes
        report_part(done / max(size_bytes, done, 1))
        yield PartitionedTables(
            f"{number:06d}-{block:06d}", {name: part for name, part in counts.items() if part.num_rows}
        )


def _blocks(file: TextFile) -> Iterator[tuple[Label, pa.ChunkedArray]]:
    """The file's texts in blocks of about `_BLOCK_BYTES`; each block belongs to one domain."""
    held: dict[Label, list[pa.Array]] = {}
    for label, texts in file.texts():
        block = held.setdefault(label, [])
        block.append(texts)
        if sum(array.nbytes for array in block) >= _BLOCK_BYTES:
            yield label, pa.chunked_array(held.pop(label), pa.large_string())
    for label, block in held.items():
        yield label, pa.chunked_array(block, pa.large_string())
