"""The first records of a source, as `finpile check` reads, checks and shows them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from finpile_cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from finpile.clean import Cleaned
    from finpile.config import SourceConfig
    from finpile.documents.ledger import Removal
    from finpile.sources import InputFile
    from finpile.sources.readers.peek import Peek
    from finpile.timestamps import Order

_NUM_EXAMPLES = 3
_TEXT_SHOWN = 100
#: Above this share of the first records, undated or unreadable ones are called out.
_CALLED_OUT = 0.05


def check_records(
    console: Console, source: SourceConfig, files: Sequence[InputFile], num_shown: int, texts: list[str]
) -> dict[str, Any]:
    """Reads, checks and shows the first records of a source; reads all of them if the first do not suffice.

    Adds the cleaned texts to `texts`. Prints `num_shown` of the kept documents, of the unreadable records, and of the
    documents that cleaning removes.

    Raises: InputError for a source without a document, a field that no record has, and an open order of dates.
    """
    from finpile.sources.readers.peek import peek
    from finpile.sources.readers.unmatched import unmatched

    found = peek(source, files)
    order = _decide(console, source, files, found)
    cleaned = _cleaned(source, found, order)
    unreadable = [row for _, row in found.removals]
    removed = [row for row in cleaned.removals if row.start is None]
    cut = [row for row in cleaned.removals if row.removed_text and row.start is not None]
    warnings = [*_date_warnings(cleaned, len(found.documents)), *unmatched(source, found, cleaned.batch)]
    if not cleaned.batch.num_rows:
        warnings.append(f"cleaning removes all of the first {len(found.documents):,} documents")
    documents = _documents(found, cleaned)
    texts += cleaned.batch["text"].to_pylist()
    report = {
        "records": found.num_records,
        "unreadable": len(unreadable),
        "unreadable_by_reason": _by_reason(unreadable),
        "removed": len(removed),
        "removed_by_reason": _by_reason(removed),
        "cut_by_reason": _by_reason(cut),
        "undated": cleaned.num_undated,
        "bad_dates": cleaned.num_unreadable_dates,
        "date_order": order,
        "dates": _dates(documents)[:_NUM_EXAMPLES],
        "warnings": warnings,
    }
    rejected = [*unreadable[:num_shown], *removed[:num_shown]]
    if num_shown:
        report["rejected"] = [_rejected(row) for row in rejected]
    _print(console, source, found, report)
    for document in documents[:num_shown]:
        _show(console, document, [row for row in cut if row.id == document["id"]])
    for row in rejected:
        _show_rejected(console, row)
    return report


def _decide(console: Console, source: SourceConfig, files: Sequence[InputFile], found: Peek) -> Order | None:
    """The order of a source's dates, as the values prove it.

    Raises: InputError for a field that no record has, and for an order that is neither declared nor proven.
    """
    from finpile.errors import InputError
    from finpile.sources.readers.peek import read_whole
    from finpile.sources.readers.record_evidence import FieldEvidence

    try:
        found.evidence.check_fields(source)
        return found.evidence.date_order(source)
    except InputError:
        if found.is_whole:
            raise
    evidence = FieldEvidence()
    console.line(f"  {source.label}: the first records leave a field or the order of dates open; all of them are read")
    with console.progress("reading", sum(file.size_bytes for file in files), "B") as advance:
        for file in files:
            read_whole(source, file, evidence)
            advance(file.size_bytes)
    evidence.check_fields(source)
    found.evidence = evidence
    return evidence.date_order(source)


def _cleaned(source: SourceConfig, found: Peek, order: Order | None) -> Cleaned:
    """The documents as the build would clean and date them."""
    from finpile.clean import clean_batch
    from finpile.documents.document import DocumentBuilder

    builder = DocumentBuilder(source.dataset, source.label)
    for document in found.documents:
        builder.append(document)
    return clean_batch(builder.flush(), source, order)


def _documents(found: Peek, cleaned: Cleaned) -> list[dict[str, Any]]:
    """The kept documents, with their dates as they are written."""
    written = {document.locator: document.raw_timestamp for document in found.documents}
    return [
        {**row, "written": written.get(row["locator"])} for row in cleaned.batch.drop_columns(["digest"]).to_pylist()
    ]


def _dates(documents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "locator": document["locator"],
            "written": document["written"],
            "read": document["timestamp"].isoformat(),
            "origin": document["timestamp_origin"],
        }
        for document in documents
        if document["timestamp"] is not None
    ]


def _date_warnings(cleaned: Cleaned, num_documents: int) -> list[str]:
    counts = {"have no date": cleaned.num_undated, "have a date that cannot be read": cleaned.num_unreadable_dates}
    return [
        f"{count:,} of {num_documents:,} documents {what}"
        for what, count in counts.items()
        if count > _CALLED_OUT * num_documents
    ]


def _by_reason(rows: Iterable[Removal]) -> dict[str, int]:
    return dict(sorted(Counter(row.reason for row in rows).items()))


def _rejected(row: Removal) -> dict[str, str]:
    text = row.removed_text.decode("utf-8", "backslashreplace")
    return {"locator": row.locator, "stage": row.stage, "reason": row.reason, "detail": row.detail, "text": text}


# --- lines on the screen


def _print(console: Console, source: SourceConfig, found: Peek, report: Mapping[str, Any]) -> None:
    unreadable = f", {report['unreadable']:,} of them unreadable" if report["unreadable"] else ""
    examples = ", ".join(map(_example, report["dates"]))
    dates = f"; dates: {examples}" if examples else "; no dates"
    console.line(f"  {source.label} ({source.format}): {found.num_records:,} records{unreadable}{dates}")
    if not isinstance(source.name, str):
        counted = Counter(document.row for document in found.documents)
        console.line(f"    rows: {', '.join(f'{name} {count:,}' for name, count in sorted(counted.items()))}")
    if report["date_order"]:
        console.line(f"    dates of three numbers are {report['date_order']}, as their values prove")
    counts = {
        "unreadable": report["unreadable_by_reason"],
        f"cleaning removes {report['removed']:,} of {len(found.documents):,} documents": report["removed_by_reason"],
        "cleaning cuts": report["cut_by_reason"],
    }
    for what, reasons in counts.items():
        if reasons:
            console.line(f"    {what}: {', '.join(f'{reason} {count:,}' for reason, count in reasons.items())}")
    for warning in report["warnings"]:
        console.line(f"    warning: {warning}", style="yellow")


def _example(date: Mapping[str, Any]) -> str:
    """A date as it is written, and as it is read if the two differ."""
    read = date["read"].removesuffix("+00:00").removesuffix("T00:00:00")
    if date["origin"] != "field" or date["written"] is None:
        return f"{read} ({date['origin']})"
    return read if date["written"] == read else f"{date['written']} = {read}"


def _show(console: Console, document: Mapping[str, Any], cuts: Sequence[Removal]) -> None:
    """A kept document: its locator, its date and title, the beginning of its text, and what is cut from it."""
    moment = document["timestamp"]
    when = "no date" if moment is None else f"{moment.isoformat()} ({document['timestamp_origin']})"
    title = f", {document['title']!r}" if document["title"] else ""
    console.line(f"    {document['locator']}: {when}{title}", style="bold")
    console.line(f"      {_beginning(document['text'])}")
    for cut in cuts:
        console.line(f"      cut: {cut.reason}: {_beginning(cut.removed_text.decode())}", style="red")


def _show_rejected(console: Console, row: Removal) -> None:
    """A record or document that is removed: its locator, the reason, the beginning of its text."""
    what = "unreadable" if row.stage == "ingest" else "removed"
    detail = f" ({row.detail})" if row.detail else ""
    console.line(f"    {row.locator}: {what}: {row.reason}{detail}", style="red")
    if row.removed_text:
        console.line(f"      {_beginning(row.removed_text.decode('utf-8', 'backslashreplace'))}")


def _beginning(text: str) -> str:
    words = " ".join(text[: _TEXT_SHOWN * 2].split())
    return f"{words[:_TEXT_SHOWN]}{'...' if len(text) > _TEXT_SHOWN else ''}"
