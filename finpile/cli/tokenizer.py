"""`finpile tokenizer`: train, sweep, compare, encode, decode."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from finpile.cli.console import Console, json_option
from finpile.cli.main import LazyGroup
from finpile.cli.paths import PathOrUrl
from finpile.errors import InputError

if TYPE_CHECKING:
    from finpile_tokenizer import UnigramTokenizer

_COMMANDS = {
    "train": ("finpile.cli.tokenizer_train", "train_command", "Train a tokenizer on documents: split, train, merge."),
    "compare": ("finpile.cli.compare", "compare_command", "Count tokens with several tokenizers: Table 3."),
    "sweep": ("finpile.cli.sweep", "sweep_command", "Find the vocabulary size that encodes a text best."),
    "encode": ("finpile.cli.tokenizer", "encode_command", "Text on standard input to ids, a line a text."),
    "decode": ("finpile.cli.tokenizer", "decode_command", "Ids on standard input back to text."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def tokenizer_group() -> None:
    """Train, compare and use tokenizers. `finpile build` trains one of its own."""


@click.command()
@click.argument("tokenizer", type=PathOrUrl())
@json_option
def encode_command(tokenizer: str, as_json: bool) -> None:
    """Turn standard input into ids, one line of ids for each line of text.

    TOKENIZER is a folder that `finpile build` wrote, or its tokenizer.json. The line end is not a part of the text.
    """
    loaded = load_tokenizer(tokenizer)
    console = Console(as_json)
    lines = [line.rstrip(b"\n") for line in sys.stdin.buffer]
    encoded = [loaded.encode(line) for line in lines]
    if as_json:
        console.result({"ids": encoded})
        return
    for ids in encoded:
        click.echo(" ".join(map(str, ids)))


@click.command()
@click.argument("tokenizer", type=PathOrUrl())
@json_option
def decode_command(tokenizer: str, as_json: bool) -> None:
    """Turn lines of ids on standard input back into lines of text, byte for byte.

    With --json bytes that are no UTF-8 are escaped.
    """
    loaded = load_tokenizer(tokenizer)
    texts = [_decoded(loaded, line, number) for number, line in enumerate(sys.stdin.buffer, start=1)]
    if as_json:
        Console(as_json).result({"texts": [text.decode("utf-8", "backslashreplace") for text in texts]})
        return
    for text in texts:
        sys.stdout.buffer.write(text + b"\n")


def load_tokenizer(path: str) -> UnigramTokenizer:
    """A tokenizer that `finpile build` wrote.

    Raises: InputError where there is none, or another kind of one.
    """
    from finpile_tokenizer import TokenizerError, UnigramTokenizer

    try:
        return UnigramTokenizer.load(path)
    except (TokenizerError, OSError) as error:
        raise InputError(f"{path}: {error}") from error


def _decoded(tokenizer: UnigramTokenizer, line: bytes, number: int) -> bytes:
    from finpile_tokenizer import TokenizerError

    try:
        return tokenizer.decode([int(word) for word in line.split()])
    except TokenizerError as error:
        raise InputError(f"line {number} of standard input: {error}") from error
    except (ValueError, OverflowError):
        shown = line.strip()[:60].decode("utf-8", "backslashreplace")
        raise InputError(f"line {number} of standard input is not a line of ids: {shown!r}") from None
