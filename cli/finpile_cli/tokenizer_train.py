"""`finpile tokenizer train`: a tokenizer without a corpus file."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from finpile.config import TokenizerConfig
from finpile.config.tokenizer import LEAST_ENTRIES
from finpile.documents.document import Label, label_of
from finpile.errors import ConfigError, count_of
from finpile.report.vocabulary import short_chunks, shortfall
from finpile_cli.console import Console, json_option
from finpile_cli.display import Display
from finpile_cli.engine import Again, BeamOptionsLast, Placement, again_options, placement_options
from finpile_cli.option_groups import named_by_options, number_or
from finpile_cli.paths import PathOrUrl, output_option, text_field_option

if TYPE_CHECKING:
    from finpile_pipelines.unigram.heldout import HeldOut
    from finpile_pipelines.unigram.run import Listener, StepEvent
    from finpile_pipelines.unigram.train_folder import TrainedFolder

    from finpile.tokens.paper_tokenizers import Like

#: Source: BloombergGPT (arXiv:2303.17564) §2.3.
_PRESETS: dict[str, dict[str, Any]] = {
    "bloomberggpt": {"chunks": 256, "chunk_vocab_size": 65_536, "vocab_size": 131_072},
}
_DEFAULT = TokenizerConfig()


@click.command(cls=BeamOptionsLast)
@click.argument("docs", nargs=-1, required=True, type=PathOrUrl(), metavar="DOCS...")
@output_option("DIR")
@click.option(
    "--mode",
    type=click.Choice(["split-merge", "refit", "global"]),
    help="Average one model per chunk; the same, then EM on all text; or one model of all text.  "
    "[default: split-merge]",
)
@click.option(
    "--preset", type=click.Choice(list(_PRESETS)), help="256 chunks a domain, 65,536 pieces each, 131,072 ids."
)
@click.option(
    "--like",
    type=click.Choice(["gpt-neox", "palm"]),
    help="Instead the tokenizer of another paper, trained with its library: byte-level BPE of 50,257 entries, or "
    "SentencePiece Unigram of 256,000.",
)
@click.option(
    "--vocab-size",
    type=click.IntRange(min=LEAST_ENTRIES),
    help=f"Entries of the vocabulary.  [default: {_DEFAULT.vocab_size}]",
)
@click.option(
    "--chunks",
    metavar="auto|N",
    callback=number_or("auto"),
    help="Chunks of each domain; auto makes chunks of about 16 MiB.  [default: auto]",
)
@click.option(
    "--chunk-vocab-size",
    type=click.IntRange(min=LEAST_ENTRIES),
    help=f"Pieces of a chunk's model.  [default: {_DEFAULT.chunk_vocab_size}]",
)
@click.option(
    "--max-piece-bytes", type=click.IntRange(2, 254), help=f"Longest piece.  [default: {_DEFAULT.max_piece_bytes}]"
)
@click.option(
    "--sample",
    metavar="SIZE|all",
    help="Train on this much text, as 10 GB: of more, as large a part of each domain, chosen by digest.  "
    f"[default: {_DEFAULT.sample}]",
)
@text_field_option
@click.option(
    "--domain-field",
    metavar="FIELD",
    help="Field of the records with the domain of each: meta.pile_set_name; dots select keys.",
)
@click.option(
    "--heldout",
    multiple=True,
    type=PathOrUrl(),
    metavar="DOCS",
    help="Documents to measure the fit to; of a build, its held-out ones. May be repeated.",
)
@placement_options
@again_options
@json_option
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    docs: tuple[str, ...],
    output: str,
    preset: str | None,
    like: Like | None,
    text_field: str,
    domain_field: str | None,
    heldout: tuple[str, ...],
    placement: Placement,
    again: Again,
    as_json: bool,
    **settings: Any,
) -> None:
    """Train a tokenizer on documents (section 2.3 of the paper).

    DOCS are OUT folders of `finpile build` (their training documents), Parquet, JSON Lines (.zst, .gz) or text files,
    or folders of them. A domain is a dataset and source, as named in the records (for The Pile its component), or else
    the file or folder; with --domain-field, each value of that field, whatever the file. Run the same command again to
    resume after an interruption; other texts or settings start a new training. --like trains in one process.
    """
    console = Console(as_json)
    if like is not None:
        _check_options_of_like(ctx)
        _train_like(console, like, docs, output, settings["vocab_size"], text_field, **again)
        return
    with named_by_options("tokenizer."):
        config = read_settings(preset, settings)
    from finpile_pipelines.unigram.train_folder import check_held_out, evaluate_folder, train_folder

    if heldout:
        check_held_out(heldout, text_field)
    display = Display(console, by_pipeline=True)
    engine = placement.engine(display)
    console.line(f"training a tokenizer in {output}", style="bold")
    with display:
        trained = train_folder(
            docs,
            output,
            config,
            engine,
            text_field=text_field,
            domain_field=domain_field,
            **again,
            listen=_listener(console, display),
        )
        evaluated = evaluate_folder(heldout, output, engine, text_field) if heldout else []
    _close(console, trained, evaluated, config, output)


#: The options that `--like` can have beside it.
_OPTIONS_OF_LIKE = {"docs", "output", "like", "vocab_size", "text_field", "replace", "fresh", "as_json"}


def _check_options_of_like(ctx: click.Context) -> None:
    """Raises: ConfigError for an option that says how FinPile's own tokenizer is trained."""
    for parameter in ctx.command.params:
        given = ctx.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
        if given and parameter.name not in _OPTIONS_OF_LIKE:
            raise ConfigError(f"{parameter.opts[0]} is a setting of FinPile's own tokenizer: leave it out with --like")


def _train_like(
    console: Console,
    like: Like,
    docs: tuple[str, ...],
    out: str,
    vocab_size: int | None,
    text_field: str,
    *,
    replace: bool,
    fresh: bool,
) -> None:
    from finpile.report.documents import iter_texts
    from finpile.tokens.paper_tokenizers import train_like

    def texts() -> Iterator[str]:
        return (text for *_, array in iter_texts(docs, text_field=text_field) for text in array.to_pylist())

    console.line(f"training a tokenizer in {out}", style="bold")
    record, file, ran = train_like(like, texts, out, vocab_size, replace=replace, fresh=fresh)
    if not ran:
        console.line("the training was done before; nothing to do (--fresh starts over)")
    about = {"vocab_size": record.vocab_size, "vocab_size_asked_for": record.vocab_size_asked_for, "mode": "global"}
    short = shortfall(about, size="--vocab-size", chunk_settings="")
    if short:
        console.warn(short)
    text = f"{count_of(record.num_docs, 'document')}, {count_of(record.num_bytes, 'byte')}"
    console.line(f"{text}, {record.vocab_size:,} entries")
    console.line(f"tokenizer: {file}")
    warnings = [short] if short else []
    console.result({"out": out, "ran": ran, **asdict(record), "warnings": warnings, "tokenizer": file})


def read_settings(preset: str | None, settings: dict[str, Any]) -> TokenizerConfig:
    """The preset, overridden by the options."""
    given = {name: value for name, value in settings.items() if value is not None}
    return TokenizerConfig(**{**_PRESETS.get(preset or "", {}), **given})


def _listener(console: Console, display: Display) -> Listener:
    def listen(event: StepEvent) -> None:
        if event.state == "running":
            display.begin(event.step)
        elif event.state == "changed":
            console.line(event.detail)
        elif event.state == "found":
            display.end(event.step, f"done before: {event.detail}")
        else:
            display.end(event.step, f"{event.seconds:.1f} s: {event.detail}")

    return listen


def _close(
    console: Console, trained: TrainedFolder, evaluated: list[HeldOut], config: TokenizerConfig, out: str
) -> None:
    """Prints the tables, the warnings and the path of the tokenizer."""
    about = trained.about
    if "share_of_text" in about:
        console.line(f"trained on a sample, {about['share_of_text']:.2%} of the text of each domain ({config.sample})")
    rows = _domain_rows(trained)
    columns = ["dataset", "source", "documents", "chunks", "bytes", "pieces", "bits per byte"]
    shown = [[*(row[name.replace(" ", "_")] for name in columns[:-1]), _shown(row["bits_per_byte"])] for row in rows]
    console.table(f"Tokenizer of {about['vocab_size']:,} entries, {about['mode']}", columns, shown)
    if evaluated:
        columns = ["dataset", "source", "documents", "bytes", "tokens", "bytes per token", "bits per byte"]
        console.table("Held out", columns, [_held_out_cells(row) for row in evaluated])
    warnings = list(_warnings(trained, config))
    for warning in warnings:
        console.warn(warning)
    if not trained.ran:
        console.line("the training was done before; nothing to do (--fresh starts over)")
    tokenizer = f"{out.rstrip('/')}/tokenizer.json"
    console.line(f"tokenizer: {tokenizer}")
    console.result(
        {
            "out": out,
            "ran": trained.ran,
            "mode": about["mode"],
            "vocab_size": about["vocab_size"],
            "vocab_size_asked_for": about["vocab_size_asked_for"],
            "share_of_text": about.get("share_of_text", 1.0),
            "domains": rows[:-1],
            "total": rows[-1],
            "held_out": [_held_out_json(row) for row in evaluated[:-1]],
            "held_out_total": _held_out_json(evaluated[-1]) if evaluated else None,
            "warnings": warnings,
            "tokenizer": tokenizer,
        }
    )


def _domain_rows(trained: TrainedFolder) -> list[dict[str, Any]]:
    """Each domain, and at the end all of them together.

    `pieces` and `bits_per_byte` of a domain are those of its chunks' models: the largest, and the mean over the bytes.
    """
    chunks: defaultdict[Label, list[dict[str, Any]]] = defaultdict(list)
    for chunk in trained.about["chunks"]:
        chunks[label_of(chunk)].append(chunk)
    rows = [{**domain, **_chunk_sums(chunks[label_of(domain)])} for domain in trained.domains]
    sums: Counter[str] = Counter()
    for row in rows:
        sums.update({name: row[name] for name in ("documents", "bytes", "chunks")})
    total = {**_chunk_sums(trained.about["chunks"]), **sums, "pieces": trained.about["pieces_before_pruning"]}
    if "objective" in trained.about:
        total["bits_per_byte"] = trained.about["objective"][-1]
    return [*rows, {"dataset": "all", "source": "", **total}]


def _chunk_sums(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    modelled = [chunk for chunk in chunks if "pieces" in chunk]
    size = sum(chunk["bytes"] for chunk in modelled)
    bits = math.fsum(chunk["bytes"] * chunk["objective"][-1] for chunk in modelled)
    pieces = max((chunk["pieces"] for chunk in modelled), default=None)
    return {"chunks": len(chunks), "pieces": pieces, "bits_per_byte": bits / size if size else None}


def _warnings(trained: TrainedFolder, config: TokenizerConfig) -> Iterable[str]:
    short = shortfall(trained.about, size="--vocab-size", chunk_settings="--chunk-vocab-size or --chunks")
    if short is None and config.chunks != "auto":
        short = short_chunks(trained.about, size="--chunk-vocab-size", chunks="--chunks")
    if short:
        yield short
    for domain in trained.domains:
        if not domain["bytes"]:
            yield f"the domain {domain['dataset']}/{domain['source']} has no text and was left out"
    if trained.empty_files:
        others = f" and {len(trained.empty_files) - 1} more" if len(trained.empty_files) > 1 else ""
        yield f"no text to train on in {trained.empty_files[0]}{others}"


def _shown(bits: float | None) -> str:
    return "" if bits is None else f"{bits:z.4f}"


def _held_out_cells(row: HeldOut) -> list[Any]:
    counts = [row.dataset, row.source, row.num_documents, row.num_bytes, row.num_tokens]
    return [*counts, f"{row.num_bytes / max(1, row.num_tokens):.3f}", f"{row.bits_per_byte:.4f}"]


def _held_out_json(row: HeldOut) -> dict[str, Any]:
    return {
        "dataset": row.dataset,
        "source": row.source,
        "documents": row.num_documents,
        "bytes": row.num_bytes,
        "tokens": row.num_tokens,
        "bits_per_byte": row.bits_per_byte,
    }
