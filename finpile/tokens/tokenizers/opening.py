"""Opens the tokenizer at a path, in a build, or in a corpus file: its kind follows from its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from finpile.errors import ConfigError, InputError
from finpile.output.layout import Layout
from finpile.plugins.tokenizer import TOKENIZERS, TokenizerKind
from finpile.tokens.tokenizer_files import USED_FILE, check_tokenizer, local_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer
from finpile.tokens.tokenizers.used import UsedTokenizer

#: Generic file and folder names; the parent folder then names the tokenizer.
_GENERIC = {"tokenizer", "vocabulary", "spiece", "sentencepiece", "encoder", "vocab", "model", "vocab.bpe", "merges"}
#: Tokens that end documents if the corpus file names none, the first that there is.
COMMON_ENDS = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "[SEP]")


def open_tokenizer(path: str | Path, name: str | None = None) -> Tokenizer:
    """The tokenizer at a path or fsspec URL, named `name` or after its file or folder.

    Raises: InputError if the path does not exist or has no tokenizer of a known kind.
    """
    with local_tokenizer(path) as file:
        if not file.exists():
            raise InputError(f"{path}: no tokenizer is there; expected {looked_for()}")
        for folder in (file, file / "tokenizer"):
            if (folder / USED_FILE).is_file():
                return open_used(folder, name or _own_name(file))
        kind, files = find_kind(file)
        return _open(kind, files, name or _own_name(file))


def open_build_tokenizer(layout: Layout, *, is_checked: bool = False) -> Tokenizer:
    """The tokenizer of a build; with `is_checked`, its files are compared with its manifest, if it has one.

    Raises: InputError if there is none; IntegrityError if a file is damaged.
    """
    if is_checked:
        check_tokenizer(layout)
    with local_tokenizer(layout.tokenizer) as folder:
        if (folder / USED_FILE).is_file():
            return open_used(folder, "tokenizer")
        own = TOKENIZERS.get("finpile")
        return cast(Tokenizer, own.open([folder / "tokenizer.json"], "tokenizer", None))


def open_used(folder: Path, name: str) -> Tokenizer:
    """The tokenizer of a folder that a build with `tokenizer.use` wrote.

    Raises: InputError for damaged files.
    """
    used = UsedTokenizer.read(str(folder))
    files = [folder / file.name for file in used.files]
    found = _open(TOKENIZERS.get(used.kind), files, name, used.pattern)
    found.ends_with(used.end_of_document)
    return found


def choose_end(tokenizer: Tokenizer, asked: str | None) -> str:
    """Makes `asked`, or else the first common one, the token that ends documents; returns it.

    Raises: ConfigError if the tokenizer has no such token.
    """
    names = tokenizer.control_names()
    found = asked or next((name for name in COMMON_ENDS if name in names), None)
    if found is None:
        known = ", ".join(names[:8]) or "none"
        raise ConfigError(
            f"tokenizer.use: no token ends documents: name one of the special tokens ({known}) with `end_of_document`"
        )
    tokenizer.ends_with(found)
    return found


def find_kind(path: Path) -> tuple[TokenizerKind, Sequence[Path]]:
    """The kind of the tokenizer at a path, and its files.

    Raises: InputError if no kind is there.
    """
    for kind in _kinds():
        if files := kind.find(path):
            return kind, files
    if (path / "tokenizer").is_dir():
        return find_kind(path / "tokenizer")
    raise InputError(f"{path}: holds no tokenizer that is known; expected {looked_for()}")


def looked_for() -> str:
    """The files of all kinds, for messages."""
    return "; or ".join(kind.looked_for for kind in _kinds())


def _kinds() -> list[TokenizerKind]:
    """All kinds, in their order."""
    return sorted(map(TOKENIZERS.get, TOKENIZERS.names()), key=lambda kind: (kind.order, kind.name))


def _open(kind: TokenizerKind, files: Sequence[Path], name: str, pattern: str | None = None) -> Tokenizer:
    if pattern is not None and not kind.takes_pattern:
        raise ConfigError(f"tokenizer.pattern: {files[0].name} has a pattern of its own: remove it")
    return cast(Tokenizer, kind.open(files, name, pattern))


def open_with(path: Path, pattern: str | None = None) -> tuple[TokenizerKind, Sequence[Path], Tokenizer]:
    """The tokenizer at a local path with a pattern: its kind and files, too.

    Raises: InputError or ConfigError as `open_tokenizer`.
    """
    if not path.exists():
        raise InputError(f"{path}: no tokenizer is there; expected {looked_for()}")
    kind, files = find_kind(path)
    return kind, files, _open(kind, files, _own_name(path), pattern)


def _own_name(path: Path) -> str:
    path = path.resolve()
    while path.stem in _GENERIC and path.parent.name:
        path = path.parent
    return path.stem if path.is_file() else path.name
