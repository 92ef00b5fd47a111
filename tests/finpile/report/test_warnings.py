"""Warnings of a build, in the command's summary and in the report."""

from __future__ import annotations

from typing import Any

import pytest

from finpile.report.vocabulary import short_chunks, shortfall
from finpile.report.warnings import build_warnings, later_tokenizer

NEWS = {"dataset": "D", "source": "News"}


def manifest(dropped: int, **stages: dict[str, Any]) -> dict[str, Any]:
    """A build of one source of ten documents, of which `gone` are removed as too short."""
    removed = [{**NEWS, "reason": "too_short", "num_docs": dropped, "num_spans": 0, "num_bytes": 9}]
    counts = {
        "ingest": {"sources": [{**NEWS, "documents": 10, "removed": {}}]},
        "split": {
            "documents": [{**NEWS, "documents": 10 - dropped, "heldout": 0}],
            "ledger": [{"stage": "clean", "removed": removed}],
        },
        **stages,
    }
    config = {"contamination": {"min_words": 8}, "tokenizer": {"chunks": 256}}
    return {"config": config, "stages": [{"stage": name, "counts": row} for name, row in counts.items()]}


@pytest.mark.parametrize(("dropped", "warns"), [(0, False), (5, False), (6, True), (10, True)])
def test_source_that_lost_more_than_half_of_its_documents_to_one_reason(dropped: int, warns: bool) -> None:
    expected = [f"News lost {dropped} of 10 documents to too_short"] if warns else []
    assert build_warnings(manifest(dropped)) == expected


def test_evaluation_set_without_searchable_text() -> None:
    sets = [{"set": "Short", "items": 2, "items_not_checkable": 2}, {"set": "B", "items": 2, "items_not_checkable": 1}]
    (warning,) = build_warnings(manifest(0, contamination={"sets": sets}))
    assert "evaluation set Short " in warning
    assert "fewer than 8 words" in warning


def test_given_tokenizer_of_a_corpus_as_of_a_day() -> None:
    """A trained one is made of the documents of the day."""
    given, trained = (manifest(0, tokenizer=counts) for counts in ({"kind": "huggingface"}, {"mode": "global"}))
    (warning,) = later_tokenizer({**given, "as_of": {"date": "2021-03-31"}})
    assert "may have been trained on text after 2021-03-31" in warning
    assert not [*later_tokenizer(given), *later_tokenizer({**trained, "as_of": {"date": "2021-03-31"}})]


@pytest.mark.parametrize(("found", "warns"), [(400, False), (399, True)])
def test_vocabulary_that_the_text_cannot_feed(found: int, warns: bool) -> None:
    counts = {"vocab_size": found, "vocab_size_asked_for": 400, "mode": "split-merge"}
    warnings = build_warnings(manifest(0, tokenizer=counts))
    assert bool(warnings) == warns
    assert all("399 of the 400 entries requested" in warning for warning in warnings)


@pytest.mark.parametrize(("chunks", "short", "warns"), [(256, 0, False), (256, 5, True), ("auto", 5, False)])
def test_chunks_that_the_text_cannot_feed(chunks: Any, short: int, warns: bool) -> None:
    counts = {"vocab_size": 400, "vocab_size_asked_for": 400, "mode": "split-merge", "chunk_vocab_size": 300}
    models = {"chunk_models": 512, "short_chunks": short, "mean_chunk_pieces": 290}
    build = manifest(0, tokenizer={**counts, **models})
    build["config"]["tokenizer"]["chunks"] = chunks
    warnings = build_warnings(build)
    assert bool(warnings) == warns
    says = "5 of 512 models of chunks have less than a quarter of the 300 pieces requested, and all have 290 on average"
    assert all(warning.startswith(says) for warning in warnings)


def with_settings(counts: dict[str, Any], **source: Any) -> dict[str, Any]:
    """A build with settings of its one source."""
    made = manifest(0, **counts)
    made["config"]["sources"] = [{"dataset": "D", "name": "News", "clean": {"filters": []}, **source}]
    return made


def test_max_removed_of_a_source_is_not_that_of_another_entry_of_its_dataset() -> None:
    made = with_settings(cleaned(("too_short", 6, 0)), max_removed=0.9)
    by_field = {"name": {"field": "meta.set", "allow": ["News"]}, "dataset": "D", "max_removed": 0.5}
    assert not [warning for warning in build_warnings(made) if "lost" in warning]
    made["config"]["sources"].append({**by_field, "name": {"field": "meta.set", "allow": ["Web"]}})
    assert not [warning for warning in build_warnings(made) if "lost" in warning]
    made["config"]["sources"].append(by_field)
    assert [warning for warning in build_warnings(made) if "lost" in warning]


def cleaned(*removed: tuple[str, int, int], stage: str = "clean") -> dict[str, Any]:
    """Ten documents of 100 bytes of text; of each reason the number of documents, and of bytes in spans."""
    rows = [
        {**NEWS, "reason": reason, "num_docs": num_docs, "num_spans": int(num_bytes > 0), "num_bytes": num_bytes}
        for reason, num_docs, num_bytes in removed
    ]
    dropped, cut = sum(row["num_docs"] for row in rows), sum(row["num_bytes"] for row in rows)
    by_clean = cut if stage == "clean" else 0
    text = {"text_bytes": 100 - by_clean, "removed_bytes": by_clean}
    return {
        "clean": {"sources": [{**NEWS, "documents": 10 - dropped, "removed": {}, **text}]},
        "split": {
            "documents": [{**NEWS, "documents": 10 - dropped, "heldout": 0}],
            "ledger": [{"stage": stage, "removed": rows}],
        },
    }


@pytest.mark.parametrize(("share", "warns"), [(0.2, True), (0.3, False), (0.4, False)])
def test_max_removed_of_a_source_is_the_bound(share: float, warns: bool) -> None:
    made = with_settings(cleaned(("language_other", 3, 0)), max_removed=share)
    expected = ["News lost 3 of 10 documents to language_other"] if warns else []
    assert [warning for warning in build_warnings(made) if "lost" in warning] == expected


@pytest.mark.parametrize(("cut", "warns"), [(49, False), (50, False), (51, True)])
@pytest.mark.parametrize(
    ("stage", "reason"), [("clean", "c4_short_line"), ("substring", "repeated_text"), ("templates", "template")]
)
def test_text_cut_out_of_documents_counts_in_bytes(stage: str, reason: str, cut: int, warns: bool) -> None:
    made = with_settings(cleaned((reason, 0, cut), stage=stage))
    expected = [f"News lost {cut} of 100 bytes of text to {reason}, in parts of documents"] if warns else []
    assert [warning for warning in build_warnings(made) if "lost" in warning] == expected


def test_filter_whose_reasons_together_remove_more_is_named() -> None:
    made = with_settings(
        cleaned(("gopher_hashes", 3, 0), ("gopher_stop_words", 3, 0)), clean={"filters": [{"gopher_quality": {}}]}
    )
    lost = [warning for warning in build_warnings(made) if "lost" in warning]
    assert lost == ["News lost 6 of 10 documents to filter gopher_quality"]


def test_a_small_vocabulary_of_a_sample_names_the_sample() -> None:
    training = {"vocab_size": 900, "vocab_size_asked_for": 1000, "mode": "global"}
    assert "the text gives no more: add text or lower SIZE to 900" in str(
        shortfall(training, size="SIZE", chunk_settings="")
    )
    sampled = shortfall({**training, "share_of_text": 0.5}, size="SIZE", chunk_settings="")
    assert "the sample gives no more: raise the sample or lower SIZE to 900" in str(sampled)
    fewest = {**training, "vocab_size": 257, "vocab_size_asked_for": 300}
    assert str(shortfall(fewest, size="SIZE", chunk_settings="")).endswith("the text gives no more: add text")
    chunks = {"short_chunks": 1, "chunk_models": 2, "chunk_vocab_size": 9, "mean_chunk_pieces": 2, "share_of_text": 0.5}
    assert "Raise the sample, or lower CHUNKS or SIZE" in str(short_chunks(chunks, size="SIZE", chunks="CHUNKS"))
