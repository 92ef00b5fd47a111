"""`finpile audit`: a person judges a sample of removals."""

from __future__ import annotations

from functools import partial

import click

from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import PathOrUrl
from finpile_cli.serving import serve


@click.command()
@click.argument("out", type=PathOrUrl())
@click.option(
    "--per-source",
    type=click.IntRange(min=1),
    metavar="N",
    help="N of each stage and source: removals that are judged.  [default: as in the last call, else 20]",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=0),
    metavar="N",
    help="Look for pairs just below the limit of `near`: of N documents of each dataset with all others; 0: none.  "
    "[default: as in the last call, else 1000]",
)
@click.option("--results", is_flag=True, help="Print and write the estimates from the answers so far, and end.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the server.  [default: one that is free]")
@json_option
def audit_command(
    out: str, per_source: int | None, pairs: int | None, results: bool, port: int | None, as_json: bool
) -> None:
    """Judge a sample of removals in a browser, and estimate how many are right.

    Serves the pages of `finpile explore OUT --serve` on this machine with one more view, until Ctrl-C: removals of each
    stage and source, drawn by digest, each with its text and the copy that was kept, and pairs of documents that `near`
    keeps, just below the limit. Answer with the keys y and n. Each answer is written to OUT/audit/judgements.jsonl at
    once, and the same command goes on where the last one ended. An answer counts for the same document, span and texts
    alone, not for those of another build.

    At the end, or with --results, the precision of each stage and source and the documents that `near` misses are
    printed and written to OUT/audit, with 95% intervals.
    """
    from finpile.audit.sample import open_sample
    from finpile.audit.served import Audit, audit_server
    from finpile.explorer.corpus import Corpus

    if results and port is not None:
        raise ConfigError("--port is for the server: leave out --results")
    if "://" in out and not results:
        raise ConfigError(f"{out} is not on this machine: the server is for folders; --results prints the estimates")
    console = Console(as_json)
    corpus = Corpus.open(out)
    with console.progress("drawing", unit="B") as advance:
        audit = Audit(corpus, open_sample(corpus, per_source, pairs, advance))
    if not results:
        serve(console, out, port or 0, partial(audit_server, audit))
    page = audit.write_results()
    found = audit.results()
    console.line(f"{found['judged']:,} of {found['items']:,} items are judged")
    for table in audit.tables():
        console.report_table(table.title, table)
        console.lines(table.footnotes)
    if found["note"]:
        console.line(found["note"])
    console.line(page)
    if results:
        console.result({"out": out, "page": page, **found})
