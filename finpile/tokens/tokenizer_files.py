"""Tokenizer files at local paths and fsspec URLs; libraries of tokenizers read and write local files only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from finpile_tokenizer import TokenizerError, UnigramTokenizer
from finpile_tokenizer.export import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE

from finpile import storage
from finpile.errors import InputError
from finpile.output.layout import Layout
from finpile.output.snapshots import BUILD, published_files

#: The files of a tokenizer; the folder has other, larger files that loading does not need.
FILES = (TOKENIZER_FILE, CONFIG_FILE, VOCABULARY_FILE)
#: The record of the training.
TRAINING_FILE = "training.json"
#: What names of files that a tokenizer is read from end with: those of FinPile, Hugging Face, GPT-2, SentencePiece.
_READ = (TOKENIZER_FILE, VOCABULARY_FILE, "encoder.json", "vocab.bpe", ".model")
#: The folder of a build's tokenizer, in its output folder.
_FOLDER = "tokenizer"


def save_tokenizer(tokenizer: UnigramTokenizer, url: str) -> None:
    """Writes the tokenizer's files into a folder."""
    with saved_to(url) as folder:
        tokenizer.save(folder)


@contextmanager
def saved_to(url: str) -> Iterator[str]:
    """A temporary folder, whose files are written to the folder `url` at the end unless an error occurs."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder
        for name in sorted(os.listdir(folder)):
            storage.write_bytes(storage.join(url, name), Path(folder, name).read_bytes())


def load_tokenizer(url: str) -> UnigramTokenizer:
    """The tokenizer in a folder, or that of its file tokenizer.json.

    Raises: TokenizerError if there is none.
    """
    with local_tokenizer(url) as path:
        return UnigramTokenizer.load(path)


@contextmanager
def local_tokenizer(url: str | Path) -> Iterator[Path]:
    """A local path of a tokenizer's file or folder: the path itself, or that of a copy, which is removed at the end.

    Of the output folder of a build the folder of its tokenizer is copied. If nothing is there, no copy is made. Errors
    about the copy name the URL.
    """
    if "://" not in str(url):
        yield Path(url)
        return
    scheme = str(url).split("://")[0]
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield _copy(str(url).rstrip("/"), folder)
        except (InputError, TokenizerError) as error:
            raise type(error)(str(error).replace(f"{folder}/", f"{scheme}://")) from error


def _copy(url: str, folder: str) -> Path:
    """Copies a tokenizer to the path below `folder` that it has in its store."""
    parent, _, file = url.rpartition("/") if url.endswith(_READ) else (url, "", "")
    try:
        names = storage.list_folder(parent)
    except FileNotFoundError:
        names = []
    found = [name for name in names if name.endswith(_READ)]
    if not found and _FOLDER in names:
        return _copy(storage.join(url, _FOLDER), folder)
    target = Path(folder, *parent.split("://", 1)[1].split("/"))
    for name in found:
        target.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(storage.read_bytes(storage.join(parent, name)))
    return target / file


def load_build_tokenizer(layout: Layout) -> UnigramTokenizer:
    """The tokenizer of a build, whose files are compared with its manifest, if it has one.

    Raises: TokenizerError if there is none; IntegrityError if a file is damaged; InputError if a build is changing it.
    """
    check_tokenizer(layout)
    return load_tokenizer(layout.tokenizer)


def check_tokenizer(layout: Layout) -> None:
    """Compares the files of the tokenizer of a build with its manifest, if it has one.

    Raises: IntegrityError if one is damaged; InputError if a build is changing the folder.
    """
    if storage.is_file(layout.manifest):
        for file in published_files(layout, BUILD).below(_FOLDER):
            if file.path.endswith(FILES):
                file.check()


def tokenizer_checksum(layout: Layout) -> str:
    """BLAKE2b-128 of tokenizer.json, which identifies the tokenizer of a token shard."""
    return storage.digest_of(storage.join(layout.tokenizer, TOKENIZER_FILE))[0]
