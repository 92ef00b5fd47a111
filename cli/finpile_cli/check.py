"""`finpile check`: the corpus file, its inputs, and the first records of each source."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from finpile_cli.build import load
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.paths import PathOrUrl, root_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finpile.config import CorpusConfig, SourceConfig
    from finpile.sources import InputFile
    from finpile.sources.peek import Peek
    from finpile.timestamps import Order

_NUM_EXAMPLES = 3
_TEXT_SHOWN = 100
#: Above this share of the first records, undated or unreadable ones are called out.
_CALLED_OUT = 0.05


@click.command()
@click.argument("config", type=PathOrUrl())
@root_option
@click.option(
    "--peek", type=click.IntRange(0, 100), default=0, metavar="N", help="Print the first N records, up to 100."
)
@json_option
def check_command(config: str, root: str | None, peek: int, as_json: bool) -> None:
    """Validate a corpus file, find every input, and read the first records.

    Counts the files and bytes of each source, as stored (compressed). Reads the first records of each source: a
    wrong format, a missing field and dates of unknown order are errors. Writes nothing.
    """
    console = Console(as_json)
    parsed = load(config, root)
    from finpile.sources.finding import list_inputs

    inputs = [list_inputs(source, parsed.root) for source in parsed.sources]
    rows: list[dict[str, Any]] = [
        {
            "dataset": source.dataset,
            "source": source.label,
            "format": source.format,
            "files": len(files),
            "bytes": sum(file.size_bytes for file in files),
        }
        for source, files in zip(parsed.sources, inputs, strict=True)
    ]
    shown = [[*list(row.values())[:4], quantity(row["bytes"], "B")] for row in rows]
    console.table(parsed.name, ["dataset", "source", "format", "files", "size"], shown)
    sets = _checked_sets(parsed)
    if sets:
        shown = [[row["set"], row["files"], quantity(row["bytes"], "B")] for row in sets]
        console.table("Evaluation sets", ["evaluation set", "files", "size"], shown)
    console.line("First records", style="bold")
    for row, source, files in zip(rows, parsed.sources, inputs, strict=True):
        row["first_records"] = _check_records(console, source, files, peek)
    console.line(f"{config} is valid; build it with: finpile build {config} -o OUT")
    console.result({"name": parsed.name, "sources": rows, **({"evaluation_sets": sets} if sets else {})})


def _checked_sets(config: CorpusConfig) -> list[dict[str, Any]]:
    """Files and bytes of each evaluation set, as stored."""
    if config.contamination is None:
        return []
    from finpile.eval_sets import set_files

    rows = []
    for one in config.contamination.sets:
        files = set_files(one, config.root)
        rows.append({"set": one.name, "files": len(files), "bytes": sum(file.size_bytes for file in files)})
    return rows


def _check_records(
    console: Console, source: SourceConfig, files: Sequence[InputFile], num_shown: int
) -> dict[str, Any]:
    """Reads, checks and shows the first records of a source; reads all of them if the first do not suffice."""
    from finpile.sources.peek import peek

    found = peek(source, files)
    order = _decide(console, source, files, found)
    documents, report = _dated(source, found, order)
    unreadable = f", {len(found.removals):,} of them unreadable" if found.removals else ""
    examples = ", ".join(_example(date) for date in report["dates"])
    dates = f"; dates: {examples}" if examples else "; no dates"
    console.line(f"  {source.label} ({source.format}): {found.num_records:,} records{unreadable}{dates}")
    if not isinstance(source.name, str):
        counted = Counter(document.row for document in found.documents)
        console.line(f"    rows: {', '.join(f'{name} {count:,}' for name, count in sorted(counted.items()))}")
    if report["date_order"]:
        console.line(f"    dates of three numbers are {report['date_order']}, as their values prove")
    for what, count in (("have no date", report["undated"]), ("have a date that cannot be read", report["bad_dates"])):
        if count > _CALLED_OUT * len(found.documents):
            console.line(f"    warning: {count:,} of {len(found.documents):,} documents {what}", style="yellow")
    for document in documents[:num_shown]:
        _show(console, document)
    return report


def _decide(console: Console, source: SourceConfig, files: Sequence[InputFile], found: Peek) -> Order | None:
    """The order of a source's dates, as the values prove it.

    Raises: InputError for a field that no record has, and for an order that is neither declared nor proven.
    """
    from finpile.errors import InputError
    from finpile.sources.evidence import FieldEvidence
    from finpile.sources.peek import read_whole

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
    return evidence.date_order(source)


def _dated(source: SourceConfig, found: Peek, order: Order | None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The documents as the build would date them, and the report on them."""
    from finpile.clean import clean_batch
    from finpile.document import DocumentBuilder

    builder = DocumentBuilder(source.dataset, source.label)
    for document in found.documents:
        builder.append(document)
    cleaned = clean_batch(builder.flush(), source, order)
    written = {document.locator: document.raw_timestamp for document in found.documents}
    documents = [{**row, "written": written[row["locator"]]} for row in cleaned.batch.to_pylist()]
    dates = [
        {
            "locator": document["locator"],
            "written": document["written"],
            "read": document["timestamp"].isoformat(),
            "origin": document["timestamp_origin"],
        }
        for document in documents
        if document["timestamp"] is not None
    ]
    return documents, {
        "records": found.num_records,
        "unreadable": len(found.removals),
        "undated": cleaned.num_undated,
        "bad_dates": cleaned.num_unreadable_dates,
        "date_order": order,
        "dates": dates[:_NUM_EXAMPLES],
    }


def _example(date: dict[str, Any]) -> str:
    """A date as it is written, and as it is read if the two differ."""
    read = date["read"].removesuffix("+00:00").removesuffix("T00:00:00")
    if date["origin"] != "field" or date["written"] is None:
        return f"{read} ({date['origin']})"
    return read if date["written"] == read else f"{date['written']} = {read}"


def _show(console: Console, document: dict[str, Any]) -> None:
    """One record: its locator, its date and title, the beginning of its text."""
    moment = document["timestamp"]
    when = "no date" if moment is None else f"{moment.isoformat()} ({document['timestamp_origin']})"
    title = f", {document['title']!r}" if document["title"] else ""
    text = " ".join(document["text"][: _TEXT_SHOWN * 2].split())
    console.line(f"    {document['locator']}: {when}{title}", style="bold")
    console.line(f"      {text[:_TEXT_SHOWN]}{'...' if len(document['text']) > _TEXT_SHOWN else ''}")
