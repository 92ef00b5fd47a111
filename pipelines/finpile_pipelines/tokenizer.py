"""The tokenizer by split and merge: a Unigram model for each chunk of each domain, merged by bytes, pruned.

A domain is a source; a chunk is a range of its documents' digests, so every run and machine cuts the same chunks.

Source: BloombergGPT (arXiv:2303.17564) §2.3.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import (
    PretokenCounts,
    UnigramModel,
    UnigramTokenizer,
    count_pretokens,
    merge,
    prune_to,
    train_chunk,
)

from finpile import shards
from finpile.config import TokenizerConfig
from finpile.dedup import exact
from finpile.errors import RunError
from finpile.split import TRAIN
from finpile.tree import Tree, row_of
from finpile_pipelines.dedup import digest_bits
from finpile_pipelines.engine import Engine, Gather, Tasks
from finpile_pipelines.exchange import ExchangeByPartition, Parcels, by_range, split_by_partition
from finpile_pipelines.local import report_progress

#: Chunks of a domain in the paper, and the most that `auto` makes.
PAPER_CHUNKS = 256
#: Text that `auto` wants in a chunk: enough to feed some ten thousand pieces.
AUTO_CHUNK_BYTES = 16 << 20
_COUNTS_SCHEMA = pa.schema([("pretoken", pa.large_binary()), ("frequency", pa.int64())])


@dataclass(frozen=True, slots=True)
class Domain:
    """A source that the tokenizer is trained on."""

    dataset: str
    source: str
    paths: tuple[str, ...]
    """Its documents shards, relative to the tree."""
    first_chunk: int
    """Number of its first chunk; chunks are numbered through all domains."""
    num_chunks: int


def plan_domains(files: Sequence[Mapping[str, Any]], config: TokenizerConfig) -> list[Domain]:
    """The domains among the published documents files, in order of their names.

    Raises: RunError where no training text is left.
    """
    rows: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for file in files:
        row = row_of(file["path"])
        if not config.train_on or row[0] in config.train_on:
            rows.setdefault(row, []).append(file)
    domains: list[Domain] = []
    first = 0
    for row, mine in sorted(rows.items()):
        count = _num_chunks(sum(file["text_bytes"] for file in mine), config.chunks)
        domains.append(Domain(*row, tuple(sorted(file["path"] for file in mine)), first, count))
        first += count
    if not domains:
        raise RunError("no documents are left to train a tokenizer on: see the reasons in removed/")
    return domains


def run(engine: Engine, config: TokenizerConfig, domains: Sequence[Domain], tree: Tree, folder: str) -> dict[str, Any]:
    """Trains all chunks, merges them in two levels, and writes `tokenizer/`; returns what `training.json` says."""
    chunk_domain = {domain.first_chunk + index: domain for domain in domains for index in range(domain.num_chunks)}
    tasks = [(domain, path) for domain in domains for path in domain.paths]
    models = shards.join(folder, "models")

    def train(group: tuple[int, pa.Table]) -> dict[str, Any]:
        return train_task(group[0], chunk_domain[group[0]], group[1], config, models)

    def construct(pipeline: beam.Pipeline) -> None:
        exchange = ExchangeByPartition(engine.exchange_carrier, shards.join(folder, "scratch"), "ByChunk")
        counted = pipeline | Tasks(tasks) | "Count" >> beam.Map(count_task, tree.root) | exchange
        trained = counted | "Spread" >> beam.Reshuffle() | "Train" >> beam.Map(train)
        _ = trained | Gather(shards.join(folder, "tasks.json"))

    engine.run("tokenizer", construct)
    chunks = shards.read_json(shards.join(folder, "tasks.json"))
    if not chunks:
        raise RunError("no training document is left to train a tokenizer on: all of them are held out or removed")
    merged = merge(_merge_domain(models, domain, chunks) for domain in domains if _trained(domain, chunks))
    vocabulary = prune_to(merged, config.vocab_size)
    save_tokenizer(UnigramTokenizer(vocabulary), tree.tokenizer)
    training: dict[str, Any] = {
        "algorithm": "unigram, split and merge",
        "vocab_size": vocabulary.vocab_size,
        "vocab_size_asked_for": config.vocab_size,
        "pieces_before_pruning": len(merged.pieces),
        "trained_bytes": merged.num_bytes,
        "max_piece_bytes": config.max_piece_bytes,
        "chunk_vocab_size": config.chunk_vocab_size,
        "chunks": sorted(chunks, key=lambda chunk: int(chunk["chunk"])),
    }
    shards.write_json(shards.join(tree.tokenizer, "training.json"), training)
    return training


def save_tokenizer(tokenizer: UnigramTokenizer, url: str) -> None:
    """Writes a tokenizer's files into a folder of any file system; the package itself knows only local ones."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        for path in sorted(Path(folder).iterdir()):
            shards.write_bytes(shards.join(url, path.name), path.read_bytes())


def load_tokenizer(url: str) -> UnigramTokenizer:
    """The tokenizer in a folder of any file system."""
    if "://" not in url:
        return UnigramTokenizer.load(url)
    with tempfile.TemporaryDirectory() as folder:
        for name in shards.list_files(url):
            with fsspec.open(shards.join(url, name), "rb") as stream:
                Path(folder, name).write_bytes(stream.read())
        return UnigramTokenizer.load(folder)


def count_task(task: tuple[Domain, str], root: str) -> Parcels:
    """The pretoken counts of one documents shard, for each chunk that its training documents belong to."""
    domain, path = task
    table = shards.read_parquet(shards.join(root, path), ["text", "split"])
    table = table.filter(pc.equal(table["split"], TRAIN))
    chunk = by_range(digest_bits(exact.document_digests(table)), domain.num_chunks) + domain.first_chunk
    parts = split_by_partition(table.select(["text"]), chunk)
    report_progress(table.num_rows, table["text"].nbytes)
    return Parcels(
        path.replace("/", "-"), {name: _counts_table(count_pretokens(part["text"])) for name, part in parts.items()}
    )


def train_task(chunk: int, domain: Domain, table: pa.Table, config: TokenizerConfig, models: str) -> dict[str, Any]:
    """Trains a chunk's model, unless an earlier, interrupted run left it, and says what it was made of."""
    counts = _merge_counts(table)
    url = _model_url(models, chunk)
    if not shards.exists(url):
        model = train_chunk(counts, vocab_size=config.chunk_vocab_size, max_piece_bytes=config.max_piece_bytes)
        shards.write_parquet(url, model.to_table())
        report_progress(0, counts.num_bytes)
    else:
        model = UnigramModel.from_table(shards.read_parquet(url))
    return {
        "chunk": chunk,
        "dataset": domain.dataset,
        "source": domain.source,
        "bytes": counts.num_bytes,
        "pretokens": counts.num_pretokens,
        "distinct_pretokens": len(counts.pretokens),
        "pieces": len(model.pieces),
        "objective": list(model.objective),
    }


def _num_chunks(size_bytes: int, asked: int | str) -> int:
    if isinstance(asked, int):
        return asked
    return int(np.clip(round(size_bytes / AUTO_CHUNK_BYTES), 1, PAPER_CHUNKS))


def _counts_table(counts: PretokenCounts) -> pa.Table:
    return pa.table([counts.pretokens, pa.array(counts.frequencies)], schema=_COUNTS_SCHEMA)


def _merge_counts(table: pa.Table) -> PretokenCounts:
    parts = [
        PretokenCounts(pretokens=batch["pretoken"], frequencies=batch["frequency"].to_numpy())
        for batch in table.to_batches()
    ]
    return parts[0].merge(parts[1:])


def _model_url(models: str, chunk: int) -> str:
    return shards.join(models, f"{chunk:06d}.parquet")


def _trained(domain: Domain, chunks: Sequence[Mapping[str, Any]]) -> list[int]:
    mine = range(domain.first_chunk, domain.first_chunk + domain.num_chunks)
    return sorted(chunk["chunk"] for chunk in chunks if chunk["chunk"] in mine)


def _merge_domain(models: str, domain: Domain, chunks: Sequence[Mapping[str, Any]]) -> UnigramModel:
    urls = [_model_url(models, chunk) for chunk in _trained(domain, chunks)]
    return merge(UnigramModel.from_table(shards.read_parquet(url)) for url in urls)
