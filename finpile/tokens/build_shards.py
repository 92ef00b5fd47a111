"""The token shards of a build or of a snapshot, compared with what its manifest says of them.

A shard is compared before its ids are used for the first time in a process, and once only: shards are mapped into
memory and read in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output.layout import Layout
from finpile.output.published_files import Advance, PublishedFile
from finpile.output.snapshots import BUILD, published_files
from finpile.output.stage_record import fingerprint
from finpile.storage.file_systems import read_buffer
from finpile.tokens.store import SHARD_SUFFIX, TokenStore

#: Files that this process has compared.
_checked: set[PublishedFile] = set()


def open_shards(folder: str, advance: Advance = lambda size_bytes: None) -> TokenStore:
    """The store of a folder. Of a build, each shard is compared with the manifest when it is first used.

    `advance` receives the bytes of the shards that are read.

    Raises: as `recorded_shards` and `TokenStore.open`.
    """
    shards = recorded_shards(folder)

    def read(url: str) -> pa.Buffer:
        data = read_checked(shards[url]) if shards else read_buffer(url)
        advance(data.size)
        return data

    store = TokenStore.open(folder, read)
    for url, count in zip(store.urls, store.counts, strict=True):
        if shards and shards[url].record.num_rows != count:
            raise shards[url].damage(f"has {count:,} sequences, expected {shards[url].record.num_rows:,}")
    return store


def recorded_shards(folder: str) -> dict[str, PublishedFile]:
    """The shards that a manifest lists below a folder, by path or URL; none if the folder is in no build.

    Raises: IntegrityError if the shards there are others; InputError if a build is changing the folder.
    """
    root, number, part = _place(folder)
    layout = Layout(root)
    if not part or not storage.is_file(layout.manifest):
        return {}
    files = [file for file in published_files(layout, number).below(part) if file.path.endswith(SHARD_SUFFIX)]
    shards = {storage.join(folder, file.path.removeprefix(f"{part}/")): file for file in files}
    there = {storage.join(folder, name) for name in storage.list_files(folder) if name.endswith(SHARD_SUFFIX)}
    if missing := sorted(shards.keys() - there):
        raise shards[missing[0]].damage("is missing")
    if others := sorted(there - shards.keys()):
        raise IntegrityError(f"{others[0]} is in no manifest of {layout.root}: move it to another folder")
    return shards


def shards_digest(store: TokenStore) -> str:
    """32 hex digits over the SHA-256 of the shards of a store, in their order: equal ids, equal digest.

    Those of a build are taken from its manifest; others are read.

    Raises: as `recorded_shards`.
    """
    recorded: dict[str, PublishedFile] = {}
    for folder in sorted({url.rpartition("/")[0] for url in store.urls}):
        recorded |= recorded_shards(folder)
    checksums = (recorded[url].record.checksum if url in recorded else storage.digest_of(url) for url in store.urls)
    return fingerprint(list(checksums))


def _place(folder: str) -> tuple[str, int, str]:
    """The output folder that a folder of token shards is in, the number of its snapshot, and its path there.

    >>> _place("out/snapshots/000002/tokens/split=heldout/dataset=D/source=S")
    ('out', 2, 'snapshots/000002/tokens/split=heldout/dataset=D/source=S')
    >>> _place("tokens/split=train"), _place("my/shards")
    (('.', 0, 'tokens/split=train'), ('', 0, ''))
    """
    parts = folder.rstrip("/").split("/")
    tokens = (at for at, name in enumerate(parts[:-1]) if name == "tokens" and parts[at + 1].startswith("split="))
    at = max(tokens, default=-1)
    if at < 0:
        return "", BUILD, ""
    number = BUILD
    if at > 1 and parts[at - 2] == "snapshots" and parts[at - 1].isdigit():
        number, at = int(parts[at - 1]), at - 2
    root = "/".join(parts[:at]) or ("/" if folder.startswith("/") else ".")
    return root, number, "/".join(parts[at:])


def check_shards(
    shards: Iterable[Mapping[str, PublishedFile]], advance: Advance, rank: int = 0, world_size: int = 1
) -> None:
    """Reads the shards of folders, of which this process has every `world_size`-th; `advance` receives their bytes.

    Raises: IntegrityError if one is missing or damaged.
    """
    files = [folder[url] for folder in shards for url in sorted(folder)]
    for file in files[rank::world_size]:
        read_checked(file)
        advance(file.record.size_bytes)


def read_checked(file: PublishedFile) -> pa.Buffer:
    """The bytes of a file, compared with the manifest if this process has not done so.

    Raises: IntegrityError if it is missing or damaged.
    """
    if file in _checked:
        return read_buffer(storage.join(file.root, file.path))
    data = file.buffer()
    _checked.add(file)
    return data
