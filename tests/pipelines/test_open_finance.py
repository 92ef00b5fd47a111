"""The build of pipelines/configs/open-finance.yaml against counts from the archives themselves.

The test takes minutes. FINPILE_OPEN_FINANCE=OUT uses an existing build of that file.
"""

from __future__ import annotations

import collections
import json
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import zstandard
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_tokenizer import UnigramTokenizer
from tokenizers import Tokenizer

from finpile.config import load_config
from finpile.tokens import TokenStore
from finpile.verify import verify
from tests.support.real_data import DATA, needs

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "pipelines" / "configs" / "open-finance.yaml"

pytestmark = [pytest.mark.slow, needs("fin_news")]

#: Of the archives' manifest.
REUTERS_STORIES, REUTERS_WITH_BODY, REUTERS_DUPLICATES = 21_578, 19_043, 281


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if given := os.environ.get("FINPILE_OPEN_FINANCE"):
        return Path(given)
    config = load_config(CONFIG)
    small = replace(config.tokenizer, vocab_size=16_384, chunk_vocab_size=16_384)
    folder = tmp_path_factory.mktemp("open-finance") / "out"
    build(replace(config, root=str(DATA), tokenizer=small), str(folder), Engine(num_workers=2))
    return folder


@pytest.fixture(scope="module")
def documents(out: Path) -> list[dict[str, Any]]:
    columns = ["source", "locator", "timestamp", "timestamp_origin", "meta"]
    rows: list[dict[str, Any]] = (
        ds.dataset(out / "documents", partitioning="hive").to_table(columns=columns).to_pylist()
    )
    return rows


def members(archive: str) -> Iterator[tuple[str, bytes]]:
    with (DATA / archive).open("rb") as stream:
        raw: Any = zstandard.ZstdDecompressor().stream_reader(stream) if archive.endswith(".zst") else stream
        mode: Any = "r|" if archive.endswith(".zst") else "r|gz"
        with tarfile.open(fileobj=raw, mode=mode) as tar:
            for member in tar:
                if member.isfile():
                    yield member.name, tar.extractfile(member).read()  # type: ignore[union-attr]


def removed(out: Path, source: str) -> collections.Counter[tuple[str, str]]:
    table = ds.dataset(out / "removed", partitioning="hive").to_table(columns=["source", "stage", "reason", "start"])
    rows = table.to_pylist()
    return collections.Counter((r["stage"], r["reason"]) for r in rows if r["source"] == source and r["start"] is None)


def test_every_check_passes(out: Path) -> None:
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_no_reuters_story_is_lost(out: Path, documents: list[dict[str, Any]]) -> None:
    dropped = removed(out, "News")
    assert dropped["ingest", "empty_text"] == REUTERS_STORIES - REUTERS_WITH_BODY
    assert dropped["exact", "exact_duplicate"] == REUTERS_DUPLICATES
    kept = sum(row["source"] == "News" for row in documents)
    assert kept + dropped.total() == REUTERS_STORIES


def test_reuters_years_agree_with_the_story_headers(documents: list[dict[str, Any]]) -> None:
    dates: dict[str, str] = {}
    for _, data in members("fin_news/reuters21578.tar.gz"):
        for header, date in re.findall(rb"<REUTERS([^>]*)>\s*<DATE>([^<]*)</DATE>", data):
            number = re.search(rb'NEWID="(\d+)"', header)
            dates[number[1].decode()] = date.decode().strip()  # type: ignore[index]
    assert len(dates) == REUTERS_STORIES
    for row in documents:
        if row["source"] == "News":
            written = dates[json.loads(row["meta"])["newid"]]
            assert re.search(row["timestamp"].strftime("%-d-%b-%Y"), written, re.IGNORECASE), written


@pytest.mark.parametrize(
    ("source", "pattern"), [("Bloomberg", r"(\d{4})\d{4}\d?\w?\.txt$"), ("Ubuntu IRC", r"(\d{4})-\d\d-\d\d")]
)
def test_years_agree_with_the_dates_in_the_file_names(
    source: str, pattern: str, documents: list[dict[str, Any]]
) -> None:
    rows = [row for row in documents if row["source"] == source]
    wrong = []
    for row in rows:
        found = re.search(pattern, row["locator"].rsplit("/", 1)[1])
        if found is None or row["timestamp"] is None or str(row["timestamp"].year) != found[1]:
            wrong.append(row["locator"])
    # The name of one speech contains an invalid day: the ledger records it, and the document is kept without a date.
    assert len(wrong) == (1 if source == "Bloomberg" else 0), wrong


def test_filings_are_dated_by_their_headers(documents: list[dict[str, Any]]) -> None:
    """By the acceptance in New York, or a later filing date; by the filing day; confidential ones by their last day."""
    moments = {}
    for name, data in members("fin_filings/edgar_full_submission_sgml.tar.zst"):
        days = re.findall(rb"(?:FILED AS OF DATE:|<FILING-DATE>)\s*(\d{8})", data[:10_000])
        accepted = re.search(rb"<ACCEPTANCE-DATETIME>\s*(\d{14})", data)
        if b"<PRIVATE-TO-PUBLIC>" in data:
            days += re.findall(rb"^<SEC-DOCUMENT>\S+ : (\d{8})|DATE AS OF CHANGE:\s*(\d{8})", data[:10_000])
            days, accepted = [b"".join(day) if isinstance(day, tuple) else day for day in days], None
        if accepted:
            written = [accepted[1], *(day + b"060000" for day in days)]  # the morning of a later filing date
            local = max(datetime.strptime(moment.decode(), "%Y%m%d%H%M%S") for moment in written)
            moments[name] = local.replace(tzinfo=ZoneInfo("America/New_York")).astimezone(UTC)
        else:
            moments[name] = datetime.strptime(max(days).decode(), "%Y%m%d").replace(tzinfo=UTC) if days else None
    assert len({moment.time() for moment in moments.values() if moment}) == 6
    rows = [row for row in documents if row["source"] == "Filings"]
    assert rows
    for row in rows:
        assert row["timestamp"] == moments[row["locator"].split("!", 1)[1].split("#")[0]], row["locator"]


def test_ids_equal_those_of_hugging_face_on_every_document(out: Path) -> None:
    ours, theirs = UnigramTokenizer.load(out / "tokenizer"), Tokenizer.from_file(str(out / "tokenizer/tokenizer.json"))
    theirs.encode_special_tokens = True
    for path in sorted((out / "documents").rglob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=512, columns=["text"]):
            texts = batch["text"].to_pylist()
            expected = [encoding.ids for encoding in theirs.encode_batch_fast(texts, add_special_tokens=False)]
            assert ours.encode_array(batch["text"]).to_pylist() == expected


def test_the_token_shards_hold_every_training_token(out: Path) -> None:
    counts = next(
        stage["counts"]
        for stage in json.loads((out / "manifest.json").read_text())["stages"]
        if stage["stage"] == "tokens"
    )
    groups = [group for part in counts["statistics"] for group in part["groups"] if group["split"] == "train"]
    stream = sum(group["num_tokens"] + group["num_docs"] for group in groups)
    store = TokenStore.open(str(out / "tokens" / "split=train"))
    assert store.num_tokens + counts["tokens_left_over"] == stream
    assert 0 <= counts["tokens_left_over"] < store.sequence_length


def test_the_tiny_model_learns_on_the_real_shards(out: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from finpile_trainer.train import TrainConfig, train

    config = TrainConfig(
        tokens=str(out / "tokens/split=train"),
        out=str(tmp_path),
        steps=12,
        sequence_length=128,
        batch_size=2,
        warmup_steps=2,
    )
    losses: list[float] = []
    train(config, on_step=lambda record: losses.append(record.loss))
    assert losses[-1] < losses[0] - 0.5
