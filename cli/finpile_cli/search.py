"""`finpile search`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from finpile_cli.console import Console, json_option
from finpile_cli.engine import heavy_imports
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from datetime import datetime

    from finpile.history.search import Found, Has, Match

_DAY = 10


@click.command()
@click.argument("out", type=PathOrUrl())
@click.argument("words")
@click.option(
    "--as-of",
    "day",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="In the corpus as of the end of this day, without undated documents; OUT needs `dedup: {order: time}`.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="At most N texts are printed; all are counted.",
)
@json_option
def search_command(out: str, words: str, day: datetime | None, limit: int, as_json: bool) -> None:
    """Find exact words in a build, in kept and in removed text.

    WORDS are searched as they are written, byte for byte. Reads all texts of the current snapshot.
    """
    with heavy_imports(is_lean=True):
        from finpile.history.search import Search

    console = Console(as_json)
    search = Search(out)
    has = None if day is None else _has(out, day)
    with console.progress("searching", search.size_bytes, "B") as advance:
        found = search.find(words.encode(errors="surrogateescape"), limit=limit, has=has, advance=advance)
    for match in found.matches:
        _print_match(console, match, words)
    _print_counts(console, found, words)
    removed = [
        {"stage": stage, "reason": reason, **asdict(counts)} for (stage, reason), counts in found.removed.items()
    ]
    console.result(
        {
            "out": out,
            "words": words,
            "as_of": None if day is None else str(day.date()),
            "kept": {"documents": found.kept.documents, "times": found.kept.times},
            "removed": removed,
            "matches": [
                {**match.row, **{name: value for name, value in asdict(match).items() if name != "row"}}
                for match in found.matches
            ],
        }
    )


def _has(out: str, day: datetime) -> Has:
    """Raises: ConfigError for a build that has no past."""
    from finpile.as_of import Cut, check_causal
    from finpile.output.layout import Layout
    from finpile.output.manifest import load_manifest

    cut = Cut(day.date())
    check_causal(out, load_manifest(Layout(out)), cut)
    return cut.has


def _print_match(console: Console, match: Match, words: str) -> None:
    row = match.row
    date = str(row["timestamp"] or "undated")[:_DAY]
    console.line(f"{row['id']}  {date}  {row['dataset']}/{row['source']}  {row['locator']}", style="bold")
    if row["stage"] is not None:
        what = "the whole document" if row["start"] is None else f"bytes {row['start']:,} to {row['end']:,}"
        console.line(f"  removed by {row['stage']}: {what}: {row['reason']}", style="red")
    times = f" (the first of {match.times:,})" if match.times > 1 else ""
    shown: list[tuple[str, str | None]] = [(f"  byte {match.offset:,}{times}: ", "dim"), (match.before, None)]
    console.pieces([*shown, (f"[{' '.join(words.split())}]", "bold"), (match.after, None)])


def _print_counts(console: Console, found: Found, words: str) -> None:
    rows: list[list[Any]] = [["kept", "", found.kept.documents, "", found.kept.times]]
    for (stage, reason), counts in found.removed.items():
        rows.append([stage, reason, counts.documents, counts.spans, counts.times])
    num_texts = sum(row[2] + (row[3] or 0) for row in rows)
    if num_texts > len(found.matches):
        console.line(f"... and {num_texts - len(found.matches):,} more texts: raise --limit")
    console.table(f'texts with "{words}"', ["where", "reason", "documents", "spans", "times"], rows)
