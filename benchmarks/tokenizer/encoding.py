"""The encode part: the same pieces over the same text, speeds in turn and in one process, and whether the ids agree."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from finpile_tokenizer import UnigramTokenizer, Vocabulary
from finpile_tokenizer.arrays.buffers import byte_buffers
from finpile_tokenizer.pretokens.pretokenizer import pretoken_starts

from benchmarks.common.pinned_corpus import Corpus, size_bytes, together
from benchmarks.common.report import say, table
from benchmarks.tokenizer.hardware_counters import EVENTS, counted
from benchmarks.tokenizer.id_differences import Differences, Float32Search, differences
from benchmarks.tokenizer.sentencepiece_encoder import (
    BY_DOCUMENT,
    BY_PRETOKEN,
    FAST_MODES,
    MODES,
    Mode,
    SentencePieceEncoder,
)
from benchmarks.tokenizer.tokenizers_encoder import hf_tokenizer, ids_of, prepared

Run: TypeAlias = Callable[[], Any]
Reference: TypeAlias = Callable[[list[str]], list[list[int]]] | None

OURS, SENTENCEPIECE, HF, TIKTOKEN = "FinPile", "SentencePiece", "HF tokenizers", "tiktoken, GPT-2"


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Raced:
    """What was measured on one domain's documents."""

    size_bytes: int
    num_tokens: int
    num_reference_tokens: int
    seconds: Mapping[str, float]
    """Median of the rounds, by encoder; SentencePiece's is that of its fastest mode."""
    modes: Mapping[Mode, float]
    """Median of the rounds, by mode of SentencePiece."""
    hf_differ: int
    """Documents whose ids from HF tokenizers are not ours."""
    num_documents: int
    by_document: Differences
    """From SentencePiece, given whole documents."""
    by_pretoken: Differences
    """From SentencePiece, given each pretoken as a text of its own."""


class Contest:
    """All encoders over one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, reference: Reference, rounds: int) -> None:
        self._reference = reference
        self._rounds = rounds
        self._ours = UnigramTokenizer(vocabulary)
        self._sentencepiece = SentencePieceEncoder(vocabulary)
        self._search = Float32Search(vocabulary)
        self._hf = hf_tokenizer(vocabulary)

    def race(self, texts: pa.Array) -> Raced:
        """All encoders on these documents with one thread each."""
        strings = texts.to_pylist()
        runs: dict[str | Mode, Run] = {
            OURS: lambda: self._ours.encode_array(texts),
            HF: prepared(self._hf, strings),
            **{mode: self._sentencepiece.prepared(texts, mode) for mode in MODES},
        }
        reference = self._reference
        if reference is not None:
            runs[TIKTOKEN] = lambda: reference(strings)
        seconds = race(runs, self._rounds)
        modes = {mode: seconds.pop(mode) for mode in MODES}
        ids = self._ours.encode_array(texts)
        return Raced(
            size_bytes=size_bytes(texts),
            num_tokens=len(ids.values),
            num_reference_tokens=sum(map(len, reference(strings))) if reference is not None else 0,
            seconds={**seconds, SENTENCEPIECE: min(modes.values())},
            modes=modes,
            hf_differ=sum(a != b for a, b in zip(ids.to_pylist(), ids_of(runs[HF]()), strict=True)),
            num_documents=len(texts),
            by_document=self._differences(texts, ids, BY_DOCUMENT),
            by_pretoken=self._differences(texts, ids, BY_PRETOKEN),
        )

    def race_threads(self, texts: pa.Array, num_threads: int) -> dict[tuple[str, int], float]:
        """Seconds of ours and SentencePiece's, by encoder and number of threads: one, and the number given."""
        runs: dict[tuple[str, int], Run] = {}
        for count in (1, num_threads):
            runs[OURS, count] = partial(self._ours.encode_array, texts, num_threads=count)
            for mode in FAST_MODES:
                runs[mode.name, count] = self._sentencepiece.prepared(texts, mode, count)
        seconds = race(runs, self._rounds)
        for count in (1, num_threads):
            seconds[SENTENCEPIECE, count] = min(seconds[mode.name, count] for mode in FAST_MODES)
        return seconds

    def counters(self, texts: pa.Array) -> dict[str, dict[str, int]]:
        """What the processor counts while each of ours and SentencePiece's encodes the texts once."""
        runs: dict[str, Run] = {
            OURS: lambda: self._ours.encode_array(texts),
            SENTENCEPIECE: self._sentencepiece.prepared(texts, BY_DOCUMENT),
        }
        return {name: counted(run) for name, run in runs.items()}

    def _differences(self, texts: pa.Array, ids: pa.LargeListArray, mode: Mode) -> Differences:
        offsets, data = byte_buffers(texts)
        starts = pretoken_starts(texts)[0] - offsets[0]
        # A document without a byte has no pretoken.
        documents = np.unique(offsets[:-1][np.diff(offsets) > 0]) - offsets[0]
        return differences(
            self._search,
            text=data[offsets[0] : offsets[-1]].tobytes(),
            ours=ids.values.to_numpy().astype(np.int64),
            theirs=self._sentencepiece.ids(texts, mode),
            pretoken_starts=starts,
            unit_starts=starts if mode.by_pretoken else documents,
        )


def race(runs: Mapping[Any, Run], rounds: int) -> dict[Any, float]:
    """Median seconds of each: all once to warm up, then in turn, round after round."""
    for run in runs.values():
        run()
    seconds: dict[Any, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            seconds[name].append(_timed(run))
    return {name: statistics.median(times) for name, times in seconds.items()}


def _timed(run: Run) -> float:
    """Wall seconds. The cyclic collector is off: it would search the peers' lists for cycles that are not there."""
    gc.collect()
    gc.disable()
    began = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - began
    del result
    gc.enable()
    return seconds


# --- the section of the report ----------------------------------------------------------------------------------------


def compare_encoding(
    vocabulary: Vocabulary, corpus: Corpus, reference: Reference, rounds: int, num_threads: int
) -> str:
    """The section on one vocabulary: speed by domain, several threads, agreement of the ids, hardware counters."""
    say(f"encoding with {vocabulary.vocab_size:,} pieces")
    contest = Contest(vocabulary, reference, rounds)
    raced = {domain: contest.race(texts) for domain, texts in corpus.items()}
    everything = together(corpus)
    return "\n\n".join(
        [
            f"## Encoding with {vocabulary.vocab_size:,} pieces",
            f"MB/s, one thread each, median of {rounds} rounds in turn. {_HOW}",
            _speed_table(raced),
            "SentencePiece's modes in MB/s, from the same rounds; the fastest of a domain is in the table above:",
            _mode_table(raced),
            f"All domains as one batch of {size_bytes(everything) / 1e6:.1f} MB:",
            _thread_table(contest.race_threads(everything, num_threads), size_bytes(everything), num_threads),
            _DIFFERENCES,
            _difference_table(raced),
            _counter_text(contest.counters(everything), size_bytes(everything)),
        ]
    )


_HOW = (
    "FinPile's `encode_array`; SentencePiece's C++ `encode` of a batch in its fastest mode; HF tokenizers' "
    "`encode_batch_fast`. All have the same pieces and probabilities, and their texts ready in the form that they "
    "take; the collector of cycles is off while the clock runs. The row `all` adds up the domains."
)
_DIFFERENCES = (
    "Ids that are not FinPile's. Of SentencePiece's, a differing pretoken is `explained` by its 32-bit sums where "
    "FinPile's segmentation has no lower float64 sum, and where the same search with sums in float32, begun at the sum "
    "that SentencePiece had reached there, ends in SentencePiece's. `ties` among them have equal float64 sums."
)


def _speed_table(raced: Mapping[str, Raced]) -> str:
    peers = [SENTENCEPIECE, HF]
    head = ["domain", "MB", "bytes per token", OURS, *(each for peer in peers for each in (peer, "FinPile faster by"))]
    has_reference = all(TIKTOKEN in each.seconds for each in raced.values())
    head += [f"{TIKTOKEN} (for reference)", "its bytes per token"] if has_reference else []
    rows = [_speed_row(domain, [each], peers, has_reference) for domain, each in raced.items()]
    return table(head, [*rows, _speed_row("all", list(raced.values()), peers, has_reference)])


def _speed_row(name: str, parts: list[Raced], peers: list[str], has_reference: bool) -> list[str]:
    size = sum(part.size_bytes for part in parts)
    total = {encoder: sum(part.seconds[encoder] for part in parts) for encoder in parts[0].seconds}
    row = [name, f"{size / 1e6:.2f}", f"{size / sum(part.num_tokens for part in parts):.3f}"]
    row.append(_speed(size, total[OURS]))
    for peer in peers:
        row += [_speed(size, total[peer]), f"{total[peer] / total[OURS]:.2f}x"]
    if has_reference:
        tokens = sum(part.num_reference_tokens for part in parts)
        row += [_speed(size, total[TIKTOKEN]), f"{size / tokens:.3f}"]
    return row


def _mode_table(raced: Mapping[str, Raced]) -> str:
    def cell(each: Raced, mode: Mode) -> str:
        speed = _speed(each.size_bytes, each.modes[mode])
        return f"**{speed}**" if each.modes[mode] == min(each.modes.values()) else speed

    rows = [[mode.name, *(cell(each, mode) for each in raced.values())] for mode in MODES]
    return table(["mode", *raced], rows)


def _thread_table(seconds: Mapping[tuple[str, int], float], size: int, num_threads: int) -> str:
    head = ["encoder", "1 thread MB/s", f"{num_threads} threads MB/s", "gain"]
    rows = [
        [name, _speed(size, one), _speed(size, many), f"{one / many:.2f}x"]
        for name in (OURS, SENTENCEPIECE)
        for one, many in [(seconds[name, 1], seconds[name, num_threads])]
    ]
    ratios = [f"{seconds[SENTENCEPIECE, count] / seconds[OURS, count]:.2f}x" for count in (1, num_threads)]
    return table(head, [*rows, ["FinPile faster by", *ratios, ""]])


def _difference_table(raced: Mapping[str, Raced]) -> str:
    head = ["domain", "documents", "HF differ", "SentencePiece differ", "pretokens", "differ", "explained", "ties"]
    head += ["given one by one, differ", "explained", "ties"]
    rows = [_difference_row(domain, [each]) for domain, each in raced.items()]
    return table(head, [*rows, _difference_row("all", list(raced.values()))])


def _difference_row(name: str, parts: list[Raced]) -> list[str]:
    whole, single = parts[0].by_document, parts[0].by_pretoken
    for part in parts[1:]:
        whole, single = whole + part.by_document, single + part.by_pretoken
    counts = [
        sum(part.num_documents for part in parts), sum(part.hf_differ for part in parts), whole.num_units_differ,
        whole.num_pretokens, whole.num_differ, whole.num_explained, whole.num_ties,
        single.num_differ, single.num_explained, single.num_ties,
    ]  # fmt: skip
    return [name, *(f"{count:,}" for count in counts)]


def _counter_text(counters: Mapping[str, Mapping[str, int]], size: int) -> str:
    events = [event for event in EVENTS if all(event in each for each in counters.values())]
    if not events:
        return "Hardware counters: none, `perf` is missing or this machine counts no hardware events."
    rows = [[name, *(f"{each[event] / size:.3f}" for event in events)] for name, each in counters.items()]
    return f"Hardware events per byte of text (`perf stat`):\n\n{table(['encoder', *events], rows)}"


def _speed(size: int, seconds: float) -> str:
    return f"{size / seconds / 1e6:.2f}"
