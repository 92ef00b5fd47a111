"""The warnings of a build, for the closing screen and for the top of the page.

Each kind of warning is a function over the stages' counts; `build_warnings` calls them in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finpile.report.dates import date_statistics, date_warnings
from finpile.report.summary import source_rows
from finpile.report.vocabulary import short_chunks, shortfall

#: Share of a source's documents above which removals for one reason are a warning.
_CALLED_OUT = 0.5


def build_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """All warnings of a build, from its manifest: `config`, and `stages` with their counts."""
    counts = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    return [
        *_lost_to_one_reason(manifest),
        *_unchecked_sets(manifest, counts),
        *_small_vocabulary(manifest, counts),
        *date_warnings(date_statistics(counts.get("clean", {}).get("sources", ()))),
    ]


def _lost_to_one_reason(manifest: Mapping[str, Any]) -> Iterator[str]:
    for row in source_rows(manifest):
        for reason, count in sorted(row["reasons"].items()):
            if count > _CALLED_OUT * row["read"]:
                yield f"{row['source']} lost {count} of {row['read']} documents to {reason}"


def _unchecked_sets(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    """Warns of evaluation sets with only items that are too short for the search."""
    for one in counts.get("contamination", {}).get("sets", ()):
        if one["items_not_checkable"] == one["items"]:
            least = manifest["config"]["contamination"]["min_words"]
            yield (
                f"no item of evaluation set {one['set']} could be looked for: all its texts have fewer than {least} "
                "words (see `fields` and `min_words`)"
            )


def _small_vocabulary(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    training, chunk_size, chunks = counts.get("tokenizer"), "`tokenizer.chunk_vocab_size`", "`tokenizer.chunks`"
    if training is None:
        return
    warning = shortfall(training, size="`tokenizer.vocab_size`", chunk_settings=f"{chunk_size} or {chunks}")
    if warning is None and manifest["config"]["tokenizer"]["chunks"] != "auto":
        warning = short_chunks(training, size=chunk_size, chunks=chunks)
    yield from [warning] if warning else []
