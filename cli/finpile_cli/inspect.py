"""`finpile verify`, `finpile show` and `finpile report`: commands on a finished build."""

from __future__ import annotations

import codecs
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from finpile.errors import ConfigError, InputError, IntegrityError, command_line
from finpile.output.layout import Layout
from finpile_cli.compare import count_texts, open_named, quality_option, total_of_option
from finpile_cli.console import Console, json_option
from finpile_cli.engine import heavy_imports
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from finpile.history.document import DocumentHistory
    from finpile.report.table import Table
    from finpile.report.table3 import Comparison, TotalOf
    from finpile.verify import Check

_EXCERPT_CHARACTERS = 1200
_CUT_CHARACTERS = 300
_MOST_SEGMENTS = 40
_MOST_DAMAGES = 3


@click.command()
@click.argument("out", type=PathOrUrl())
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=PathOrUrl(),
    help="A training run: compare its steps in certificates of removals. May be repeated.",
)
@json_option
def verify_command(out: str, runs: tuple[str, ...], as_json: bool) -> None:
    """Check a build: nothing lost, nothing altered, every removal accounted for.

    Re-reads all output and checks that kept text plus ledger reconstructs the input. Exits 1 if a check fails.
    """
    with heavy_imports(is_lean=True):
        from finpile.verify import verify

    console = Console(as_json)
    with console.progress("reading", unit="B") as advance:
        checks = [*verify(out, advance), *(_steps_of_certificates(out, run) for run in runs)]
    for check in checks:
        console.line(
            f"{'ok    ' if check.ok else 'FAILED'}  {check.name}: {check.detail}", style=None if check.ok else "red"
        )
    failed = sum(not check.ok for check in checks)
    console.line(
        f"{out}: all {len(checks)} checks ok" if not failed else f"{out}: {failed} of {len(checks)} checks failed"
    )
    console.result(
        {"out": out, "checks": [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks]}
    )
    if failed:
        sys.exit(1)


def _steps_of_certificates(out: str, run: str) -> Check:
    """Whether the certificates of removals name the steps of a run that saw the documents."""
    from finpile import storage
    from finpile.report.compliance import STATED, load_given
    from finpile.verify import Check
    from finpile_cli.language_models import name_of_run, steps_of_removals

    layout, title = Layout(out), f"steps of certificates = those of {run}"
    stated = storage.join(layout.root, STATED)
    if not storage.is_file(stated):
        again = command_line("report", out, "--compliance", "--run", run)
        return Check(title, False, f"there are no certificates: `{again}` writes them")
    runs = load_given(stated).runs
    named = {one.snapshot: one.steps for one in runs if one.run == name_of_run(run)}
    seen = {one.snapshot: one.steps for one in steps_of_removals(layout, run)}
    wrong = [
        f"removal {number}: steps {list(named.get(number, ()))} are named, {list(seen.get(number, ()))} saw them"
        for number in sorted(named.keys() | seen.keys())
        if named.get(number) != seen.get(number)
    ]
    return Check.of(title, wrong, f"{len(seen)} removals")


@click.command()
@click.argument("out", type=PathOrUrl())
@click.argument("name", metavar="DOCUMENT")
@click.option("--full", is_flag=True, help="Print the whole text.")
@click.option("--tables", is_flag=True, help="Print the tables of its page or filing as grids, from the input file.")
@json_option
def show_command(out: str, name: str, full: bool, tables: bool, as_json: bool) -> None:
    """Print the history of a document: its origin, its text, and its removals with their reasons.

    DOCUMENT is an id or its first digits (4 or more), a locator, or the name of a file that is one document. Exits 1
    if files that it reads are missing or altered.
    """
    with heavy_imports(is_lean=True):
        from finpile.history.document import document_history

    console = Console(as_json)
    history = document_history(out, name)
    grids = _tables(out, history) if tables else []
    result = {name: getattr(history, name) for name in ("id", "document", "removals", "copies", "facts")}
    result |= {"tables": grids} if tables else {}
    console.result(_plain({**result, "warnings": history.warnings}))
    if not as_json:
        if tables:
            console.line("\n\n".join([history.id, *grids]))
        else:
            _print_history(console, history, full)
        for warning in history.warnings:
            click.echo(f"finpile: warning: {warning}", err=True)
    if history.warnings:
        sys.exit(1)


@click.command()
@click.argument("out", type=PathOrUrl())
@click.option(
    "--compare",
    "tokenizers",
    multiple=True,
    metavar="TOKENIZER",
    help="Another tokenizer beside that of the build, for Table 3. May be repeated.",
)
@total_of_option
@quality_option
@click.option("--compliance", is_flag=True, help="Write documents for authorities instead, below OUT/compliance.")
@click.option(
    "--stated", type=PathOrUrl(), metavar="FILE", help="With --compliance: a YAML file of what no build knows."
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=PathOrUrl(),
    help="A training run: with --compliance, its steps that saw documents which were taken down. May be repeated.",
)
@json_option
def report_command(
    out: str,
    tokenizers: tuple[str, ...],
    total_of: TotalOf,
    quality: bool,
    compliance: bool,
    stated: str | None,
    runs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Write the reports of a build again: Tables 1 and 2 in Markdown, CSV, TeX, JSON, and the page.

    With --compare, Table 3 too: the build's training documents counted with each TOKENIZER (as for `finpile tokenizer
    compare`) and with the build's own. Writes nothing if files of the build are missing or of another size.

    Of a corpus with snapshots: the table of its growth, in OUT/snapshots. Its other tables are those of its build.

    With --compliance: the summary of training content after the template of the European Commission, licences, a
    certificate of each removal, an in-toto statement and a CycloneDX bill of materials, of a build or its current
    snapshot. `finpile verify` makes them again and compares.
    """
    from finpile.output.manifest import find_damage, load_manifest, remedy
    from finpile.output.snapshots import numbers

    console = Console(as_json)
    layout = Layout(out)
    if compliance:
        if tokenizers or quality:
            raise ConfigError(
                "--compare and --quality are of the reports, and --compliance writes papers: leave one out"
            )
        _write_papers(console, layout, stated, runs)
        return
    if stated is not None or runs:
        raise ConfigError("--stated and --run are of the papers: add --compliance")
    if numbers(layout):
        if tokenizers or quality:
            compare = command_line("tokenizer", "compare", *(tokenizers or ("TOKENIZER",)), "--on", out)
            raise ConfigError(
                f"{out} has snapshots, and its tables are those of its build: `{compare}` counts the documents of the "
                "current one"
            )
        _report_growth(console, layout)
        return
    manifest = load_manifest(layout, through="reports")
    if damage := find_damage(layout, manifest, ("documents", "facts", "removed", "tokenizer", "tokens")):
        raise IntegrityError(f"{out}: {'; '.join(damage[:_MOST_DAMAGES])}: no report was written; {remedy(layout)}")
    from finpile.report.from_manifest import rewrite

    if tokenizers or quality:
        comparison, tables = _compare(console, out, tokenizers, total_of, quality)
        files = rewrite(layout, manifest, comparison if tokenizers else None, tables)
    else:
        files = rewrite(layout, manifest)
    console.lines(files)
    console.result({"out": out, "files": files})


def _write_papers(console: Console, layout: Layout, stated: str | None, runs: tuple[str, ...]) -> None:
    from finpile.output.snapshots import load_snapshot
    from finpile.report.compliance import unstated_kinds, write_papers
    from finpile.report.compliance.stated import Statement, load_statement
    from finpile_cli.language_models import steps_of_removals

    manifest = load_snapshot(layout)
    statement = Statement() if stated is None else load_statement(stated)
    steps = [found for run in runs for found in steps_of_removals(layout, run)]
    with console.progress("reading", unit="B") as advance:
        files = write_papers(layout, manifest, statement, steps, advance)
    console.lines(files)
    if unstated := unstated_kinds(manifest):
        console.line(
            f"the kind of {len(unstated)} sources is not stated: {', '.join(unstated[:_MOST_DAMAGES])}"
            f"{', ...' if len(unstated) > _MOST_DAMAGES else ''}; the key `kind` of a source in the corpus file says it"
        )
    console.result({"out": layout.root, "files": files, "without_kind": unstated})


def _report_growth(console: Console, layout: Layout) -> None:
    from finpile.report.growth import growth_of, growth_table, write_growth
    from finpile.report.render import to_markdown

    rows = growth_of(layout)
    console.line(to_markdown(growth_table(rows)))
    files = write_growth(layout, rows)
    console.lines(files)
    console.result({"out": layout.root, "files": files, "growth": [asdict(row) for row in rows]})


def _compare(
    console: Console, out: str, others: tuple[str, ...], total_of: TotalOf, measures_quality: bool
) -> tuple[Comparison, list[Table]]:
    from finpile.output.snapshots import published_files
    from finpile.report.documents import iter_texts
    from finpile.tokens.tokenizer_files import check_tokenizer

    layout = Layout(out)
    check_tokenizer(layout)
    with console.progress("checking documents", unit="B") as advance:
        for file in published_files(layout).below("documents"):
            file.check()
            advance(file.record.size_bytes)
    opened = [open_named(argument) for argument in (*others, f"ours={layout.tokenizer}")]
    return count_texts(console, opened, iter_texts([out]), measures_quality, total_of=total_of)


def _tables(out: str, history: DocumentHistory) -> list[str]:
    """Raises: InputError for a document that was removed, or whose page cannot be read."""
    from finpile.history.tables import tables_of

    if history.document is None:
        raise InputError(f"{history.id} was removed: only kept documents have tables")
    return tables_of(out, history.document)


def _print_history(console: Console, history: DocumentHistory, full: bool) -> None:
    console.line(history.id, style="bold")
    if history.document is not None:
        _print_document(console, history.document)
        if history.facts:
            placed = sum(fact["start"] is not None for fact in history.facts)
            console.line(
                f"  {'facts':<10} {len(history.facts):,}, {placed:,} of them shown in the text (--json has all)"
            )
        _print_text(console, history, full)
    for removal in history.removals:
        whole = removal["start"] is None
        where = "the whole document" if whole else f"bytes {removal['start']:,} to {removal['end']:,}"
        if not whole and removal["start"] == removal["end"]:
            where = "no text"
        detail = f" ({removal['detail']})" if removal["detail"] else ""
        console.line(f"removed by {removal['stage']}: {where}: {removal['reason']}{detail}", style="red")
        if removal["duplicate_of"]:
            at = "" if removal["duplicate_offset"] is None else f", from byte {removal['duplicate_offset']:,} on"
            console.line(f"  duplicate of: {removal['duplicate_of']}{at}", style="green")
        if history.document is None:
            console.line(f"  {removal['source']} ({removal['dataset']}), {removal['locator']}")
        if whole or history.document is None:
            console.line(
                _excerpt(removal["removed_text"].decode("utf-8", "replace"), _CUT_CHARACTERS, full), style="dim strike"
            )
    for copy in history.copies:
        console.line(
            f"removed duplicate: {copy['id']}: {copy['reason']}, {copy['locator']} ({copy['detail']})", style="green"
        )


def _print_document(console: Console, document: dict[str, Any]) -> None:
    console.line(f"{document['dataset']} / {document['source']}, {document['split']}", style="cyan")
    for name in ("title", "url", "locator", "license", "meta"):
        if document[name]:
            console.line(f"  {name:<10} {document[name]}")
    console.line(f"  {'published':<10} {document['timestamp'] or 'unknown'} (from: {document['timestamp_origin']})")
    console.line(f"  {'copies':<10} {document['num_copies']}")


def _print_text(console: Console, history: DocumentHistory, full: bool) -> None:
    """Prints the kept text with removed spans in place, in red and `[-brackets-]`."""
    from finpile.history.document import segments

    found = segments(history.document["text"].encode(), history.removals) if history.document else []
    size = _EXCERPT_CHARACTERS if len(found) == 1 else _CUT_CHARACTERS
    shown: list[tuple[str, str | None]] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # spans may meet within a character
    for number, (text, removal) in enumerate(found if full else found[:_MOST_SEGMENTS], 1):
        part = _excerpt(decoder.decode(text, number == len(found)), size, full)
        shown.append((part, None) if removal is None else (f"[-{part}-]", "red strike"))
    if len(shown) < len(found):
        shown.append((f" [... {len(found) - len(shown):,} more parts; --full shows them]", None))
    console.pieces(shown)


def _excerpt(text: str, size: int, full: bool) -> str:
    if full or len(text) <= size:
        return text
    return f"{text[:size]} [... {len(text) - size:,} more characters; --full shows them]"


def _plain(value: Any) -> Any:
    """The value with bytes as text, in which invalid UTF-8 is escaped."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value
