"""`finpile tokenizer sweep`: encoded size by vocabulary size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from finpile.config import TokenizerConfig, bounds
from finpile.errors import ConfigError, InputError
from finpile.output.layout import MERGED_MODEL, Layout
from finpile_cli.console import Console, json_option
from finpile_cli.paths import Output, PathOrUrl, text_field_option

if TYPE_CHECKING:
    import pyarrow as pa
    from finpile_tokenizer import PretokenCounts, UnigramModel, Vocabulary
    from finpile_tokenizer.sweep import SweepPoint

_DEFAULT_SIZES = "25000:550000:25000"
#: All texts are encoded once for each.
_MOST_SIZES = 1000


@click.command()
@click.argument("tokenizer", required=False, type=PathOrUrl(), metavar="[TOKENIZER]")
@click.option(
    "--train",
    "training",
    multiple=True,
    type=PathOrUrl(),
    metavar="DOCS",
    help="Documents to train a model on, instead of cutting that of TOKENIZER. May be repeated.",
)
@click.option(
    "--on",
    "documents",
    multiple=True,
    required=True,
    type=PathOrUrl(),
    metavar="DOCS",
    help="Documents to encode, which should not be part of the training text. May be repeated.",
)
@click.option(
    "--sizes",
    default=_DEFAULT_SIZES,
    show_default=True,
    metavar="FIRST:LAST[:STEP]",
    help="Sizes to encode with, or A,B,C. The default step is FIRST.",
)
@click.option(
    "--max-piece-bytes",
    type=click.IntRange(2, 254),
    default=TokenizerConfig().max_piece_bytes,
    show_default=True,
    help="Longest piece, with --train.",
)
@text_field_option
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=None,
    help="Threads of the training and the encoding.  [default: CPU cores]",
)
@click.option("-o", "--output", type=Output(), metavar="DIR", help="Output folder: sweep.{svg,md,csv,tex,json}.")
@json_option
def sweep_command(
    tokenizer: str | None,
    training: tuple[str, ...],
    documents: tuple[str, ...],
    sizes: str,
    max_piece_bytes: int,
    text_field: str,
    threads: int | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Find the vocabulary size that encodes a text in the fewest bytes (section 2.3 of the paper).

    TOKENIZER is a folder that `finpile tokenizer train` wrote, or the folder of a build: its merged model is cut to
    each size, which equals split and merge with that --vocab-size. With --train DOCS, one Unigram model is trained in
    this process instead and pruned from the largest size to the smallest. DOCS are as in `finpile tokenizer compare`.
    """
    from finpile_tokenizer.sweep import cut_to_sizes, encoded_sizes

    console = Console(as_json)
    wanted = parse_sizes(sizes)
    num_threads = threads or os.cpu_count() or 1
    if bool(tokenizer) == bool(training):
        raise ConfigError("expected either TOKENIZER, a trained tokenizer, or --train DOCS")
    _check_texts(documents, text_field)
    if tokenizer:
        vocabularies = cut_to_sizes(load_merged(tokenizer), wanted)
    else:
        vocabularies = _trained(console, training, text_field, wanted, max_piece_bytes, num_threads)
    counted = _Counted(text_field)
    with console.progress("encoding", unit="B") as advance:
        points = encoded_sizes(vocabularies, counted.texts(documents, advance), num_threads)
    _print_result(console, points, counted.num_bytes, max(wanted), output)


def parse_sizes(text: str) -> list[int]:
    """`25000:550000`, `25000:550000:25000` or `8000,16000`, ascending.

    Raises: ConfigError for other text, and for sizes that fall, are too small or too large, or are too many.

    >>> parse_sizes("1000:3000:1000"), parse_sizes("4096,512")
    ([1000, 2000, 3000], [512, 4096])
    """
    from finpile_tokenizer import MIN_VOCAB_SIZE

    try:
        if ":" in text:
            first, last, *step = (int(part) for part in text.split(":"))
            sizes: Sequence[int] = range(first, last + 1, *(step or [first]))
        else:
            sizes = sorted({int(part) for part in text.split(",")})
    except (TypeError, ValueError):
        raise ConfigError(f"--sizes {text!r}: expected FIRST:LAST, FIRST:LAST:STEP or A,B,C in whole numbers") from None
    if not sizes or sizes[0] > sizes[-1]:
        raise ConfigError(f"--sizes {text!r}: expected FIRST:LAST or FIRST:LAST:STEP from the smallest to the largest")
    if sizes[0] < MIN_VOCAB_SIZE:
        raise ConfigError(
            f"--sizes {text!r}: expected sizes from {MIN_VOCAB_SIZE} (the bytes and <|endoftext|>) upwards"
        )
    bounds.within("--sizes", sizes[-1], MIN_VOCAB_SIZE, bounds.MAX_ENTRIES, "each entry takes memory in the tokenizer")
    if len(sizes) > _MOST_SIZES:
        raise ConfigError(
            f"--sizes {text!r}: {len(sizes):,} sizes; expected at most {_MOST_SIZES:,}: name a larger STEP"
        )
    return list(sizes)


def _check_texts(documents: tuple[str, ...], text_field: str) -> None:
    """Raises: InputError without a text to encode, before a training; it reads up to the first text."""
    from finpile.report.documents import iter_texts

    if not any(any(texts.to_pylist()) for _, _, texts in iter_texts(documents, text_field=text_field)):
        raise InputError(f"{', '.join(documents)}: holds no text to encode: name documents with text")


class _Counted:
    """Counts the bytes of the texts that it yields."""

    def __init__(self, text_field: str) -> None:
        self._text_field = text_field
        self.num_bytes = 0

    def texts(self, documents: tuple[str, ...], advance: Callable[[float], None]) -> Iterator[pa.Array]:
        import pyarrow.compute as pc

        from finpile.report.documents import iter_texts

        for _, _, texts in iter_texts(documents, text_field=self._text_field):
            size = int(pc.sum(pc.binary_length(texts)).as_py() or 0)
            self.num_bytes += size
            yield texts
            advance(size)


def load_merged(folder: str) -> UnigramModel:
    """The model before its cut, beside the tokenizer of a training or of a build.

    Raises:
        InputError: the folder has no merged model.
    """
    import pyarrow as pa
    from finpile_tokenizer import TokenizerError, UnigramModel

    from finpile import storage

    path, of_build = (storage.join(place, MERGED_MODEL) for place in (folder, Layout(folder).tokenizer))
    path = of_build if storage.is_file(of_build) else path
    try:
        return UnigramModel.from_table(storage.read_parquet(path))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"{path}: does not exist; expected a folder that `finpile tokenizer train` wrote, or that of a build"
        ) from None
    except (pa.ArrowInvalid, OSError, TokenizerError) as error:
        raise InputError(f"{path}: {error}") from error


def _trained(
    console: Console,
    documents: tuple[str, ...],
    text_field: str,
    sizes: list[int],
    max_piece_bytes: int,
    num_threads: int,
) -> list[Vocabulary]:
    """The vocabularies of one training pruned to all sizes; sizes above what the text supports give one vocabulary."""
    from finpile_tokenizer import TokenizerError, UnigramTrainer, merge, prune_to

    counts = _pretoken_counts(console, documents, text_field)
    trainer = UnigramTrainer(max_piece_bytes=max_piece_bytes, num_threads=num_threads)
    by_size: dict[int, Vocabulary] = {}
    try:
        # One id is <|endoftext|>, which is not trained.
        models = trainer.train_sizes(counts, [size - 1 for size in sizes])
        for size, model in zip(reversed(sizes), models, strict=True):
            console.line(f"  {len(model.pieces):,} pieces: {model.objective[-1]:.4f} bits per byte trained on")
            vocabulary = prune_to(merge([model]), size)
            by_size[vocabulary.vocab_size] = vocabulary
    except TokenizerError as error:
        raise InputError(f"{', '.join(documents)}: {error}") from error
    return [by_size[size] for size in sorted(by_size)]


def _pretoken_counts(console: Console, documents: tuple[str, ...], text_field: str) -> PretokenCounts:
    from finpile_tokenizer import count_pretokens

    counted = _Counted(text_field)
    with console.progress("counting", unit="B") as advance:
        parts = [count_pretokens(texts) for texts in counted.texts(documents, advance)]
    if not parts:
        raise InputError(f"{', '.join(documents)}: holds no text to train on: name documents with text")
    return parts[0].merge(parts[1:])


def _print_result(
    console: Console, points: list[SweepPoint], text_bytes: int, largest: int, output: str | None
) -> None:
    from finpile.report.files import write_table
    from finpile.report.sweep import sweep_json, sweep_plot, sweep_table
    from finpile.storage import join, write_bytes

    table = sweep_table(points, text_bytes, largest)
    console.report_table(table.caption, table)
    console.lines(table.footnotes)
    files = []
    if output:
        files = [*write_table(output, table), join(output, "sweep.svg")]
        write_bytes(files[-1], sweep_plot(points))
    console.lines(files)
    console.result({**sweep_json(points, text_bytes), "files": files})
