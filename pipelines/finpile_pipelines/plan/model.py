"""The model of a build: what each stage takes on a number of workers.

A stage takes CPU time to begin and to start its workers, and for each task, MB, document or token, which workers share
as far as there are tasks: the stage ends no earlier than its longest task. All rates are measured
(`finpile_pipelines.plan.rates`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from finpile.config import CorpusConfig, NearConfig, TokenizerConfig
from finpile.config.mixture import weights
from finpile.documents.document import Label
from finpile.documents.segments import share_of
from finpile.plugins import stages
from finpile.storage.sizes import (
    SHARD_BYTES,
    SHARD_TOKENS,
    most_document_segments,
    num_partitions,
    part_bytes_of,
    shard_bytes_of,
    shards_of_keys,
    task_bytes_of,
)
from finpile.tokens.copies import classes_of, need_counts, with_shares
from finpile_pipelines.build import stage_names
from finpile_pipelines.plan.exchanges import Exchange
from finpile_pipelines.plan.inputs import SourceInput
from finpile_pipelines.plan.jobs import is_enabled, num_jobs, num_readings
from finpile_pipelines.plan.rates import Rates, StageRate
from finpile_pipelines.plan.token_counts import TokenCounts
from finpile_pipelines.stage import SMALL_BYTES
from finpile_pipelines.unigram.texts import num_chunks

_MB = 1e6
#: A key of a window in the exchange of `substring` (`finpile.storage.sizes`).
_KEY_BYTES = 90
#: Stages whose tasks are published files, which are larger than shards.
_OF_PARTS = ("split", "tokens")
#: A further worker with a small task takes this part of what it takes with a full one: a process of its own.
_LEAST_GROWTH = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class StagePlan:
    """What one stage takes."""

    stage: str
    jobs: int
    tasks: int
    """Parts of its work that run at once, at most."""
    start_cpu_seconds: float
    """Of the CPU time, what does not depend on text: to begin, to start workers, and to begin and end tasks."""
    cpu_seconds: float
    seconds: float
    memory_bytes: float
    """Of one worker process, on a machine of its own."""
    machine_bytes: float
    """Memory of all workers, if they are on one machine."""
    shuffled_bytes: float
    """Of the tables of its exchanges, written a second time included."""
    scratch_bytes: float
    """Of its exchanges, on disk while it runs."""
    disk_bytes: float
    """What it leaves on disk, in `.work` and in OUT."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A build on a number of workers."""

    workers: int
    inputs: tuple[SourceInput, ...]
    stages: tuple[StagePlan, ...]
    start_seconds: float
    documents: float
    shards: int
    tokens: float
    """Of all clean text, in as many copies as the mixture makes: duplicates and held-out documents included."""

    @property
    def token_shards(self) -> int:
        """Files of training tokens."""
        return max(1, _ceil(self.tokens / SHARD_TOKENS))

    @property
    def partitions(self) -> int:
        """Of an exchange whose rows are not small beside the texts."""
        return num_partitions(units_of(self.inputs))

    @property
    def text_bytes(self) -> float:
        """After cleaning."""
        return sum(source.clean_bytes for source in self.inputs)

    @property
    def seconds(self) -> float:
        """From the start of the command to its end."""
        return self.start_seconds + sum(stage.seconds for stage in self.stages)

    @property
    def core_hours(self) -> float:
        """Of all workers, each a core, from the start to the end."""
        return self.workers * self.seconds / 3600

    @property
    def largest(self) -> StagePlan:
        """The stage that takes the most memory on one machine."""
        return self.largest_of(None)

    def largest_of(self, names: Collection[str] | None) -> StagePlan:
        """The same of the stages `names`; None: of all."""
        chosen = (stage for stage in self.stages if names is None or stage.stage in names)
        return max(chosen, key=lambda stage: stage.machine_bytes)

    @property
    def disk_bytes(self) -> float:
        """At the end of the build, and while the largest exchange is on disk."""
        return sum(stage.disk_bytes for stage in self.stages) + max(stage.scratch_bytes for stage in self.stages)


def plan_build(
    config: CorpusConfig,
    inputs: Sequence[SourceInput],
    workers: int,
    rates: Rates,
    job_seconds: float = 0.0,
    shard_bytes: int | None = None,
    counts: TokenCounts | None = None,
) -> Plan:
    """The stages of a build of the inputs. `job_seconds` is added for each Beam job: minutes on Dataflow.

    Shards have `shard_bytes` of text, or what `ingest` chooses. Tokens are those of `counts`, or of the rates.
    """
    model = _Model(config, tuple(inputs), workers, rates, job_seconds, shard_bytes, counts)
    names = stage_names(config)
    return Plan(
        workers=workers,
        inputs=tuple(inputs),
        stages=tuple(model.stage(name) for name in names),
        start_seconds=rates.start_seconds,
        documents=model.documents,
        shards=model.num_shards,
        tokens=model.tokens,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Copies:
    """The copies of the text of a corpus."""

    per_text: float = 1.0
    """Bytes of all copies by bytes of text."""
    are_counted: bool = False
    """Whether `tokens` has a pass that counts tokens first."""


def planned_copies(config: CorpusConfig, text_bytes: Mapping[Label, float]) -> Copies:
    """The copies of rows with these sizes, before any token is counted.

    The tokens of a row are taken to be in proportion to its text. Each document is taken to be the only one of its
    kind, so that factors by `num_copies` are those of 1.

    Raises: RunError for a share of the mixture that no text can have.
    """
    text = sum(text_bytes.values())
    if config.mixture is None or not text:
        return Copies()
    of_rows = weights(config.mixture, config.rows)
    classes = classes_of(of_rows)
    sizes = [round(text_bytes.get(entry.row, 0.0)) if entry.least == 1 else 0 for entry in classes]
    weighted = with_shares(classes, of_rows, sizes)
    copied = sum(float(entry.weight or 0) * size for entry, size in zip(weighted, sizes, strict=True))
    return Copies(per_text=copied / text, are_counted=need_counts(classes))


@dataclass(frozen=True)
class _Model:
    config: CorpusConfig
    inputs: tuple[SourceInput, ...]
    workers: int
    rates: Rates
    job_seconds: float
    given_shard_bytes: int | None
    counts: TokenCounts | None

    @property
    def text(self) -> float:
        return sum(source.clean_bytes for source in self.inputs)

    @property
    def documents(self) -> float:
        return sum(source.documents for source in self.inputs)

    @property
    def _tokenizer(self) -> TokenizerConfig:
        """That of a training; a tokenizer that is used is taken to have a vocabulary of the default size."""
        return self.config.tokenizer or TokenizerConfig()

    @property
    def tokens(self) -> float:
        """Of all copies, each document with its `<|endoftext|>`; none with `tokenizer: none`."""
        if self.config.tokenizer is None:
            return 0.0
        return self.copies.per_text * (self._text_tokens + self.documents)

    @property
    def _text_tokens(self) -> float:
        """Of one copy of the text."""
        if self.counts is None:
            return self.text * self.rates.tokens_of_byte(self._tokenizer.vocab_size)
        return self.counts.tokens(self.text)

    @cached_property
    def copies(self) -> Copies:
        """Those of training text; held-out text is taken to be small."""
        return planned_copies(self.config, self._domains())

    def _read(self, name: str) -> float:
        """Clean text that a stage reads; of the tokenizer, that which it is trained on."""
        if name == "tokenizer":
            return sum(self._sampled().values())
        read = (source for source in self.inputs if name != "templates" or source.has_templates)
        return sum(source.clean_bytes for source in read)

    @property
    def shard_bytes(self) -> int:
        """As given, or as `ingest` chooses it."""
        return self.given_shard_bytes or shard_bytes_of(int(sum(source.stored_bytes for source in self.inputs)))

    @property
    def num_shards(self) -> int:
        """Each source has its own shards."""
        return sum(max(1, _ceil(source.text_bytes / self.shard_bytes)) for source in self.inputs)

    def stage(self, name: str) -> StagePlan:
        """One stage; all zero if the corpus file does not enable it, and for `reports`, which takes well under 1 s."""
        if name == "reports" or not is_enabled(name, self.config):
            nothing: dict[str, Any] = dict.fromkeys((one.name for one in fields(StagePlan)), 0)
            return StagePlan(**{**nothing, "stage": name})
        rate, of_text = self._rate(name), self._text_cpu_seconds(name)
        jobs, (tasks, largest) = num_jobs(name, self.config), self._tasks(name)
        busy = max(1, min(self.workers, tasks))
        fixed = rate.fixed_cpu_seconds + (0.0 if self._is_small else rate.workers_cpu_seconds)
        of_tasks = tasks * rate.cpu_seconds_per_task
        working = max((of_tasks + of_text) / busy, of_text * largest)
        exchanges = self._exchanges(name)
        return StagePlan(
            stage=name,
            jobs=jobs,
            tasks=tasks,
            start_cpu_seconds=fixed + of_tasks,
            cpu_seconds=fixed + of_tasks + of_text,
            seconds=fixed + working + jobs * self.job_seconds,
            memory_bytes=self._memory_bytes(name, 1),
            machine_bytes=self._memory_bytes(name, busy),
            shuffled_bytes=sum(one.sent_bytes + one.rewritten_bytes for one in exchanges),
            scratch_bytes=sum(one.scratch_bytes(busy) for one in exchanges),
            disk_bytes=self._disk_bytes(name),
        )

    @property
    def _is_small(self) -> bool:
        """Whether one process does all work."""
        return self.workers == 1 or self.text < SMALL_BYTES

    def _text_cpu_seconds(self, name: str) -> float:
        """CPU time in proportion to the inputs."""
        rates, near = self.rates, self.config.dedup.near
        if name in ("ingest", "clean"):
            return sum(self._reading_cpu_seconds(name, source) for source in self.inputs)
        if self._measured(name) == "exact":
            per_mb = rates.exact_cpu_seconds_per_mb
            if name == "exact" and self.config.dedup.exact_fold != "none":
                per_mb += rates.exact_cpu_seconds_per_mb_folded
            return self.text / _MB * per_mb + self.documents * rates.exact_cpu_seconds_per_document
        per_mb, seconds = self._rate(name).cpu_seconds_per_mb, 0.0
        if name == "tokens":
            seconds = self._text_tokens / 1e6 * rates.tokens_cpu_seconds_per_million
            per_mb += (self.copies.per_text - 1) * rates.tokens_cpu_seconds_per_mb_and_copy
            per_mb += self.copies.are_counted * rates.tokens_cpu_seconds_per_mb_counted
        seconds += self._read(name) / _MB * per_mb
        if self._measured(name) == "near":
            setting = near if name == "near" and near is not None else NearConfig.named("fast")
            seconds += self.text / _MB * setting.bands * setting.rows * rates.near_cpu_seconds_per_mb_and_hash
            seconds += self.documents * setting.bands * rates.near_cpu_seconds_per_document_and_band
        if name == "split":
            exchanges = self._exchanges(name)
            seconds += sum(one.segments for one in exchanges) * rates.split_cpu_seconds_per_segment
            if any(one.have_ranges for one in exchanges):
                seconds += self.text / _MB * rates.split_cpu_seconds_per_mb_of_ranges
        seconds = max(0.0, seconds) * num_readings(name, self.config)
        if name == "tokenizer" and self._read(name) < self.text:
            seconds += self.text / _MB * self.rates.tokenizer_cpu_seconds_per_mb_sampled
        return seconds

    def _files(self) -> Mapping[Label, int]:
        """Published files of documents, by row of Table 1."""
        return {row: max(1, _ceil(size / part_bytes_of(int(size)))) for row, size in self._domains().items()}

    def _reading_cpu_seconds(self, name: str, source: SourceInput) -> float:
        """Of `ingest` or `clean` for one source, by the rates of its format."""
        if name == "ingest":
            return source.decoded_bytes / _MB * self.rates.format(source.format).ingest_cpu_seconds_per_mb
        return source.text_bytes / _MB * self.rates.format(source.cleaned_as).clean_cpu_seconds_per_mb

    def _rate(self, name: str) -> StageRate:
        return self.rates.stage(self._measured(name))

    def _measured(self, name: str) -> str:
        """The stage, or the one that an algorithm without a measurement names."""
        info = stages.find(name)
        if name in self.rates.stages or not isinstance(info, stages.Algorithm):
            return name
        return info.rate

    def _tasks(self, name: str) -> tuple[int, float]:
        """The number of tasks of a stage, and the share of the largest."""
        if name == "ingest":
            return self._ingest_tasks()
        if name == "tokenizer":
            chunks = sum(self._chunks(size) for size in self._sampled().values())
            return chunks, 1 / chunks
        if name in _OF_PARTS:
            return sum(self._files().values()), min(1.0, self._largest_part() / max(1.0, self.text))
        largest = min(self.shard_bytes, max((source.text_bytes for source in self.inputs), default=0.0))
        return self.num_shards, min(1.0, largest / max(1.0, self.text))

    def _ingest_tasks(self) -> tuple[int, float]:
        """As `ingest` makes them; a file, or a range of one that is cut, is in one task."""
        tasks, largest, total = 0, 0.0, max(1.0, sum(source.decoded_bytes for source in self.inputs))
        for source in self.inputs:
            size = task_bytes_of(int(source.stored_bytes), self.shard_bytes)
            tasks += max(1, min(source.num_files, _ceil(source.stored_bytes / size)))
            at_least = min(1.0, size / max(1.0, source.stored_bytes))
            largest = max(largest, max(source.largest_share, at_least) * source.decoded_bytes / total)
        return tasks, min(1.0, largest)

    def _domains(self) -> Mapping[Label, float]:
        """Clean text by row of Table 1."""
        sizes: dict[Label, float] = {}
        for source in self.inputs:
            for row in source.rows:
                key = (source.dataset, row)
                sizes[key] = sizes.get(key, 0.0) + source.clean_bytes / len(source.rows)
        return sizes

    def _sampled(self) -> Mapping[Label, float]:
        """Text that the tokenizer is trained on, by row of Table 1."""
        domains = self._domains()
        share = share_of(int(sum(domains.values())), self._tokenizer.sample_bytes)
        return {row: size * share for row, size in domains.items()}

    def _largest_part(self) -> float:
        """Text of the largest published file."""
        return max(min(size, part_bytes_of(int(size))) for size in self._domains().values())

    def _chunks(self, size_bytes: float) -> int:
        return num_chunks(size_bytes, self._tokenizer.chunks)

    def _memory_bytes(self, name: str, workers: int) -> float:
        """Of all workers: of small tasks, and what full ones take more, in proportion to the text of a task."""
        rate = self.rates.memory[self._measured(name)]
        growth = self._largest_task(name) / (rate.task_mb * _MB)
        further = (workers - 1) * rate.worker_mb * max(_LEAST_GROWTH, growth)
        return _MB * (rate.small_mb + (rate.full_mb - rate.small_mb) * growth + further)

    def _largest_task(self, name: str) -> float:
        """Text of the largest task that a worker holds."""
        if name == "tokenizer":
            return max(size / self._chunks(size) for size in self._sampled().values())
        if name in _OF_PARTS:
            return self._largest_part()
        return min(self.shard_bytes, max(source.text_bytes for source in self.inputs))

    def _exchanges(self, name: str) -> Sequence[Exchange]:
        """The exchanges of a stage: one of each source in `split`, whose documents go to files of their own."""
        config, units = self.config.dedup, units_of(self.inputs)
        size = self._exchanged_bytes(name)
        if name == "split":
            return self._document_exchanges(size)
        if name == "near" and config.near is not None:
            rows, units_of_partition = self.documents * config.near.bands, 1
        elif self._measured(name) == "exact":
            rows, units_of_partition = self.documents, 1
        elif name == "substring" and config.substring is not None:
            rows, units_of_partition = size / _KEY_BYTES, shards_of_keys(config.substring.min_length)
        else:
            return [Exchange(row_bytes=size)]
        partitions = num_partitions(units, units_of_partition)
        return [Exchange(row_bytes=size, rows=rows, origins=self.num_shards, partitions=partitions)]

    def _document_exchanges(self, size: float) -> Sequence[Exchange]:
        most, files, exchanges = most_document_segments(self.shard_bytes), self._files(), []
        share = min(1.0, most / sum(files.values()))
        for source in self.inputs:
            partitions = sum(files[source.dataset, row] for row in source.rows) / len(source.rows)
            exchanges.append(
                Exchange(
                    row_bytes=size * source.clean_bytes / max(1.0, self.text),
                    rows=source.documents,
                    origins=max(1, _ceil(source.text_bytes / self.shard_bytes)),
                    partitions=partitions,
                    most_segments=max(1.0, partitions * share),
                )
            )
        return exchanges

    def _exchanged_bytes(self, name: str) -> float:
        """Bytes of the rows of exchanges."""
        per_text, near, rates = self._rate(name).exchanged_per_text, self.config.dedup.near, self.rates
        if self._measured(name) == "exact":
            return self.documents * rates.exact_exchanged_per_document
        if self._measured(name) == "near":
            more = 0.0
            if name == "near" and near is not None:
                more = (near.bands - rates.near_bands) * rates.near_exchanged_per_document_and_band
            return self.documents * max(0.0, rates.near_exchanged_per_document + more)
        if name == "tokens":
            per_text *= self.copies.per_text
            per_text += self.copies.are_counted * self.rates.tokens_exchanged_per_text_counted
        return max(0.0, per_text) * self._read(name) * num_readings(name, self.config)

    def _disk_bytes(self, name: str) -> float:
        folders = {"split": ("documents", "removed"), "tokens": ("tokens",)}.get(name, ())
        published = sum(self.rates.published_per_text[folder] for folder in folders)
        copies = self.copies.per_text if name == "tokens" else 1.0
        return (self._rate(name).disk_per_text + published) * copies * self._read(name)


def units_of(inputs: Sequence[SourceInput]) -> int:
    """Shards of `SHARD_BYTES`, of which partitions have as many rows as one or more."""
    return sum(max(1, _ceil(source.text_bytes / SHARD_BYTES)) for source in inputs)


def _ceil(value: float) -> int:
    return int(-(-value // 1))
