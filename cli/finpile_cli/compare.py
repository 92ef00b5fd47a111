"""`finpile tokenizer compare`: Table 3, or Tables 14 to 18 of GPT-NeoX-20B, of any documents and any tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import Output, PathOrUrl, text_field_option

if TYPE_CHECKING:
    from finpile.report.table import Table
    from finpile.report.table3 import By, Comparison, TotalOf


total_of_option = click.option(
    "--total-of",
    type=click.Choice(["all", "public"]),
    default="all",
    show_default=True,
    help="Rows that Total adds up: all, or the public datasets, as in the paper. FinPile is private.",
)
quality_option = click.option(
    "--quality",
    is_flag=True,
    help="Two more tables: tokens per word, bits per byte, digits, white space and unused pieces by source; the "
    "vocabularies.",
)


@click.command()
@click.argument("tokenizers", nargs=-1, required=True, metavar="TOKENIZER...")
@click.option(
    "--on",
    "documents",
    multiple=True,
    required=True,
    type=PathOrUrl(),
    metavar="DOCS",
    help="Documents to encode. May be repeated.",
)
@text_field_option
@click.option("--ours", metavar="TOKENIZER", help="The tokenizer that the others are measured against.")
@click.option(
    "--paper",
    type=click.Choice(["bloomberggpt", "neox"]),
    default="bloomberggpt",
    show_default=True,
    help="The paper whose tables are made: Table 3, or Tables 14 to 18 of GPT-NeoX-20B.",
)
@click.option(
    "--by",
    type=click.Choice(["dataset", "source"]),
    help="What a row is; sources with neox, or if there is one dataset.",
)
@click.option("-o", "--output", type=Output(), metavar="DIR", help="Output folder: each table as .{md,csv,tex,json}.")
@click.option(
    "--limit-bytes",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most the first N bytes of each source.  [default: all]",
)
@total_of_option
@quality_option
@json_option
def compare_command(
    tokenizers: tuple[str, ...],
    documents: tuple[str, ...],
    text_field: str,
    ours: str | None,
    paper: Literal["bloomberggpt", "neox"],
    by: By | None,
    output: str | None,
    limit_bytes: int | None,
    total_of: TotalOf,
    quality: bool,
    as_json: bool,
) -> None:
    """Count the same documents with several tokenizers.

    The table is Table 3 of the paper; with --paper neox, the tables are those of appendix E of GPT-NeoX-20B: tokens by
    component, with and without white space, shared tokens, the longest tokens, and the words of which one tokenizer
    makes far more tokens than another.

    TOKENIZER is a folder or file of FinPile, Hugging Face (tokenizer.json), SentencePiece (.model), tiktoken or GPT-2
    (encoder.json and vocab.bpe), or NAME=PATH. DOCS is an OUT folder of `finpile build`, or Parquet, JSON Lines
    (.zst, .gz) or text. The others are measured against --ours, or else against the last TOKENIZER.
    """
    from finpile.report.documents import iter_texts
    from finpile.report.neox_tables import neox_tables
    from finpile.report.render import to_json_value
    from finpile.report.table3 import efficiency, table3
    from finpile.report.word_counts import WordCounts

    console = Console(as_json)
    others = [argument for argument in tokenizers if argument != ours]
    opened = [open_named(argument) for argument in (*others, *([ours] if ours else []))]
    texts, words = iter_texts(documents, limit_bytes, text_field), WordCounts()
    if paper == "neox":
        texts = words.watch(texts)
    comparison, quality_tables = count_texts(
        console, opened, texts, quality, limit_bytes=limit_bytes, total_of=total_of
    )
    if paper == "neox":
        made = neox_tables(comparison, opened, words, by or "source")
    else:
        made = [table3(comparison, by, ours=ours is not None), efficiency(comparison)]
    made += quality_tables
    for table in made:
        _show(console, table)
    files = _write(output, made, comparison) if output else []
    console.lines(files)
    console.result({**comparison.to_json(), "tables": list(map(to_json_value, made)), "files": files})


def count_texts(
    console: Console, opened: Sequence[Any], texts: Iterator[Any], measures_quality: bool, **settings: Any
) -> tuple[Comparison, list[Table]]:
    """The texts counted with each tokenizer, as `compare` with these settings, and the tables of quality if wanted."""
    from finpile.report.table3 import compare
    from finpile.report.tokenizer_quality import QualityCounts, quality_tables

    quality = QualityCounts(opened)
    if measures_quality:
        texts = quality.watch(texts)
    with console.progress("counting", unit="B") as advance:
        comparison = compare(opened, texts, **settings, advance=advance)
    return comparison, quality_tables(quality) if measures_quality else []


def open_named(argument: str) -> Any:
    from finpile.tokens.tokenizers.opening import open_tokenizer

    label, equals, path = argument.partition("=")
    if not equals or "://" in label or os.path.exists(argument):
        return open_tokenizer(os.path.expanduser(argument))
    if not label or not path:
        raise ConfigError(f"{argument!r} names no tokenizer: expected PATH or NAME=PATH")
    return open_tokenizer(os.path.expanduser(path), label)


def _show(console: Console, table: Table) -> None:
    console.report_table(table.caption, table)
    for note in table.footnotes:
        console.line(f"- {note}")
    console.line("")


def _write(folder: str, tables: list[Table], comparison: Comparison) -> list[str]:
    from finpile.report.files import write_table
    from finpile.storage import join, write_json

    written = [file for table in tables for file in write_table(folder, table)]
    counts = join(folder, "comparison.json")
    write_json(counts, comparison.to_json())
    return [*written, counts]
