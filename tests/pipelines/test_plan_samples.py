"""The samples of `finpile plan`: what is read of a source, and what all of it is taken to hold."""

from __future__ import annotations

import bz2
import gzip
import io
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from finpile_pipelines.plan import samples
from finpile_pipelines.plan.inputs import measure_inputs, sample_inputs
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.plan.samples import Sample, read_sample

from finpile.config import CleanConfig, CorpusConfig, SourceConfig, load_config
from finpile.documents.document import RawDocument
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file
from tests.support.archives import tar_of, zip_of
from tests.support.json_lines import json_lines

NUM_DOCUMENTS = 10_000
_WORDS = ("shares", "bond", "yield", "oil", "gold", "rate", "bank", "court", "trade", "profit", "loss", "wheat", "port")


@cache
def texts(num: int = NUM_DOCUMENTS) -> list[str]:
    """Documents of 60 to 2,000 bytes: about 6 MB in all."""
    draw = random.Random(4)
    return [f"{number} {' '.join(draw.choices(_WORDS, k=draw.randrange(10, 200)))}." for number in range(num)]


def source(kind: str, path: str = "*", **keys: Any) -> SourceConfig:
    return SourceConfig(name="News", dataset="FinPile", format=kind, paths=(path,), **keys)


def counted(config: SourceConfig, root: str) -> tuple[int, int]:
    """Documents and bytes of text, as `ingest` reads them."""
    read = [item for file in list_inputs(config, root) for item in read_file(file, config)]
    found = [item.text for item in read if isinstance(item, RawDocument)]
    return len(found), sum(len(text.encode()) for text in found)


def sample_of(config: SourceConfig, root: str) -> Sample:
    found = read_sample(config, list_inputs(config, root), drop_undated=False)
    assert found is not None
    return found


def test_a_source_that_is_read_whole_has_its_own_counts(sample_config: Path) -> None:
    config = load_config(sample_config)
    for one in config.sources:
        found = sample_of(one, config.root)
        num_documents, num_bytes = counted(one, config.root)
        assert found.text_bytes == pytest.approx(num_bytes), one.label
        assert found.documents == pytest.approx(num_documents), one.label


def lines() -> bytes:
    return json_lines({"text": text} for text in texts())


def members() -> dict[str, bytes]:
    return {f"{number:05}.txt": text.encode() for number, text in enumerate(texts())}


def tar() -> bytes:
    return tar_of(members())


def zipped() -> bytes:
    return zip_of(members())


def parquet() -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.table({"text": texts()}), held, row_group_size=700, compression="zstd")
    return held.getvalue()


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a.jsonl": ("jsonl", lines),
    "a.jsonl.gz": ("jsonl", lambda: gzip.compress(lines())),
    "a.jsonl.bz2": ("jsonl", lambda: bz2.compress(lines(), 1)),
    "a.jsonl.zst": ("jsonl", lambda: zstandard.compress(lines())),
    "a.tar": ("text", tar),
    "a.tar.zst": ("text", lambda: zstandard.compress(tar())),
    "a.zip": ("text", zipped),
    "a.parquet": ("parquet", parquet),
}


@pytest.mark.parametrize("name", list(FILES))
def test_a_part_of_a_file_stands_for_the_rest(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, content = FILES[name]
    (tmp_path / name).write_bytes(content())
    num_bytes = sum(len(text) for text in texts())
    for bound in ("_FILE_TEXT_BYTES", "_TEXT_BYTES"):
        monkeypatch.setattr(samples, bound, num_bytes // 2)
    taken: list[int] = []
    encode = read_file

    def limited(*arguments: Any, **keys: Any) -> Any:
        for item in encode(*arguments, **keys):
            taken.append(1)
            yield item

    monkeypatch.setattr(samples, "read_file", limited)
    found = sample_of(source(kind), str(tmp_path))
    assert len(taken) < 0.6 * NUM_DOCUMENTS, "the rest is not read"
    assert found.documents == pytest.approx(NUM_DOCUMENTS, rel=0.12)
    assert found.text_bytes == pytest.approx(num_bytes, rel=0.12)


def test_some_of_many_files_stand_for_all(tmp_path: Path) -> None:
    """Files of one document each are counted; their texts are those of as many bytes."""
    every = texts(1000)
    for number, text in enumerate(every):
        (tmp_path / f"{number:04}.txt").write_text(text)
    config = source("text")
    files = list_inputs(config, str(tmp_path))
    found = sample_of(config, str(tmp_path))
    assert found.documents == 1000
    assert found.text_bytes == pytest.approx(sum(map(len, every)), rel=0.05)
    assert found == read_sample(config, files, drop_undated=False)
    chosen = [place for place, _ in zip(samples._spread(range(1000)), range(64), strict=False)]
    gaps = sorted(later - earlier for earlier, later in zip(sorted(chosen), sorted(chosen)[1:], strict=False))
    assert gaps[0] >= 5
    assert gaps[-1] <= 40
    assert sorted(samples._spread(range(77))) == list(range(77))


def test_cleaning_takes_from_the_text_of_pages_and_of_filters(tmp_path: Path) -> None:
    page = "<html><head><style>{}</style></head><body><p>Oil rose in New York on Monday.</p></body></html>"
    (tmp_path / "a.html").write_text(page.format("p { color: red }\n" * 400))
    html = sample_of(source("text", clean=CleanConfig(html="always")), str(tmp_path))
    assert html.clean_per_text is not None
    assert html.clean_per_text < 0.05
    (tmp_path / "b.jsonl").write_bytes(json_lines({"text": text} for text in texts(50)))
    plain = sample_of(source("jsonl", "b.jsonl"), str(tmp_path))
    assert plain.clean_per_text is None, "the rate of the format is taken"


def test_a_source_without_a_document_has_the_rates_of_its_format(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("no object\n" * 100)
    (tmp_path / "b.jsonl").write_text(lines().decode())
    config = CorpusConfig(
        name="x", root=str(tmp_path), sources=tuple(source("jsonl", name) for name in ("a.jsonl", "b.jsonl"))
    )
    files = [list_inputs(one, config.root) for one in config.sources]
    rates = load_rates()
    lost, read = measure_inputs(config, files, rates, sample_inputs(config, files))
    assert (lost.is_sampled, read.is_sampled) == (False, True)
    assert lost.text_bytes == pytest.approx(1000 * rates.format("jsonl").text_per_decoded)
    assert lost.documents == pytest.approx(lost.text_bytes / rates.document_bytes("jsonl"))
    assert read.documents == pytest.approx(NUM_DOCUMENTS, rel=0.05)
    assert (lost,) == measure_inputs(config, files, rates)[:1]
