"""The tokenizer that a corpus file names: it is read and opened once, before anything is written."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from finpile import storage
from finpile.config.tokenizer import TokenizerConfig
from finpile.errors import ConfigError
from finpile.tokens.tokenizer_files import USED_FILE, local_tokenizer
from finpile.tokens.tokenizers.opening import choose_end, open_used, open_with
from finpile.tokens.tokenizers.protocol import Tokenizer
from finpile.tokens.tokenizers.used import UsedFile, UsedTokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenTokenizer:
    """A tokenizer that a corpus file names: its record, and the content of its files."""

    record: UsedTokenizer
    contents: Mapping[str, bytes]

    @classmethod
    def of_config(cls, config: TokenizerConfig, root: str) -> GivenTokenizer:
        """Reads and opens the tokenizer of `tokenizer.use`.

        Raises: ConfigError or InputError if there is none, or no token can end documents.
        """
        with _local(config, root) as path:
            return cls._opened(path, config)

    @classmethod
    def of_folder(cls, folder: str) -> GivenTokenizer:
        """That of a folder that a build wrote."""
        record = UsedTokenizer.read(folder)
        return cls(
            record=record,
            contents={file.name: storage.read_bytes(storage.join(folder, file.name)) for file in record.files},
        )

    @classmethod
    def _opened(cls, path: Path, config: TokenizerConfig) -> GivenTokenizer:
        kind, files, tokenizer = open_with(path, config.pattern)
        end = choose_end(tokenizer, config.end_of_document)
        names = kind.published or [file.name for file in files]
        contents = {name: file.read_bytes() for name, file in zip(names, files, strict=True)}
        record = UsedTokenizer(
            kind=kind.name,
            files=tuple(UsedFile.of(name, content) for name, content in contents.items()),
            pattern=config.pattern or (files[0].stem if kind.takes_pattern else None),
            end_of_document=end,
            eot_id=tokenizer.eot_id,
            vocab_size=tokenizer.vocab_size,
        )
        return cls(record=record, contents=contents)

    def opened(self) -> Tokenizer:
        """The tokenizer."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder)
            return open_used(Path(folder), "tokenizer")

    def write(self, folder: str) -> None:
        """Writes the files, and `use.json`."""
        storage.write_files(folder, self.contents)
        storage.write_json(storage.join(folder, USED_FILE), self.record.to_json())


def _local(config: TokenizerConfig, root: str) -> AbstractContextManager[Path]:
    place = storage.below(root, config.use or "")
    if "://" not in place and not Path(place).exists():
        raise ConfigError(f"tokenizer.use: {place} is not there: give the path of a tokenizer, relative to `root`")
    return local_tokenizer(place)
