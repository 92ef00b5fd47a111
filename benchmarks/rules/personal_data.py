"""Masks of personal data on real text: what is found of each kind, its precision on a labelled sample, and speed.

    python -m benchmarks.rules.personal_data DATA OUT [--samples 40] [--show FILE]

OUT is a new folder for two builds up to `split`: without the filter `pii`, whose texts are searched here, and with it,
whose ledger must have the same masks. The sample has up to `--samples` masks of each kind and row at random, and all of
them if there are fewer; `--show` writes it with its context, and with the label of each. Labels are those of
`personal_data_labels.json`, by the digest of row, kind and context, so that they contain no personal data. A label is
`right` if a reader of the context finds the whole text to be of its kind, an invented example included, else
`wrong: ` and what it is.

A rough search beside it shows what is missed: words around an `@`, ten digits in three groups with separators, and four
numbers with dots. It finds more than personal data.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.dataset as ds
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.report import RESULTS, Report, say, table
from finpile.clean.filters import pii
from finpile.config import CleanConfig, CorpusConfig, DedupConfig, FilterConfig, SourceConfig
from finpile.plugins.filter import Rejection, Span
from finpile.verify import verify

_LABELS = Path(__file__).with_name("personal_data_labels.json")
_SOURCES = (
    SourceConfig(name="Mail", dataset="A", format="mail", paths=("enron/enron1_subset.tar.zst",), members=("*.txt",)),
    SourceConfig(
        name="Filings",
        dataset="A",
        format="edgar",
        paths=("fin_filings/edgar_full_submission_sgml.tar.zst", "fin_filings/edgar_crawler/RAW_8-K.zip"),
    ),
    SourceConfig(name="News", dataset="A", format="sgml", paths=("fin_news/reuters21578.tar.gz",), members=("*.sgm",)),
    SourceConfig(name="Pages", dataset="A", format="jsonl", paths=("c4_like/dclm_cc/*.jsonl",)),
    SourceConfig(
        name="Chat", dataset="A", format="irc", paths=("ubuntu_irc/ubuntu_irc_raw.tar.zst",), members=("*.raw.txt",)
    ),
)
_ROUGH = {
    "email": re.compile(r"[\w.-]+ ?@ ?\w[\w-]* ?\. ?\w+"),
    "phone": re.compile(r"\b\d{3}\)?[-. /]{1,2}\d{3}[-. ]\d{4}\b"),
    "ip": re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"),
}
_KINDS = tuple(reason.removeprefix("pii_") for reason in pii.REASONS)
_AROUND = 48


@dataclass(frozen=True, slots=True)
class Mask:
    """One mask, with the text around it."""

    row: str
    kind: str
    before: str
    text: str
    after: str

    @property
    def key(self) -> str:
        """By which its label is found."""
        written = "\0".join((self.row, self.kind, self.before, self.text, self.after))
        return hashlib.sha256(written.encode()).hexdigest()[:12]


def main() -> None:
    """Writes results/<date>_personal_data.md."""
    arguments = _arguments()
    config = CorpusConfig(name="pii", root=arguments.data, sources=_SOURCES, dedup=DedupConfig(exact=False, near=None))
    texts = _texts(config, arguments.out / "plain")
    masks: dict[str, list[Mask]] = {}
    found = {}
    report = Report(
        arguments.results, "personal_data", "Masks of personal data on real text", ("finpile", "phonenumbers")
    )
    for row, documents in texts.items():
        say(f"{row}: {len(documents):,} documents")
        start = time.process_time()
        spans = [_spans(text) for text in documents]
        found[row] = time.process_time() - start
        masks[row] = list(_masks(row, documents, spans))
    report.add(
        "## What is found", _found(texts, masks, found), _same_as_ledger(config, arguments.out / "masked", masks)
    )
    report.add("## What a rough search finds beside", _left(texts))
    labels = json.loads(_LABELS.read_text()) if _LABELS.exists() else {}
    sample = [mask for row in masks for mask in _sample(masks[row], arguments.samples)]
    report.add("## Precision", _precision(sample, labels))
    if arguments.show:
        shown = [
            [mask.key, labels.get(mask.key), mask.row, mask.kind, f"{mask.before}<<{mask.text}>>{mask.after}"]
            for mask in sample
        ]
        arguments.show.write_text("\n".join(json.dumps(line) for line in shown) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--show", type=Path, metavar="FILE")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def _texts(config: CorpusConfig, out: Path) -> dict[str, list[str]]:
    """The clean texts of each row, in the order of their ids."""
    build(config, str(out), Engine(num_workers=1), until="split")
    documents = ds.dataset(out / "documents", partitioning="hive").to_table(columns=["id", "source", "text"])
    texts: dict[str, list[str]] = {source.label: [] for source in config.sources}
    for document in documents.sort_by("id").to_pylist():
        texts[document["source"]].append(document["text"])
    return texts


def _spans(text: str) -> list[Span]:
    found = pii.apply(text)
    return [] if isinstance(found, Rejection) else found


def _masks(row: str, documents: Iterable[str], spans: Iterable[list[Span]]) -> Iterator[Mask]:
    for text, of_text in zip(documents, spans, strict=True):
        for span in of_text:
            kind = span.reason.removeprefix("pii_")
            before, after = text[max(0, span.start - _AROUND) : span.start], text[span.end : span.end + _AROUND]
            yield Mask(row, kind, before, text[span.start : span.end], after)


def _found(texts: dict[str, list[str]], masks: dict[str, list[Mask]], seconds: dict[str, float]) -> str:
    rows = []
    for row, documents in texts.items():
        kinds, size = Counter(mask.kind for mask in masks[row]), sum(len(text.encode()) for text in documents) / 1e6
        distinct = {kind: len({mask.text for mask in masks[row] if mask.kind == kind}) for kind in _KINDS}
        cells = [f"{kinds[kind]:,} ({distinct[kind]:,})" if kinds[kind] else "0" for kind in _KINDS]
        speed = f"{size / seconds[row]:.1f}"
        rows.append([row, f"{len(documents):,}", f"{size:.1f}", *cells, speed])
    note = "Masks, in brackets different texts of them; MB of text by CPU seconds of one process, the filter alone."
    return f"{table(['row', 'documents', 'MB', *_KINDS, 'MB/s'], rows)}\n\n{note}"


def _same_as_ledger(config: CorpusConfig, out: Path, masks: dict[str, list[Mask]]) -> str:
    """A build with the filter: its ledger beside the masks, and its verification."""
    clean = CleanConfig(filters=(FilterConfig.named("pii"),))
    sources = tuple(replace(source, clean=clean) for source in config.sources)
    build(replace(config, sources=sources), str(out), Engine(num_workers=1), until="split")
    rows = ds.dataset(out / "removed", partitioning="hive").to_table(columns=["source", "reason", "removed_text"])
    ledger = Counter(
        (row["source"], row["reason"].removeprefix("pii_"), row["removed_text"].decode())
        for row in rows.to_pylist()
        if row["reason"] in pii.REASONS
    )
    here = Counter((mask.row, mask.kind, mask.text) for of_row in masks.values() for mask in of_row)
    wrong = [check.name for check in verify(str(out)) if not check.ok]
    same = "the same masks" if ledger == here else f"OTHER masks: {sum((ledger - here).values())} more"
    return (
        f"A build with the filter has {same} in its ledger, {ledger.total():,} in all; "
        f"`verify`: {', '.join(wrong) or 'all checks ok'}."
    )


def _left(texts: dict[str, list[str]]) -> str:
    """Matches of the rough patterns, and those that no mask touches."""
    rows = []
    for row, documents in texts.items():
        counts = Counter[tuple[str, bool]]()
        for text in documents:
            covered = [(span.start, span.end) for span in _spans(text)]
            for kind, pattern in _ROUGH.items():
                for match in pattern.finditer(text):
                    is_masked = any(start < match.end() and match.start() < end for start, end in covered)
                    counts[kind, is_masked] += 1
        cells = [f"{counts[kind, False]:,} of {counts[kind, True] + counts[kind, False]:,}" for kind in _ROUGH]
        rows.append([row, *cells])
    note = "Not masked, of all matches of the rough pattern."
    return f"{table(['row', *_ROUGH], rows)}\n\n{note}"


def _sample(masks: list[Mask], num: int) -> Iterator[Mask]:
    """Up to `num` masks of each kind, of different texts first."""
    by_kind: dict[str, dict[str, Mask]] = defaultdict(dict)
    for mask in masks:
        by_kind[mask.kind].setdefault(mask.text, mask)
    for kind in _KINDS:
        distinct = sorted(by_kind[kind].values(), key=lambda mask: mask.key)
        yield from random.Random(1).sample(distinct, min(num, len(distinct)))


def _precision(sample: list[Mask], labels: dict[str, str]) -> str:
    """Right masks of the labelled ones, by kind and row."""
    rows = []
    for kind in _KINDS:
        cells, sums = [], Counter[str]()
        for row in (source.label for source in _SOURCES):
            given = Counter(
                labels.get(mask.key, "none").partition(":")[0]
                for mask in sample
                if (mask.kind, mask.row) == (kind, row)
            )
            sums += given
            judged = given["right"] + given["wrong"]
            cells.append(f"{given['right']} of {judged}" if judged else "-")
        judged = sums["right"] + sums["wrong"]
        rows.append([kind, *cells, f"{sums['right'] / judged:.1%}" if judged else "-", str(sums["none"])])
    wrong = Counter(
        label.partition(": ")[2] for mask in sample if (label := labels.get(mask.key, "")).startswith("wrong")
    )
    reasons = "\n".join(f"- {reason}: {num}" for reason, num in sorted(wrong.items(), key=lambda item: -item[1]))
    head = ["kind", *(source.label for source in _SOURCES), "right", "not labelled"]
    note = (
        f"{len(sample)} masks, read with {_AROUND} characters on each side. Right: the whole text is of its kind; "
        "invented examples count as right."
    )
    return f"{note}\n\n{table(head, rows)}\n\nWrong masks:\n\n{reasons or '- none'}"


if __name__ == "__main__":
    main()
