"""`finpile export hf`: a trained model as a folder of Hugging Face transformers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import build_of, load_tokenizer, require_torch, retained_option, tokenizer_of_option
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_trainer.training.retained import Which

#: Files of a run and of a tokenizer of FinPile, whose folders an export must not write into.
_TAKEN = ("checkpoint.pt", "vocabulary.parquet")


@click.command()
@click.argument("run", type=PathOrUrl(file_okay=False))
@click.option("-o", "--output", required=True, type=Output(), metavar="DIR", help="Output folder, a local one.")
@tokenizer_of_option
@retained_option
@json_option
def export_command(run: str, output: str, tokenizer_of: str | None, retained: Which | None, as_json: bool) -> None:
    """Write the model of RUN and its tokenizer for `AutoModelForCausalLM` and `AutoTokenizer` of transformers.

    BloombergGPT becomes a BLOOM, GPT-NeoX a GPT-NeoX, PaLM a Cohere model. BLOOM has other slopes than the BloombergGPT
    paper unless the number of heads is a power of two: train with `model: {alibi: bloom}` to export such a model.
    """
    require_torch()
    from finpile_trainer.training.hugging_face import hugging_face_config, save_hugging_face
    from finpile_trainer.training.retained import load_model

    from finpile.tokens.tokenizers.transformers_files import FILES, write_for_transformers

    if "://" in output or any(Path(output, name).exists() for name in _TAKEN):
        raise ConfigError(f"-o {output}: expected a local folder without a run or a tokenizer of FinPile; name another")
    saved = load_model(run, retained)
    hugging_face_config(saved.meta)
    tokenizer = load_tokenizer(tokenizer_of or build_of(run), saved.meta)
    write_for_transformers(output, tokenizer, saved.meta.sequence_length)
    files = save_hugging_face(output, saved.meta, saved.model)
    console = Console(as_json)
    paths = [str(Path(output, name)) for name in (*files, *FILES)]
    console.lines(paths)
    console.result({"files": paths, "step": saved.step})
