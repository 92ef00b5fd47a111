"""`finpile tokenizer encode` and `finpile tokenizer decode`."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError, InputError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from finpile_tokenizer import UnigramTokenizer
    from finpile_tokenizer.export import Special

special_option = click.option(
    "--special",
    type=click.Choice(["text", "control"]),
    help="How `<|endoftext|>` in a text is encoded: as ordinary text, or as the token that ends a document.",
)


@click.command()
@click.argument("tokenizer", type=PathOrUrl())
@special_option
@json_option
def encode_command(tokenizer: str, special: Special | None, as_json: bool) -> None:
    """Turn standard input into ids, one line of ids for each line of text.

    TOKENIZER is a folder that `finpile build` wrote, or its tokenizer.json. The line end is not part of the text.
    The default of `--special` is `text`; Hugging Face tokenizers behave like `control`.
    """
    loaded = load_tokenizer(tokenizer)
    console = Console(as_json)
    lines = [line.rstrip(b"\n") for line in sys.stdin.buffer]
    encoded = [loaded.encode(line, special or "text") for line in lines]
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

    With --json, bytes that are not UTF-8 are escaped.
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

    Raises:
        InputError: there is none, or one of another kind.
    """
    from finpile_tokenizer import TokenizerError

    from finpile.tokens import tokenizer_files
    from finpile.tokens.tokenizers.opening import open_tokenizer

    try:
        return tokenizer_files.load_tokenizer(path)
    except (TokenizerError, OSError) as error:
        with suppress(InputError):
            name = type(open_tokenizer(path)).__name__
            raise ConfigError(
                f"{path}: is a {name}, and this command needs a tokenizer of FinPile: use its library"
            ) from error
        raise InputError(f"{path}: {error}") from error


def _id(word: bytes) -> int:
    """Raises: ValueError for anything but digits, such as `1_0`, which `int` reads."""
    if not word.removeprefix(b"-").isdigit():
        raise ValueError
    return int(word)


def _decoded(tokenizer: UnigramTokenizer, line: bytes, number: int) -> bytes:
    from finpile_tokenizer import TokenizerError

    try:
        return tokenizer.decode([_id(word) for word in line.split()])
    except TokenizerError as error:
        raise InputError(f"line {number} of standard input: {error}") from error
    except (ValueError, OverflowError):
        shown = line.strip()[:60].decode("utf-8", "backslashreplace")
        raise InputError(f"line {number} of standard input is not a line of ids: {shown!r}") from None
