"""Tokenizer files at local paths and fsspec URLs; libraries of tokenizers read and write local files only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from finpile_tokenizer import TokenizerError, UnigramTokenizer, Vocabulary
from finpile_tokenizer.export import CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE, write_tokenizer

from finpile import storage
from finpile.errors import InputError
from finpile.output.layout import Layout
from finpile.output.snapshots import BUILD, published_files

#: The files of a tokenizer; the folder has other, larger files that loading does not need.
FILES = (TOKENIZER_FILE, CONFIG_FILE, VOCABULARY_FILE)
#: The record of the training.
TRAINING_FILE = "training.json"
#: The record of a tokenizer that a build uses instead of training one.
USED_FILE = "use.json"
#: What names of files that a tokenizer is read from end with: those of FinPile, Hugging Face, GPT-2, SentencePiece and
#: tiktoken.
_READ = (
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    USED_FILE,
    "encoder.json",
    "vocab.bpe",
    "vocab.json",
    "merges.txt",
    ".model",
    ".tiktoken",
)
#: The folder of a build's tokenizer, in its output folder.
_FOLDER = "tokenizer"


def save_tokenizer(vocabulary: Vocabulary, url: str) -> None:
    """Writes the files of the tokenizer with this vocabulary into a folder."""
    with saved_to(url) as folder:
        write_tokenizer(folder, vocabulary)


@contextmanager
def saved_to(url: str) -> Iterator[str]:
    """A temporary folder, whose files are written to the folder `url` at the end unless an error occurs."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder
        for name in sorted(os.listdir(folder)):
            storage.write_bytes(storage.join(url, name), Path(folder, name).read_bytes())


def load_tokenizer(url: str) -> UnigramTokenizer:
    """The tokenizer in a folder, that of its file tokenizer.json, or of the output folder of a build.

    Raises: TokenizerError if there is none.
    """
    with local_tokenizer(url) as path:
        of_build = path / _FOLDER
        is_build = not (path / TOKENIZER_FILE).is_file() and (of_build / TOKENIZER_FILE).is_file()
        return UnigramTokenizer.load(of_build if is_build else path)


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
    parent, _, file = url.rpartition("/") if url.endswith((*_READ, ".json")) else (url, "", "")
    names = storage.names_in(parent)
    found = [name for name in names if name.endswith(_READ) or name == file]
    if not found and _FOLDER in names:
        return _copy(storage.join(url, _FOLDER), folder)
    target = Path(folder, *parent.split("://", 1)[1].split("/"))
    for name in found:
        target.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(storage.read_bytes(storage.join(parent, name)))
    return target / file


def check_tokenizer(layout: Layout) -> None:
    """Compares the files of the tokenizer of a build with its manifest, if it has one.

    Raises: IntegrityError if one is damaged; InputError if a build is changing the folder.
    """
    if storage.is_file(layout.manifest):
        files = published_files(layout, BUILD).below(_FOLDER)
        needed = loaded([file.path for file in files])
        for file in files:
            if file.path in needed:
                file.check()


def loaded(paths: Collection[str]) -> list[str]:
    """Of the paths of published files, those from which the tokenizer of a build is loaded."""
    mine = [path for path in paths if path.startswith(f"{_FOLDER}/")]
    if f"{_FOLDER}/{USED_FILE}" in mine:
        return mine
    return [path for path in mine if path.endswith(FILES)]


def tokenizer_checksum(layout: Layout) -> str:
    """SHA-256 of tokenizer.json, or of use.json, which identifies the tokenizer of a token shard."""
    used = storage.join(layout.tokenizer, USED_FILE)
    return storage.digest_of(used if storage.is_file(used) else storage.join(layout.tokenizer, TOKENIZER_FILE))
