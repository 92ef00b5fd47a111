"""Token shards in the formats of other training systems. The built-in ones are the modules of `finpile.tokens.exports`.

DIR/tokens.bin, tokens.idx     megatron: Megatron-LM and GPT-NeoX; a document is a sequence of theirs
DIR/index.json, shard.*.mds    mds: MosaicML streaming; a sample is a training sequence, column `tokens`
DIR/tokens.npy                 npy: all tokens in one row
DIR/finpile.json               what the ids mean: vocabulary, `<|endoftext|>`, tokenizer, lengths
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from finpile import storage
from finpile.errors import ConfigError
from finpile.plugins.registry import Registry
from finpile.tokens.store import TokenStore

ABOUT_NAME = "finpile.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Export:
    """A format, under the name that `--format` gives."""

    name: str
    write: Callable[[TokenStore, str], tuple[list[str], int]]
    """`write(store, folder)`: names of the files that it wrote into the folder, and the number of entries."""
    entries: str
    """What an entry of the format is, such as `documents`, `sequences` or `tokens`."""


EXPORTS: Registry[Export] = Registry(
    "--format", package="finpile.tokens.exports", attribute="EXPORT", group="finpile.exports"
)


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    files: list[str]
    """Relative to the folder."""
    num_tokens: int
    entries: str
    """`Export.entries`."""
    num_entries: int


def export_tokens(store: TokenStore, folder: str, to: str) -> Exported:
    """Writes all tokens of a store to a folder, in the order of the store; equal tokens give equal bytes.

    Nothing is left in the folder after an error or an interruption, so that the export can be made again.

    Raises: ConfigError if the folder holds files, or the format is unknown; IntegrityError if a shard of a build is
    damaged.
    """
    export = EXPORTS.get(to)
    if storage.exists(folder) and storage.list_files(folder):
        raise ConfigError(f"-o {folder}: holds files; expected a new or an empty folder")
    about = {
        **{name: value for name, value in asdict(store.meta).items() if name != "sources"},
        "num_tokens": store.num_tokens,
        "format": to,
    }
    try:
        names, count = export.write(store, folder)
        storage.write_json(storage.join(folder, ABOUT_NAME), about)
    except BaseException:
        storage.remove_files(folder, storage.list_files(folder))
        raise
    return Exported([*names, ABOUT_NAME], store.num_tokens, export.entries, count)
