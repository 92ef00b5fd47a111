"""The warnings of a build, for the closing screen and for the top of the page.

Each kind of warning is a function over the stages' counts; `build_warnings` calls them in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finpile.config.rows import entries_of
from finpile.documents.document import Label, label_of
from finpile.output.manifest import CERTIFICATE, counts_by_stage
from finpile.plugins.filter import FILTERS
from finpile.report.dates import date_statistics, date_warnings
from finpile.report.summary import source_rows
from finpile.report.vocabulary import short_chunks, shortfall

#: `max_removed` of builds that were made before it could be set.
_CALLED_OUT = 0.5


def build_warnings(manifest: Mapping[str, Any]) -> list[str]:
    """All warnings of a build, from its manifest: `config`, and `stages` with their counts."""
    counts = counts_by_stage(manifest)
    return [
        *_lost_to_one_reason(manifest, counts),
        *_unchecked_sets(manifest, counts),
        *_small_vocabulary(manifest, counts),
        *_lossy_tokenizer(manifest, counts),
        *date_warnings(date_statistics(counts.get("clean", {}).get("sources", ()))),
    ]


def _lost_to_one_reason(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    """Warns of reasons, and of filters with several reasons, that remove more of a source than its `max_removed`."""
    texts = {
        label_of(row): row["text_bytes"] + row["removed_bytes"] for row in counts.get("clean", {}).get("sources", ())
    }
    cut, entries = _cut_bytes(counts), entries_of(manifest.get("config", {}))
    for row in source_rows(manifest):
        key = label_of(row)
        most = min((entry.get("max_removed", _CALLED_OUT) for entry in entries.get(key, ())), default=_CALLED_OUT)
        rules = [rule for entry in entries.get(key, ()) for rule in entry.get("clean", {}).get("filters", ())]
        filters = dict.fromkeys(rule if isinstance(rule, str) else next(iter(rule)) for rule in rules)
        groups: list[tuple[str, tuple[str, ...]]] = [
            (reason, (reason,)) for reason in sorted({*row["reasons"], *cut.get(key, {})})
        ]
        known = [(name, tuple(FILTERS.get(name).reasons)) for name in filters if name in FILTERS]
        groups += [(f"filter {name}", reasons) for name, reasons in known if len(reasons) > 1]
        named: set[str] = set()
        for name, reasons in groups:
            num_docs = sum(row["reasons"].get(reason, 0) for reason in reasons)
            num_bytes = sum(cut.get(key, {}).get(reason, 0) for reason in reasons)
            if named.intersection(reasons):
                continue  # one of the filter's rules is called out
            if num_docs > most * row["read"]:
                named.update(reasons)
                yield f"{row['source']} lost {num_docs} of {row['read']} documents to {name}"
            if num_bytes > most * texts.get(key, 0):
                named.update(reasons)
                yield f"{row['source']} lost {num_bytes} of {texts[key]} bytes of text to {name}, in parts of documents"


def _cut_bytes(counts: Mapping[str, Any]) -> dict[Label, dict[str, int]]:
    """Bytes that stages cut out of documents, by source and reason.

    A reason removes either documents or parts of them.
    """
    found: dict[Label, dict[str, int]] = {}
    for part in counts.get("split", {}).get("ledger", ()):
        for removed in part["removed"]:
            if removed.get("num_spans", 0):
                by_reason = found.setdefault(label_of(removed), {})
                by_reason[removed["reason"]] = by_reason.get(removed["reason"], 0) + removed["num_bytes"]
    return found


def _unchecked_sets(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    """Warns of evaluation sets with only items that are too short for the search."""
    for one in counts.get("contamination", {}).get("sets", ()):
        if one["items_not_checkable"] == one["items"]:
            least = manifest["config"]["contamination"]["min_words"]
            yield (
                f"no item of evaluation set {one['set']} could be looked for: all its texts have fewer than {least} "
                "words (see `fields` and `min_words`)"
            )


def _lossy_tokenizer(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    lost = counts.get("tokens", {}).get("losses")
    if lost is None:
        return
    num_docs = sum(part["documents"] for part in counts["split"]["documents"])
    yield losses_line(lost["num_unknown"], lost["num_altered"], num_docs)


def later_tokenizer(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Warns of a given tokenizer in a corpus as of a day: nothing says what it was trained on.

    For the closing screen alone: the page is made before the manifest has the day.
    """
    if CERTIFICATE in manifest and "kind" in counts_by_stage(manifest).get("tokenizer", {}):
        day = manifest[CERTIFICATE]["date"]
        yield f"the tokenizer is a given one (`tokenizer.use`): it may have been trained on text after {day}"


def losses_line(num_unknown: int, num_altered: int, num_docs: int) -> str:
    """What a tokenizer that is not lossless does to documents."""
    return (
        f"the tokenizer is not lossless: {num_altered:,} of {num_docs:,} documents differ after encoding and decoding, "
        f"and {num_unknown:,} tokens are unknown text: a model cannot learn what is lost"
    )


def _small_vocabulary(manifest: Mapping[str, Any], counts: Mapping[str, Any]) -> Iterator[str]:
    training, chunk_size, chunks = counts.get("tokenizer"), "`tokenizer.chunk_vocab_size`", "`tokenizer.chunks`"
    if training is None or "kind" in training:
        return
    warning = shortfall(training, size="`tokenizer.vocab_size`", chunk_settings=f"{chunk_size} or {chunks}")
    if warning is None and manifest["config"]["tokenizer"]["chunks"] != "auto":
        warning = short_chunks(training, size=chunk_size, chunks=chunks)
    yield from [warning] if warning else []
