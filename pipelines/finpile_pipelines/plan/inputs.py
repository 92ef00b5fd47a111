"""The inputs of a corpus as the model needs them: numbers and sizes of files, and the text that they will give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import truediv
from typing import Any

from finpile.config import CorpusConfig, SourceConfig
from finpile.documents.document import label_of
from finpile.output.manifest import counts_by_stage
from finpile.sources.archives.archive import archive_kind
from finpile.sources.bytes.compression import split_codecs
from finpile.sources.readers.finding import InputFile, list_inputs
from finpile.sources.readers.multistream import expected_ranges
from finpile_pipelines.plan.rates import Rates
from finpile_pipelines.plan.samples import Sample, read_sample

#: Formats of pages, and those by whose rates documents are cleaned if the corpus file says that all are pages, or none.
_PAGES, _CLEANED_AS = ("edgar", "warc"), {"always": "warc", "never": "jsonl"}


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceInput:
    """The files of one source entry, and what they will become."""

    source: str
    dataset: str
    format: str
    cleaned_as: str
    """The format by whose rate `clean` takes its time."""
    num_files: int
    """Or ranges of them, where a file is cut for several tasks."""
    stored_bytes: float
    decoded_bytes: float
    text_bytes: float
    """As `ingest` reads it."""
    clean_bytes: float
    documents: float
    """As `ingest` reads them."""
    is_sampled: bool
    """Whether text and documents are those of its first records, and not those of its format."""
    largest_share: float
    """The part of the source that is in its largest file or range, which one task reads."""
    rows: tuple[str, ...]
    """The rows of its documents, which are taken to have equal parts of its text."""
    has_templates: bool
    """Whether templates are counted among its documents."""


def find_sampled(config: CorpusConfig, rates: Rates) -> tuple[tuple[SourceInput, ...], list[Sample | None]]:
    """The inputs of a corpus file, listed now, and a sample of each source.

    Raises: InputError where a pattern matches nothing; StoreError if an object store does not answer.
    """
    files = [list_inputs(source, config.root) for source in config.sources]
    samples = sample_inputs(config, files)
    return measure_inputs(config, files, rates, samples), samples


def built_inputs(config: CorpusConfig, manifest: Mapping[str, Any], rates: Rates) -> tuple[SourceInput, ...]:
    """The clean documents of a finished build as inputs of their own, one entry for each row, from its manifest."""
    grouped = {(one.dataset, row) for one in config.sources if one.template_group is not None for row in one.rows}
    return tuple(
        SourceInput(
            source=row["source"],
            dataset=row["dataset"],
            format="jsonl",
            cleaned_as="jsonl",
            num_files=1,
            stored_bytes=row["text_bytes"],
            decoded_bytes=row["text_bytes"],
            text_bytes=row["text_bytes"],
            clean_bytes=row["text_bytes"],
            documents=row["documents"],
            is_sampled=True,
            largest_share=1.0,
            rows=(row["source"],),
            has_templates=label_of(row) in grouped,
        )
        for row in counts_by_stage(manifest)["clean"]["sources"]
    )


def sample_inputs(config: CorpusConfig, inputs: Sequence[Sequence[InputFile]]) -> list[Sample | None]:
    """The first records of each source. Raises: StoreError if an object store does not answer."""
    drop = config.heldout.undated == "drop"
    return [read_sample(source, files, drop_undated=drop) for source, files in zip(config.sources, inputs, strict=True)]


def measure_inputs(
    config: CorpusConfig, inputs: Sequence[Sequence[InputFile]], rates: Rates, samples: Sequence[Sample | None] = ()
) -> tuple[SourceInput, ...]:
    """One entry for each source, from the sizes of its files and its sample, or the rates of its format.

    A compressed file and an archive have the mean expansion of their format; other files are as large as they are.
    """
    chosen = samples or [None] * len(inputs)
    return tuple(
        _measured(source, files, sample, rates)
        for source, files, sample in zip(config.sources, inputs, chosen, strict=True)
    )


def _measured(source: SourceConfig, files: Sequence[InputFile], sample: Sample | None, rates: Rates) -> SourceInput:
    rate, cleaned_as = rates.format(source.format), _cleaned_as(source)
    sizes = [file.size_bytes * (rate.decoded_per_stored if _is_packed(file) else 1.0) for file in files]
    ranges = [expected_ranges(file, source) for file in files]
    decoded = sum(sizes)
    text = sample.text_bytes if sample else decoded * rate.text_per_decoded
    clean_per_text = sample.clean_per_text if sample else None
    if clean_per_text is None:
        clean_per_text = rates.format(cleaned_as).clean_per_text
    return SourceInput(
        source=source.label,
        dataset=source.dataset,
        format=source.format,
        cleaned_as=cleaned_as,
        num_files=sum(ranges),
        stored_bytes=sum(file.size_bytes for file in files),
        decoded_bytes=decoded,
        text_bytes=text,
        clean_bytes=text * clean_per_text,
        documents=sample.documents if sample else text / rates.document_bytes(source.format),
        is_sampled=sample is not None,
        largest_share=max(map(truediv, sizes, ranges), default=0.0) / decoded if decoded else 0.0,
        rows=source.rows,
        has_templates=source.template_group is not None,
    )


def _cleaned_as(source: SourceConfig) -> str:
    are_pages, html = source.format in _PAGES, source.clean.html
    return source.format if are_pages and html == "always" else _CLEANED_AS.get(html, source.format)


def _is_packed(file: InputFile) -> bool:
    """Parquet files count as packed: their pages are compressed."""
    name, codecs = split_codecs(file.url)
    return bool(codecs) or archive_kind(file.url) is not None or name.endswith(".parquet")


def scaled(inputs: Sequence[SourceInput], text_bytes: float) -> tuple[SourceInput, ...]:
    """The same mix of sources with this much clean text, in more files of the same sizes."""
    factor = text_bytes / max(1.0, sum(source.clean_bytes for source in inputs))
    return tuple(
        replace(
            source,
            num_files=max(1, round(source.num_files * factor)),
            stored_bytes=source.stored_bytes * factor,
            decoded_bytes=source.decoded_bytes * factor,
            text_bytes=source.text_bytes * factor,
            clean_bytes=source.clean_bytes * factor,
            documents=source.documents * factor,
            largest_share=min(1.0, source.largest_share / factor),
        )
        for source in inputs
    )
