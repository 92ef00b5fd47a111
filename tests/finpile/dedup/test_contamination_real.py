"""Real corpora against real evaluation sets: quoted novels and encyclopedia articles are found, filings stay."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from finpile.clean.stage.clean import clean_batch
from finpile.config import ContaminationConfig, EvalSetConfig, SourceConfig
from finpile.dedup.contamination.eval_sets import load_items
from finpile.dedup.contamination.evaluation_index import EvalIndex, boilerplate, count_documents, decide, sum_counts
from finpile.documents.document import DocumentBuilder, RawDocument
from finpile.sources import list_inputs, read_file

pytestmark = pytest.mark.slow

SETS = (
    EvalSetConfig(name="LAMBADA", paths=("eval_tasks/general/lambada_openai.jsonl",), fields=("context",)),
    EvalSetConfig(name="BoolQ", paths=("eval_tasks/general/boolq.jsonl",), fields=("query",)),
    EvalSetConfig(
        name="ConvFinQA",
        paths=("eval_tasks/convfinqa/convfinqa_dataset.json",),
        fields=("doc.pre_text", "doc.post_text"),
        records="dev",
        id="id",
    ),
)
SOURCES = (
    SourceConfig(name="Books", dataset="The Pile", format="text", paths=("books/*.tar.zst",)),
    SourceConfig(name="Pages", dataset="Wikipedia", format="text", paths=("wikipedia/wikitext_pages.tar.zst",)),
    SourceConfig(name="Dump", dataset="Wikipedia", format="text", paths=("wikipedia/enwiki-*.bz2",)),
    SourceConfig(
        name="8-K",
        dataset="FinPile",
        format="edgar",
        paths=("fin_filings/edgar_crawler/RAW_8-K.zip",),
        members=("*.txt",),
    ),
)
DEFAULT = ContaminationConfig(sets=SETS)
#: What wikitext puts between words: references, templates, and the targets of links that have a label.
_MARKUP = re.compile(r"<ref[^>/]*/>|<ref.*?</ref>|\{\{[^{}]*\}\}|\[\[[^\]|]*\||'''?", re.DOTALL)


WORD = re.compile("[0-9A-Za-z\u00c0-\u1fff\u2080-\u2fff]+|[\u3040-\U0010ffff]")
FOLD = str.maketrans({chr(upper): chr(upper + 32) for upper in range(0x41, 0x5B)})


@dataclass(frozen=True)
class Found:
    """All matches of a corpus, as if its documents were one shard."""

    index: EvalIndex
    sources: list[str]
    texts: list[str]
    matches: pa.Table
    common: pa.Array

    def overlaps(self, min_coverage: float) -> list[dict[str, Any]]:
        index = replace(self.index, config=replace(DEFAULT, min_coverage=min_coverage))
        return list(decide(self.matches, self.common, index).to_pylist())

    def flagged(self, name: str, min_coverage: float) -> Counter[str]:
        """Documents of each source that hold an item of the set."""
        rows = {row["row"] for row in self.overlaps(min_coverage) if row["set"] == name}
        return Counter(self.sources[row] for row in rows)


def documents(source: SourceConfig, root: Path) -> Iterator[str]:
    """The cleaned texts; a dump of an encyclopedia by its pages."""
    builder = DocumentBuilder(source.dataset, source.name)
    for file in list_inputs(source, str(root)):
        for record in read_file(file, source):
            if isinstance(record, RawDocument):
                builder.append(record)
    for text in clean_batch(builder.flush(), source).batch["text"].to_pylist():
        if source.dataset == "Wikipedia":
            for page in text.split("<page>"):
                yield _MARKUP.sub("", page.replace("&lt;", "<").replace("&gt;", ">"))
        else:
            yield text


@pytest.fixture(scope="module")
def items(real_data: Callable[[str], Path]) -> pa.Table:
    return load_items(SETS, str(real_data("eval_tasks").parent))


@pytest.fixture(scope="module")
def found(real_data: Callable[[str], Path], items: pa.Table) -> Found:
    root = real_data("eval_tasks").parent
    index = EvalIndex.build(items, DEFAULT)
    rows = [(source.name, text) for source in SOURCES for text in documents(source, root)]
    sources, texts = (list(column) for column in zip(*rows, strict=True))
    matches = index.find(pa.array(texts, pa.large_string()))
    common = boilerplate(sum_counts([count_documents(matches)]), DEFAULT)
    return Found(index, sources, texts, matches, common)


def test_novels_and_articles_are_flagged_and_filings_are_not(found: Found) -> None:
    any_gram, default = np.nextafter(0, 1), DEFAULT.min_coverage
    flagged = {name: found.flagged(name, default) for name in ("LAMBADA", "BoolQ", "ConvFinQA")}
    sys.stdout.write(f"\n{report(found)}\n")
    assert flagged == {"LAMBADA": {"Books": 1}, "BoolQ": {"Dump": 3}, "ConvFinQA": {}}
    assert found.flagged("ConvFinQA", any_gram) == {"8-K": 20}  # what one shared sentence would have taken
    highest = max(row["coverage"] for row in found.overlaps(any_gram) if row["set"] == "ConvFinQA")
    assert highest < default / 2


def test_flagged_bytes_are_those_of_the_item(found: Found) -> None:
    spans = {
        (row["set"], row["item"]): found.texts[row["row"]].encode()[row["start"] : row["end"]].decode()
        for row in found.overlaps(DEFAULT.min_coverage)
    }
    assert set(spans) == {("LAMBADA", "1032"), ("LAMBADA", "3139"), *(("BoolQ", i) for i in ("1205", "1852", "2931"))}
    assert spans["LAMBADA", "1032"].startswith("officious, I said no more; but my heart quite ached for him")
    assert spans["BoolQ", "1852"].startswith("The atomic number uniquely identifies a chemical element.")


def test_matches_are_those_of_sets_of_words(found: Found, items: pa.Table) -> None:
    wanted = {gram for texts in items["texts"].to_pylist() for text in texts for gram in grams_of(text)}
    assert found.index.num_grams == len(wanted)
    expected = [len(wanted.intersection(grams_of(text))) for text in found.texts]
    num_matches = np.bincount(found.matches["row"].to_numpy(), minlength=len(expected))
    assert num_matches.tolist() == expected
    assert sum(expected) > 100


def grams_of(text: str) -> Iterator[tuple[str, ...]]:
    """Each run of 13 words; of an item of 8 to 12 words, all of them (no document here is so short)."""
    words = WORD.findall(text.translate(FOLD))
    if DEFAULT.min_words <= len(words) < DEFAULT.ngram:
        return iter([tuple(words)])
    return zip(*(words[i:] for i in range(DEFAULT.ngram)), strict=False)


def report(found: Found) -> str:
    """The figures, for `pytest -s`."""
    index = found.index
    lines = [
        f"{index.items.num_rows} items, {index.not_checkable().num_rows} not checkable, {index.num_grams} grams",
        f"{len(found.texts)} documents, {sum(map(len, found.texts)) / 1e6:.1f} million characters",
        f"{len(found.matches['gram'].unique())} grams met, {len(found.common)} of them boilerplate",
    ]
    for name in ("LAMBADA", "BoolQ", "ConvFinQA"):
        rows = [row for row in found.overlaps(np.nextafter(0, 1)) if row["set"] == name]
        histogram, _ = np.histogram([row["coverage"] for row in rows], np.linspace(0, 1, 11))
        lines.append(f"{name}: items in documents by tenths of coverage: {histogram.tolist()}")
    return "\n".join(lines)
