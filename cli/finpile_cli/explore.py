"""`finpile explore`: pages in which a person looks at a build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError, count_of
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.paths import PathOrUrl
from finpile_cli.serving import serve

if TYPE_CHECKING:
    import socketserver

_LISTED = 500


@click.command()
@click.argument("out", type=PathOrUrl())
@click.option(
    "--per-source",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="N of each source, and of each reason and source: documents and removals whose texts are in the pages.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=_LISTED,
    show_default=True,
    metavar="N",
    help="Rows that lists have of each reason and source. Counts are always of all rows.",
)
@click.option(
    "--pairs",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Look for pairs just below the limit of `near`: of N documents of each dataset with all others.",
)
@click.option(
    "--changes-from",
    type=PathOrUrl(),
    metavar="OUT1",
    help="Another build: the pages have what changed from that one to this one, by source and reason.",
)
@click.option(
    "--run",
    "runs",
    type=PathOrUrl(),
    multiple=True,
    metavar="RUN",
    help="A training run: the pages have its curves. May be repeated.",
)
@click.option(
    "--sweep",
    type=PathOrUrl(),
    metavar="DIR",
    help="--output of `finpile tokenizer sweep`: the pages have the curve of the vocabulary size.",
)
@click.option(
    "--compare",
    "tokenizers",
    type=PathOrUrl(),
    multiple=True,
    metavar="TOKENIZER",
    help="Another tokenizer beside that of the build, which encodes in the pages: FinPile's, GPT-2's, or a byte-level "
    "tokenizer.json with the pretokens of GPT-2. May be repeated.",
)
@click.option("--serve", is_flag=True, help="Show the pages of all rows and texts on this machine, until Ctrl-C.")
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the server.  [default: one that is free]")
@json_option
def explore_command(
    out: str,
    per_source: int,
    rows: int,
    pairs: int,
    changes_from: str | None,
    runs: tuple[str, ...],
    sweep: str | None,
    tokenizers: tuple[str, ...],
    serve: bool,
    port: int | None,
    as_json: bool,
) -> None:
    """Write pages in which a person looks at a build: where documents went, what was removed, what is left.

    The pages are static files in OUT/explorer: open OUT/explorer/index.html, or put the folder on any file server. They
    have ids, locators, dates and sizes of documents, and no text: texts may be confidential, so --per-source adds them.

    Samples and rows are chosen by digest. A text that `finpile remove` took down is never in the pages; the command
    deletes pages that were made before.

    With --serve, the pages have all rows and all texts of a build of any size: they read its Parquet files by ranges of
    bytes from 127.0.0.1, and an index in OUT/explorer/index, which the first call writes.
    """
    from finpile.explorer import write_explorer

    if serve and (changes_from is not None or pairs or runs or sweep or tokenizers):
        raise ConfigError(
            "--changes-from, --pairs, --run, --sweep and --compare are for static pages: leave out --serve"
        )
    if serve:
        _serve(Console(as_json), out, port or 0)
        return
    if port is not None:
        raise ConfigError("--port is for --serve: add it")
    if per_source > rows:
        raise ConfigError(
            f"--per-source is {per_source} and --rows {rows}: raise --rows, texts are those of listed rows"
        )
    console = Console(as_json)
    with console.progress("reading", unit="B") as advance:
        written = write_explorer(
            out,
            samples=per_source,
            rows=rows,
            pairs=pairs,
            against=changes_from,
            runs=runs,
            sweep=sweep,
            tokenizers=tokenizers,
            advance=advance,
        )
    texts = f"texts of {count_of(written.num_texts, 'document')}" if written.num_texts else "no texts"
    console.line(f"{count_of(written.num_files, 'file')}, {quantity(written.num_bytes, 'B')}, {texts}")
    console.line(f"open {written.folder}/index.html")
    console.result(
        {
            "out": out,
            "page": f"{written.folder}/index.html",
            "num_files": written.num_files,
            "num_bytes": written.num_bytes,
            "num_texts": written.num_texts,
        }
    )


def _serve(console: Console, out: str, port: int) -> None:
    from finpile.explorer.serve import address_of, make_server

    if "://" in out:
        raise ConfigError(f"{out} is not on this machine: --serve is for folders; without it, pages are written there")

    def made(out: str, port: int) -> tuple[socketserver.BaseServer, str]:
        server = make_server(out, port)
        return server, address_of(server)

    serve(console, out, port, made)
