"""`finpile trace`: from tokens to documents and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from finpile.documents.split import TRAIN
from finpile.errors import ConfigError, InputError, count_of
from finpile.output.layout import Layout
from finpile.output.snapshots import BUILD, check_tokens, is_published
from finpile_cli.console import Console, json_option
from finpile_cli.engine import heavy_imports
from finpile_cli.language_models import check_run, seen_batches, steps_that_saw
from finpile_cli.option_groups import dataset_option, source_option, split_option
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from finpile.history.trace import TracedDocument
    from finpile.tokens.provenance import Span

_EXCERPT_CHARACTERS = 300
#: Columns of a document that are shown, beside its id and source.
_COLUMNS = ("title", "url", "locator", "license", "meta")
_SEQUENCE = re.compile(r"(?P<number>\d+)(:(?P<position>\d+))?", re.ASCII)
_RANK = re.compile(r"(?P<rank>\d+)/(?P<size>\d+)", re.ASCII)


@click.command()
@click.argument("out", type=PathOrUrl())
@click.option("--sequence", metavar="N[:POS]", help="A sequence of the shards, or one token of it; both count from 0.")
@split_option
@dataset_option
@source_option
@click.option(
    "--step",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --run: a step of training, as losses.jsonl counts them.",
)
@click.option(
    "--run", type=PathOrUrl(), help="A training run: the `out` of a training file that names the shards of OUT."
)
@click.option("--rank", metavar="R/N", help="With --step: only what process R of N saw; R counts from 0.")
@click.option(
    "--snapshot",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of this snapshot: only the shards that it added; 0: those of the build.  [default: 0; with --step: that of "
    "the run; with --document: all]",
)
@click.option(
    "--document",
    metavar="DOCUMENT",
    help="A document, by id, locator or file: its sequences, and with --run the steps that saw it.",
)
@json_option
def trace_command(
    out: str,
    sequence: str | None,
    split: str,
    dataset: str | None,
    source: str | None,
    step: int | None,
    run: str | None,
    rank: str | None,
    snapshot: int | None,
    document: str | None,
    as_json: bool,
) -> None:
    """Find the documents of tokens, and the tokens of a document.

    \b
    --sequence N[:POS]   documents of a sequence, or the bytes of one token
    --split heldout --dataset D --source S --sequence N
                         the same of the held-out shards of a source
    --step S --run RUN   documents that a step saw, and what was cut from them
    --document DOCUMENT  sequences of a document; with --run, steps that saw it
    """
    if sum(value is not None for value in (sequence, step, document)) != 1:
        raise ConfigError("say one of --sequence, --step and --document")
    if step is not None and run is None:
        raise ConfigError("--step needs --run: the folder of the training run")
    check_tokens(Layout(out))
    heldout = _heldout_source(sequence, split, dataset, source)
    console = Console(as_json)
    if sequence is not None:
        _trace_sequence(console, out, sequence, heldout, snapshot or BUILD)
    elif step is not None and run is not None:
        _trace_step(console, out, run, step, rank, snapshot)
    elif document is not None:
        _trace_document(console, out, document, run, snapshot)


def _trace_sequence(console: Console, out: str, sequence: str, heldout: tuple[str, str] | None, snapshot: int) -> None:
    with heavy_imports(is_lean=True):
        from finpile.history.trace import documents_of
        from finpile.tokens.provenance import TokenProvenance

    asked = _SEQUENCE.fullmatch(sequence)
    if asked is None:
        raise ConfigError(f"--sequence is {sequence!r}: expected N, or N:POS, such as 12:400")
    provenance = TokenProvenance(out, heldout, snapshot)
    number = int(asked["number"])
    try:
        if asked["position"] is None:
            spans = provenance.spans(number)
        else:
            spans = [provenance.token(number, int(asked["position"]))]
    except IndexError as error:
        raise InputError(f"{out}: no {error}") from None
    documents = documents_of(out, spans, snapshot)
    counted = count_of(len(documents), "document")
    console.line(f"sequence {sequence}: {count_of(len(spans), 'span')} of {counted}", style="bold")
    for document in documents:
        _print_document(console, document)
        for span in document.spans:
            console.line(f"  tokens {span.begin:,} to {span.end:,}: bytes {span.first_byte:,} to {span.last_byte:,}")
            console.line(f"    {_excerpt(document, span)}", style="dim")
    console.result({"out": out, "sequence": number, "documents": [_result(document) for document in documents]})


def _trace_step(console: Console, out: str, run: str, step: int, rank: str | None, snapshot: int | None) -> None:
    from finpile.history.trace import documents_of
    from finpile.tokens.provenance import TokenProvenance

    part = _RANK.fullmatch(rank or "0/1")
    if part is None or int(part["rank"]) >= int(part["size"]):
        raise ConfigError(f"--rank is {rank!r}: expected R/N with R below N, such as 0/8")
    snapshot = check_run(out, run)[0] if snapshot is None else snapshot
    provenance = TokenProvenance(out, snapshot=snapshot)
    windows = seen_batches(run, provenance.store).windows(step, int(part["rank"]), int(part["size"]))
    spans = [span for window in windows for span in provenance.spans(*window)]
    documents = documents_of(out, spans, snapshot)
    counted = count_of(len(documents), "document")
    console.line(f"step {step}: {count_of(len(windows), 'sequence')}, {counted}", style="bold")
    for document in documents:
        _print_document(console, document)
        places = ", ".join(f"{span.sequence}:{span.begin}" for span in document.spans)
        console.line(f"  {'tokens':<10} {sum(span.end - span.begin for span in document.spans):,} from {places}")
    sequences = [{"sequence": window.sequence, "tokens": [window.begin, window.end]} for window in windows]
    result = {"out": out, "run": run, "step": step, "sequences": sequences}
    console.result({**result, "documents": [_result(document) for document in documents]})


def _trace_document(console: Console, out: str, prefix: str, run: str | None, snapshot: int | None) -> None:
    with heavy_imports(is_lean=True):
        from finpile.history.trace import documents_of, find_document, tokens_of

    identifier = find_document(out, prefix, snapshot)
    found = tokens_of(out, [identifier], snapshot)
    is_there = is_published(Layout(out), identifier)
    places = [{"snapshot": one.snapshot, **_place(span)} for one in found for span in one.spans]
    result: dict[str, Any] = {"out": out, "id": identifier, "in_corpus": is_there, "places": places}
    if not found:
        console.line(f"{identifier}: no sequence has it", style="bold")
    for one in found:
        _print_document(console, documents_of(out, one.spans, one.snapshot)[0])
        if one.snapshot:
            console.line(f"  in the shards of snapshot {one.snapshot}")
        for span in one.spans:
            console.line(
                f"  sequence {span.sequence}, tokens {span.begin:,} to {span.end:,}: "
                f"bytes {span.first_byte:,} to {span.last_byte:,}"
            )
    if not is_there:
        console.line("  no longer in the corpus: a later snapshot took it down, or removed it")
    if run is not None:
        in_training = {
            one.snapshot: {(span.sequence, at) for span in one.spans for at in range(span.begin, span.end)}
            for one in found
            if one.heldout is None
        }
        steps = steps_that_saw(out, run, in_training)
        console.line(f"  seen in {len(steps)} steps: {', '.join(map(str, steps)) or 'none'}")
        result |= {"run": run, "steps": steps}
    console.result(result)


def _heldout_source(
    sequence: str | None, split: str, dataset: str | None, source: str | None
) -> tuple[str, str] | None:
    """The dataset and source whose held-out shards have the sequence; None: the training shards, which have all.

    Raises: ConfigError for options that do not belong together.
    """
    if split == TRAIN:
        if dataset is not None or source is not None:
            raise ConfigError("--dataset and --source name held-out shards: add --split heldout")
        return None
    if sequence is None:
        raise ConfigError("--split heldout needs --sequence: it names the shards that have the sequence")
    if dataset is None or source is None:
        raise ConfigError("--split heldout needs --dataset and --source: each source has held-out shards of its own")
    return dataset, source


def _print_document(console: Console, document: TracedDocument) -> None:
    row = document.row
    console.line(row["id"], style="bold")
    console.line(f"  {row['dataset']} / {row['source']}, {row['timestamp'] or 'undated'}", style="cyan")
    for name in _COLUMNS:
        if row[name] and row[name] != "{}":
            console.line(f"  {name:<10} {row[name]}")
    for cut in document.cuts:
        counts = f"{count_of(cut['spans'], 'span')} of {count_of(cut['bytes'], 'byte')}"
        console.line(f"  {'cut':<10} {counts} by {cut['stage']}: {cut['reason']}", style="red")
    for copy in document.copies:
        counts = count_of(copy["documents"], "document")
        console.line(f"  {'copies':<10} {counts} removed by {copy['stage']}: {copy['reason']}", style="green")


def _result(document: TracedDocument) -> dict[str, Any]:
    row = document.row
    names = ("id", "dataset", "source", "timestamp", "timestamp_origin", *_COLUMNS, "num_copies", "split")
    return {
        **{name: row[name] for name in names},
        "text_bytes": len(row["text"].encode()),
        "places": [{**_place(span), "excerpt": _excerpt(document, span)} for span in document.spans],
        "cuts": list(document.cuts),
        "copies": list(document.copies),
    }


def _place(span: Span) -> dict[str, Any]:
    tokens, span_bytes = [span.begin, span.end], [span.first_byte, span.last_byte]
    return {"sequence": span.sequence, "tokens": tokens, "bytes": span_bytes}


def _excerpt(document: TracedDocument, span: Span) -> str:
    """The beginning and end of a span's text, on one line; of one token, in brackets, with the text around it."""
    half = _EXCERPT_CHARACTERS // 2
    text = document.text_of(span)
    if span.end - span.begin == 1:
        before = document.text_of(span._replace(first_byte=max(0, span.first_byte - half), last_byte=span.first_byte))
        after = document.text_of(span._replace(first_byte=span.last_byte, last_byte=span.last_byte + half))
        text = f"{before}[{text}]{after}"
    elif len(text) > 2 * half:
        text = f"{text[:half]} [...] {text[-half:]}"
    return " ".join(text.split())
