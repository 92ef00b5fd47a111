"""The formats, and what an export writes beside them.

DIR/tokens.bin, tokens.idx     megatron: Megatron-LM and GPT-NeoX; a document is a sequence of theirs
DIR/index.json, shard.*.mds    mds: MosaicML streaming; a sample is a training sequence, column `tokens`
DIR/tokens.npy                 npy: all tokens in one row
DIR/finpile.json               what the ids mean: vocabulary, `<|endoftext|>`, tokenizer, lengths
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from finpile import storage
from finpile.errors import ConfigError, IntegrityError
from finpile.tokens.export.mds import write_mds
from finpile.tokens.export.megatron import write_megatron
from finpile.tokens.export.npy import write_npy
from finpile.tokens.store import TokenStore

ABOUT_NAME = "finpile.json"

#: Writers by the name of their format: the store and a folder in, names of files and number of entries out.
FORMATS: Mapping[str, Callable[[TokenStore, str], tuple[list[str], int]]] = {
    "megatron": write_megatron,
    "mds": write_mds,
    "npy": write_npy,
}
_ENTRIES = {"megatron": "documents", "mds": "sequences", "npy": "tokens"}


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    files: list[str]
    """Relative to the folder."""
    num_tokens: int
    entries: str
    """What an entry of the format is: `documents`, `sequences` or `tokens`."""
    num_entries: int


def export_tokens(store: TokenStore, folder: str, to: str) -> Exported:
    """Writes all tokens of a store to a folder, in the order of the store; equal tokens give equal bytes.

    Raises: ConfigError if the folder holds files, or the format is unknown; IntegrityError if a shard of a build is
    damaged: then nothing is left in the folder.
    """
    if to not in FORMATS:
        raise ConfigError(f"--to {to}: expected one of {', '.join(FORMATS)}")
    if storage.exists(folder) and storage.list_files(folder):
        raise ConfigError(f"-o {folder}: holds files; expected a new or an empty folder")
    try:
        names, count = FORMATS[to](store, folder)
    except IntegrityError:
        storage.remove_files(folder, storage.list_files(folder))
        raise
    about = {
        **{name: value for name, value in asdict(store.meta).items() if name != "sources"},
        "num_tokens": store.num_tokens,
        "format": to,
    }
    storage.write_json(storage.join(folder, ABOUT_NAME), about)
    return Exported([*names, ABOUT_NAME], store.num_tokens, _ENTRIES[to], count)
