"""`finpile model generate`: greedy continuations of the prompts of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from finpile.errors import ConfigError, InputError
from finpile_cli.console import Console, json_option
from finpile_cli.language_models import load_language_model, require_torch, retained_option, tokenizer_of_option
from finpile_cli.paths import Output, PathOrUrl

if TYPE_CHECKING:
    from finpile_trainer.training.retained import Which

_JSON_LINES = (".jsonl", ".ndjson")


@click.command()
@click.argument("model", type=PathOrUrl(file_okay=False))
@click.argument("prompts", type=PathOrUrl(dir_okay=False))
@click.option(
    "-o",
    "--output",
    type=Output(is_folder=False),
    metavar="FILE",
    help="Output file: JSON Lines with `prompt` and `generated`.",
)
@click.option(
    "--prompt-field", default="prompt", metavar="FIELD", show_default=True, help="The prompt of a JSON record."
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=64, show_default=True, help="Tokens generated for a prompt."
)
@click.option(
    "--stop", multiple=True, metavar="TEXT", help="Ends a continuation, which does not include it; may be repeated."
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N prompts, the first.  [default: all]")
@tokenizer_of_option
@retained_option
@json_option
def generate_command(
    model: str,
    prompts: str,
    output: str | None,
    prompt_field: str,
    max_tokens: int,
    stop: tuple[str, ...],
    limit: int | None,
    tokenizer_of: str | None,
    retained: Which | None,
    as_json: bool,
) -> None:
    """Continue each prompt of the file PROMPTS with the likeliest tokens.

    MODEL is the folder of a run or of a causal model of Hugging Face transformers. PROMPTS is JSON Lines (.jsonl) or
    text with a prompt in each line; compressed or not. A prompt that the model cannot read whole loses its beginning.
    """
    require_torch()
    from finpile import storage

    if "" in stop:
        raise ConfigError("--stop '': expected a text that is not empty")
    console = Console(as_json)
    chosen = list(islice(read_prompts(prompts, prompt_field), limit))
    if not chosen:
        raise InputError(f"{prompts}: has no prompt")
    loaded = load_language_model(model, tokenizer_of, retained)
    records: list[dict[str, Any]] = []
    with console.progress("generating", total=len(chosen), unit="prompts") as advance:
        for prompt in chosen:
            generated = loaded.generate(prompt, stop=stop, max_tokens=max_tokens)
            records.append({"prompt": prompt, "generated": generated})
            advance(1)
            if output is None:
                console.line(json.dumps(records[-1], ensure_ascii=False))
    if output is not None:
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        storage.write_bytes(output, lines.encode())
        console.line(f"{len(records):,} continuations in {output}")
    about = {"model": model, "step": loaded.step, "max_tokens": max_tokens, "stop": list(stop), "output": output}
    console.result({**about, "records": records})


def read_prompts(file: str, field: str) -> Iterator[str]:
    """The prompts of a file, as they are; in a text file, blank lines are left out.

    Raises: InputError if a record has no text in `field`, or one that UTF-8 cannot write, or the file is not UTF-8.
    """
    from finpile.sources.bytes.compression import split_codecs
    from finpile.sources.bytes.decoding import has_surrogates
    from finpile.sources.readers import whole

    if not split_codecs(file)[0].endswith(_JSON_LINES):
        try:
            text = whole.read_bytes(file, file).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: is not UTF-8: {error.reason} at byte {error.start:,}") from error
        yield from (line for line in text.replace("\r\n", "\n").split("\n") if line.strip())
        return
    with whole.open_stream(file, file) as stream:
        for number, record in whole.json_lines(stream, file):
            prompt = record.get(field) if isinstance(record, dict) else None
            if not isinstance(prompt, str):
                raise InputError(f"{file}:{number}: expected an object with a text in `{field}` (--prompt-field FIELD)")
            if has_surrogates(prompt):
                raise InputError(f"{file}:{number}: `{field}` has half of a surrogate pair, which UTF-8 cannot write")
            yield prompt
