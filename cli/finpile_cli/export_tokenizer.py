"""`finpile export tokenizer`: a tokenizer as a folder of Hugging Face transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import Output, PathOrUrl
from finpile_cli.tokenizer import load_tokenizer, special_option

if TYPE_CHECKING:
    from finpile_tokenizer.export import Special


@click.command()
@click.argument("tokenizer", type=PathOrUrl())
@click.option(
    "-o", "--output", required=True, type=Output(), metavar="DIR", help="Output folder: a path or fsspec URL."
)
@click.option("--pad-token", metavar="TEXT", help="`<|endoftext|>`, or a new token whose id follows the vocabulary.")
@click.option("--model-max-length", type=click.IntRange(min=1), metavar="N", help="Tokens of the longest sequence.")
@special_option
@json_option
def export_tokenizer_command(
    tokenizer: str,
    output: str,
    pad_token: str | None,
    model_max_length: int | None,
    special: Special | None,
    as_json: bool,
) -> None:
    """Write a tokenizer for `AutoTokenizer.from_pretrained(DIR)`: tokenizer.json and tokenizer_config.json.

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
    console.lines(files)
    console.result({"files": files})
