"""Templates of speeches, 8-Ks and Reuters stories: what is cut, and that later documents change no earlier text.

python -m benchmarks.rules.templates DATA OUT [--samples 20]

OUT is a new folder for the build.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.shard_refs import read_clean, shard_refs

from finpile import storage
from finpile.config import CorpusConfig, DedupConfig, SourceConfig, TemplatesConfig
from finpile.dedup.cuts import cut_rows
from finpile.dedup.order import UNDATED
from finpile.dedup.templates import REASON, blocks
from finpile.documents.labels import document_labels
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of
from finpile.verify import verify

_SAMPLE_CHARS = 160
_SOURCES = (
    SourceConfig(
        name="Speeches",
        dataset="FinPile",
        format="text",
        paths=("fin_centralbank/fed_speeches_txt.tar.zst",),
        members=("*.txt",),
        date_pattern="%Y%m%d*",
        template_group="source",
    ),
    SourceConfig(
        name="Filings",
        dataset="FinPile",
        format="edgar",
        paths=("fin_filings/edgar_crawler/RAW_8-K.zip",),
        template_group="source",
    ),
    SourceConfig(
        name="News",
        dataset="FinPile",
        format="sgml",
        paths=("fin_news/reuters21578.tar.gz",),
        members=("*.sgm",),
        template_group="source",
    ),
)


def main() -> None:
    """Prints counts, the commonest lines, samples, and the check of prefixes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("out")
    parser.add_argument("--samples", type=int, default=20)
    arguments = parser.parse_args()
    dedup = DedupConfig(near=None, templates=TemplatesConfig())
    config = CorpusConfig(name="templates", root=arguments.data, sources=_SOURCES, dedup=dedup)
    manifest = build(config, arguments.out, Engine(num_workers=1), until="split")
    counts = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    wrong = [check for check in verify(arguments.out) if not check.ok]
    print(f"verify: {wrong or 'all checks ok'}\n")
    rows = [
        row for path in sorted(Path(arguments.out, "removed/stage=templates").glob("*.parquet")) for row in _rows(path)
    ]
    texts = {row["source"]: row for row in counts["clean"]["sources"]}
    _print_counts(rows, texts)
    for source in _SOURCES:
        _print_source([row for row in rows if row["source"] == source.label], source.label, arguments.samples)
    print("## Later documents\n")
    for source in _SOURCES:
        _print_prefixes(arguments.out, source)


def _rows(path: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(path, partitioning=None).to_pylist())


def _print_counts(rows: list[dict[str, Any]], texts: dict[str, dict[str, Any]]) -> None:
    print("| source | documents | with cuts | spans | bytes cut | of the text | removed as a whole |")
    print("|---|---|---|---|---|---|---|")
    for source in _SOURCES:
        mine = [row for row in rows if row["source"] == source.label]
        spans = [row for row in mine if row["reason"] == REASON]
        size, text = sum(len(row["removed_text"]) for row in spans), texts[source.label]
        whole = Counter(row["reason"] for row in mine if row["start"] is None)
        print(
            f"| {source.label} | {text['documents']:,} | {len({row['id'] for row in spans}):,} | {len(spans):,} "
            f"| {size:,} | {size / text['text_bytes']:.2%} "
            f"| {', '.join(f'{reason} {num}' for reason, num in sorted(whole.items())) or 'none'} |"
        )
    print()


def _print_source(rows: list[dict[str, Any]], label: str, num: int) -> None:
    spans = sorted((row for row in rows if row["reason"] == REASON), key=lambda row: (row["id"], row["start"]))
    lines = Counter(
        line for row in spans for line in {part.strip() for part in row["removed_text"].decode().split("\n")} - {""}
    )
    print(f"## {label}\n\nThe commonest lines:\n\n| spans | line |\n|---|---|")
    for line, count in sorted(lines.items(), key=lambda item: (-item[1], item[0]))[:num]:
        print(f"| {count:,} | `{_short(line)}` |")
    texts = Counter(row["removed_text"].decode() for row in spans)
    num = min(num, len(texts))
    print(f"\n{num} of the {len(texts):,} different texts of spans, at random:\n\n| spans | text |\n|---|---|")
    for text in random.Random(1).sample(sorted(texts), num):
        print(f"| {texts[text]:,} | `{_short(text)}` |")
    print()


def _short(text: str) -> str:
    words = " ".join(text.replace("\n", " ⏎ ").split()).replace("|", "\\|").replace("`", "'")
    return words if len(words) <= _SAMPLE_CHARS else f"{words[:_SAMPLE_CHARS]} ..."


def _print_prefixes(out: str, source: SourceConfig) -> None:
    """Compares the texts of the documents up to ten moments with the same documents of the whole source."""
    documents = _documents(out, source)
    times = documents["timestamp"].cast(pa.int64()).fill_null(UNDATED).to_numpy()
    order = np.lexsort((documents["digest"].to_numpy(), times))
    documents = documents.take(pa.array(order)).combine_chunks()
    whole = _cut(documents, source)
    sizes = [documents.num_rows * tenth // 10 for tenth in range(1, 10)]
    differ = [sum(map(str.__ne__, _cut(documents.slice(0, size), source), whole)) for size in sizes]
    cut = sum(map(str.__ne__, documents["text"].to_pylist(), whole))
    print(
        f"- {source.label}: {documents.num_rows:,} documents, {cut:,} of them cut; of the first {sizes[0]:,}, "
        f"{sizes[1]:,}, ... {sizes[-1]:,} documents alone, {sum(differ)} have another text than among all"
    )


def _documents(out: str, source: SourceConfig) -> pa.Table:
    layout = Layout(out)
    ingest, clean = (files_of(layout.work(stage)) for stage in ("ingest", "clean"))
    refs = shard_refs(storage.read_json(ingest.file("tasks.json")), clean)
    mine = [ref for ref in refs if _SOURCES[ref.entry] == source]
    return pa.Table.from_batches(batch for ref in mine for batch in read_clean(ref))


def _cut(documents: pa.Table, source: SourceConfig) -> list[str]:
    """The texts after the cuts."""
    settings, rule = TemplatesConfig(), source.template_group or "source"
    groups = document_labels(documents, rule)
    known = blocks.templates(blocks.block_rows(documents, groups, settings.min_documents, 0), settings.min_documents)
    spans = blocks.template_spans(documents, groups, known, settings)
    return list(cut_rows(documents["text"].combine_chunks(), spans).to_pylist())


if __name__ == "__main__":
    main()
