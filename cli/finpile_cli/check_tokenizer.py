"""The tokenizer of `tokenizer.use`, as `finpile check` opens and tries it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from finpile_cli.console import Console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from finpile.config import CorpusConfig


def check_tokenizer(console: Console, config: CorpusConfig, texts: Sequence[str]) -> dict[str, Any] | None:
    """Opens the tokenizer and encodes the first documents; None if the corpus file names none.

    Raises: ConfigError or InputError if it cannot be used.
    """
    if config.tokenizer is None or config.tokenizer.use is None:
        return None
    import pyarrow as pa

    from finpile.report.warnings import losses_line
    from finpile.tokens.store import id_type
    from finpile.tokens.tokenizers.given import GivenTokenizer
    from finpile.tokens.tokenizers.protocol import Losses

    given = GivenTokenizer.of_config(config.tokenizer, config.root)
    record, tokenizer = given.record, given.opened()
    column = pa.array(texts, pa.large_string())
    ids = tokenizer.encode_array(column)
    losses = tokenizer.losses(column, ids)
    num_bytes, num_tokens = sum(len(text.encode()) for text in texts), len(ids.values)
    width = id_type(record.vocab_size).name
    line = f"tokenizer: {record.kind}, {record.vocab_size:,} ids ({width}); documents end with {record.end_of_document}"
    per_token = num_bytes / num_tokens if num_tokens else None
    if per_token is not None:
        line += f"; {per_token:.2f} bytes a token in the first {len(texts):,} documents"
    console.line(line)
    if losses != Losses():
        console.warn(losses_line(losses.num_unknown, losses.num_altered, len(texts)))
    about = {name: value for name, value in record.to_json().items() if name != "files"}
    return {**about, "documents": len(texts), "bytes_per_token": per_token, **asdict(losses)}
