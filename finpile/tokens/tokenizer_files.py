"""Tokenizer files in a folder of any file system; `finpile_tokenizer` itself reads and writes local files only."""

from __future__ import annotations

import tempfile
from pathlib import Path

from finpile_tokenizer import UnigramTokenizer
from finpile_tokenizer.export import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE

from finpile import storage
from finpile.file_systems import open_file
from finpile.layout import Layout

#: The files of a tokenizer; the folder has other, larger files that loading does not need.
FILES = (TOKENIZER_FILE, CONFIG_FILE, VOCABULARY_FILE)
#: The record of the training.
TRAINING_FILE = "training.json"


def save_tokenizer(tokenizer: UnigramTokenizer, url: str) -> None:
    """Writes the tokenizer's files into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        for name in FILES:
            storage.write_bytes(storage.join(url, name), Path(folder, name).read_bytes())


def load_tokenizer(url: str) -> UnigramTokenizer:
    """The tokenizer in a folder."""
    if "://" not in url:
        return UnigramTokenizer.load(url)
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            with open_file(storage.join(url, name)) as stream:
                Path(folder, name).write_bytes(stream.read())
        return UnigramTokenizer.load(folder)


def tokenizer_checksum(layout: Layout) -> str:
    """BLAKE2b-128 of tokenizer.json, which identifies the tokenizer of a token shard."""
    return storage.digest_of(storage.join(layout.tokenizer, TOKENIZER_FILE))[0]
