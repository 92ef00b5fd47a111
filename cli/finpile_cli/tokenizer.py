"""`finpile tokenizer`: train, sweep, compare, export, encode, decode."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError, InputError
from finpile_cli.console import Console, json_option
from finpile_cli.lazy_group import LazyGroup
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_tokenizer import UnigramTokenizer
    from finpile_tokenizer.export import Special

_COMMANDS = {
    "train": ("finpile_cli.tokenizer_train", "train_command", "Train a tokenizer on documents: split, train, merge."),
    "compare": ("finpile_cli.compare", "compare_command", "Count tokens with several tokenizers: tables of papers."),
    "sweep": ("finpile_cli.sweep", "sweep_command", "Find the vocabulary size that encodes a text best."),
    "encode": ("finpile_cli.tokenizer", "encode_command", "Encode each line of standard input to ids."),
    "export": (
        "finpile_cli.tokenizer",
        "export_command",
        "Write the files for transformers: pad token, longest sequence.",
    ),
    "decode": ("finpile_cli.tokenizer", "decode_command", "Decode lines of ids on standard input."),
}


@click.group(cls=LazyGroup, lazy=_COMMANDS)
def tokenizer_group() -> None:
    """Train, compare and use tokenizers. `finpile build` trains one for its corpus."""


_special_option = click.option(
    "--special",
    type=click.Choice(["text", "control"]),
    help="How `<|endoftext|>` in a text is encoded: as ordinary text, or as the token that ends a document.",
)


@click.command()
@click.argument("tokenizer", type=PathOrUrl())
@_special_option
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
@click.option("-o", "--output", required=True, type=Output(), metavar="FOLDER", help="Folder or fsspec URL.")
@click.option("--pad-token", metavar="TEXT", help="`<|endoftext|>`, or a new token whose id follows the vocabulary.")
@click.option("--model-max-length", type=click.IntRange(min=1), metavar="N", help="Tokens of the longest sequence.")
@_special_option
@json_option
def export_command(
    tokenizer: str,
    output: str,
    pad_token: str | None,
    model_max_length: int | None,
    special: Special | None,
    as_json: bool,
) -> None:
    """Write a tokenizer for `AutoTokenizer.from_pretrained(FOLDER)`: tokenizer.json and tokenizer_config.json.

    TOKENIZER is a folder that `finpile build` or `finpile tokenizer train` wrote. The default of `--special` is
    `control`, as in Hugging Face. A new pad token makes the vocabulary one entry larger than the model's.
    """
    from finpile_tokenizer import TokenizerError
    from finpile_tokenizer.export import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE, write_for_transformers

    from finpile import storage
    from finpile.tokens.tokenizer_files import saved_to

    vocabulary = load_tokenizer(tokenizer).vocabulary
    if storage.is_file(storage.join(output, VOCABULARY_FILE)):
        raise ConfigError(f"-o {output} has a tokenizer of FinPile, which this would overwrite: name another folder")
    try:
        with saved_to(output) as folder:
            write_for_transformers(
                folder, vocabulary, pad_token=pad_token, model_max_length=model_max_length, special=special or "control"
            )
    except TokenizerError as error:
        raise ConfigError(f"--pad-token: {error}") from error
    console = Console(as_json)
    files = [storage.join(output, name) for name in (TOKENIZER_FILE, CONFIG_FILE)]
    for file in files:
        console.line(file)
    console.result({"files": files})


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

    try:
        return tokenizer_files.load_tokenizer(path)
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
