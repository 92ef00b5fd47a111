"""The stage `tokenizer` with `tokenizer.use`: copies the files of a tokenizer, and records what was opened."""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from finpile.config import CorpusConfig
from finpile.output.stage_record import file_records
from finpile.plugins.tokenizer import TOKENIZERS
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile.tokens.tokenizers.given import GivenTokenizer
from finpile_pipelines.stage import Context, Outcome


def prepare(config: CorpusConfig) -> GivenTokenizer | None:
    """The tokenizer that the corpus file names; None if one is trained.

    Raises: ConfigError or InputError if it cannot be opened.
    """
    if config.tokenizer is None or config.tokenizer.use is None:
        return None
    return GivenTokenizer.of_config(config.tokenizer, config.root)


def given(context: Context) -> GivenTokenizer:
    """That of the corpus file, or of the build of which the corpus is a part."""
    if context.whole is not None:
        return GivenTokenizer.of_folder(context.whole.tokenizer)
    found: GivenTokenizer = context.prepared["tokenizer"]
    return found


def settings(context: Context) -> list[Any]:
    """The record of the tokenizer, with the digests of its files: not the place from which they are read."""
    return [given(context).record.to_json()]


def run(context: Context) -> Outcome:
    """Writes `tokenizer/`."""
    layout, tokenizer = context.layout, given(context)
    tokenizer.write(layout.tokenizer)
    record, kind = asdict(tokenizer.record), TOKENIZERS.get(tokenizer.record.kind)
    counts = {name: record[name] for name in ("kind", "vocab_size", "end_of_document", "eot_id", "pattern")}
    counts["library"] = f"{kind.library} {version(kind.library)}" if kind.library else "finpile"
    counts["checksum"] = tokenizer_checksum(layout)
    return Outcome(counts=counts, files=file_records(layout.root, "tokenizer"))
