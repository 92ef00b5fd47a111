"""The table of measured rates, `rates.json`, which `benchmarks/scale/rates.py` writes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

#: Rates that are times of a stage, whose name they begin with.
_OF_STAGES = (
    "exact_cpu_seconds_per_document",
    "exact_cpu_seconds_per_mb",
    "exact_cpu_seconds_per_mb_folded",
    "near_cpu_seconds_per_document_and_band",
    "near_cpu_seconds_per_mb_and_hash",
    "split_cpu_seconds_per_mb_of_ranges",
    "split_cpu_seconds_per_segment",
    "tokenizer_cpu_seconds_per_mb_sampled",
    "tokens_cpu_seconds_per_mb_and_copy",
    "tokens_cpu_seconds_per_mb_counted",
    "tokens_cpu_seconds_per_million",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FormatRate:
    """One input format."""

    decoded_per_stored: float
    """Bytes after decompression by bytes of compressed files."""
    text_per_decoded: float
    clean_per_text: float
    ingest_cpu_seconds_per_mb: float
    """Per MB after decompression."""
    clean_cpu_seconds_per_mb: float
    """Per MB of text."""

    def times(self, ingest: float, clean: float) -> FormatRate:
        """With the CPU times of both stages multiplied."""
        return replace(
            self,
            ingest_cpu_seconds_per_mb=self.ingest_cpu_seconds_per_mb * ingest,
            clean_cpu_seconds_per_mb=self.clean_cpu_seconds_per_mb * clean,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StageRate:
    """One stage, on a mix of real text. All rates are per byte or MB of clean text that the stage reads.

    Those of stages whose rows are documents, in `Rates`, are per document.
    """

    fixed_cpu_seconds: float
    """Of a few small documents, by one process: kernels are loaded."""
    workers_cpu_seconds: float
    """What two worker processes take to start, besides."""
    cpu_seconds_per_task: float
    """Of a small document of a source of its own."""
    cpu_seconds_per_mb: float
    """What text takes besides."""
    exchanged_per_text: float
    """Bytes that tables of exchanges have on a disk, where they are not compressed."""
    disk_per_text: float
    """Bytes that the stage leaves in `.work` on a disk, where shards are not compressed."""

    def times(self, factor: float) -> StageRate:
        """With all times multiplied."""
        return replace(
            self,
            fixed_cpu_seconds=self.fixed_cpu_seconds * factor,
            workers_cpu_seconds=self.workers_cpu_seconds * factor,
            cpu_seconds_per_task=self.cpu_seconds_per_task * factor,
            cpu_seconds_per_mb=self.cpu_seconds_per_mb * factor,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRate:
    """Memory of one stage of a build on one machine, of all processes together: pages that they share count once."""

    small_mb: float
    """With one worker and small tasks: those of the sample corpus."""
    full_mb: float
    """With one worker and full tasks."""
    worker_mb: float
    """Of each further worker with full tasks."""
    task_mb: float
    """Text of a full task of the measurement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """All rates."""

    formats: Mapping[str, FormatRate]
    stages: Mapping[str, StageRate]
    memory: Mapping[str, MemoryRate]
    compile_mb: float
    """Memory of each process that compiles kernels, in the first run of an installation."""
    published_per_text: Mapping[str, float]
    """Bytes of `documents`, `removed` and `tokens`."""
    exact_cpu_seconds_per_document: float
    exact_cpu_seconds_per_mb: float
    """Of reading the text."""
    exact_cpu_seconds_per_mb_folded: float
    """What `exact_fold` takes besides."""
    exact_exchanged_per_document: float
    """Bytes that tables of exchanges have on a disk, where they are not compressed."""
    near_cpu_seconds_per_mb_and_hash: float
    """Of the hash values of the words of a text."""
    near_cpu_seconds_per_document_and_band: float
    """Of a key and its exchange."""
    near_exchanged_per_document: float
    """With the measured setting."""
    near_bands: int
    """Bands of the measured setting."""
    near_exchanged_per_document_and_band: float
    split_cpu_seconds_per_segment: float
    """Of documents that a shard sends to one published file, or to one range of files."""
    split_cpu_seconds_per_mb_of_ranges: float
    """Of documents that are sent to ranges of files, besides."""
    tokenizer_cpu_seconds_per_mb_sampled: float
    """Of choosing a sample of all text for the tokenizer, in two passes.
    Source: benchmarks/results/2026-11-24_tokenizer_sample.md"""
    tokens_cpu_seconds_per_million: float
    """Of tokens of text in one copy."""
    tokens_cpu_seconds_per_mb_and_copy: float
    """What each further copy of text takes that the mixture makes."""
    tokens_cpu_seconds_per_mb_counted: float
    """Of the pass that counts tokens for shares and fractions."""
    tokens_exchanged_per_text_counted: float
    """Of the same pass."""
    text_bytes_per_document: Mapping[str, float]
    """By format, for sources of which no record is read."""
    tokens_per_byte: Mapping[str, float]
    """By entries of the vocabulary, of a mix of news, speeches, TeX and chat, for a corpus of which no record is
    read."""
    record_bytes_per_shard: float
    """Of the driver's records of an `ingest` stage."""
    start_seconds: float
    """Of the command without its stages."""
    made_cpu_seconds: Mapping[str, float]
    """By stage, of the build of `finpile_pipelines.plan.measurement` on the machine of the rates."""
    measured: Mapping[str, Any]
    """Date and machine."""

    def format(self, name: str) -> FormatRate:
        """The rate of a format; that of `jsonl` for a format of another package."""
        return self.formats.get(name, self.formats["jsonl"])

    def stage(self, name: str) -> StageRate:
        """The rate of a measured stage."""
        return self.stages[name]

    def document_bytes(self, format_name: str) -> float:
        """Text of a document of a format; that of `jsonl` for a format of another package."""
        return self.text_bytes_per_document.get(format_name, self.text_bytes_per_document["jsonl"])

    def times(self, factors: Mapping[str, float]) -> Rates:
        """Rates of a machine on which stages take this many times the CPU time; other stages have that of `all`."""
        whole = factors["all"]
        of = {stage: factors.get(stage, whole) for stage in self.stages}
        stages = {name: rate.times(of[name]) for name, rate in self.stages.items()}
        by_stage = {name: getattr(self, name) * of[name.partition("_")[0]] for name in _OF_STAGES}
        return replace(
            self,
            formats={name: rate.times(of["ingest"], of["clean"]) for name, rate in self.formats.items()},
            stages=stages,
            start_seconds=self.start_seconds * whole,
            **by_stage,
        )

    def tokens_of_byte(self, vocab_size: int) -> float:
        """Tokens by byte of text: interpolated over the logarithm of measured sizes, beyond them the nearest."""
        points = sorted((math.log(int(size)), rate) for size, rate in self.tokens_per_byte.items())
        sizes, rates = zip(*points, strict=True)
        return float(np.interp(math.log(vocab_size), sizes, rates))


@cache
def load_rates() -> Rates:
    """The table of this installation."""
    return parse_rates(json.loads(resources.files(__package__).joinpath("rates.json").read_text()))


def parse_rates(table: Mapping[str, Any]) -> Rates:
    """Raises: KeyError or TypeError for a table that `benchmarks/scale/rates.py` has not written in full."""
    made = ("formats", "stages", "memory", "measured")
    names = [name for name in Rates.__dataclass_fields__ if name not in made]
    return Rates(
        formats={name: FormatRate(**rate) for name, rate in table["formats"].items()},
        stages={name: StageRate(**rate) for name, rate in table["stages"].items()},
        memory={name: MemoryRate(**rate) for name, rate in table["memory"].items()},
        measured=table["measured_stages"],
        **{name: table[name] for name in names},
    )
