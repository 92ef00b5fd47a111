"""The type of arguments and options that name a file or folder, and options of several commands about inputs."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import click

from finpile.errors import ConfigError, StoreError
from finpile_cli.option_groups import Command

_SHOWN = 120


class PathOrUrl(click.Path):
    """A local path, whose leading `~` is this user's home, or an fsspec URL of a file system that can be opened.

    A shell expands `~` only at the beginning of a word, so not in `--output=~/corpus`.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises: ConfigError for a path that no file can have, and for a URL of an unknown scheme."""
        text = os.fspath(value)
        if "://" in text:
            from finpile.storage.file_systems import check_schemes  # fsspec: not for commands without a URL

            check_schemes(text)
            return text
        text = os.path.expanduser(text)
        _check_path(text)
        return super().convert(text, param, ctx)


class Output(PathOrUrl):
    """A folder or file that a command writes at its end: an error about it comes before the work."""

    def __init__(self, *, is_folder: bool = True) -> None:
        super().__init__(dir_okay=is_folder, file_okay=not is_folder)
        self._is_folder = is_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises: ConfigError if a folder on the way there is a file, cannot be written, or is that of a build."""
        path = super().convert(value, param, ctx)
        check_writable(path, is_folder=self._is_folder)
        check_not_in_build(path)
        return path


class _BuildFolder(PathOrUrl):
    """The folder of a build, or of another result of several runs, which may exist."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Raises: ConfigError if it lies in the folder of another build."""
        path = super().convert(value, param, ctx)
        _check_folders(f"-o {path}", _absolute(path).rpartition("/")[0])
        return path


def check_writable(path: str, *, is_folder: bool = True) -> None:
    """Raises: ConfigError for a local folder or file that cannot be written."""
    if "://" in path:
        return
    place = os.path.abspath(path)
    if not is_folder:
        if os.path.exists(place) and not os.access(place, os.W_OK):
            raise ConfigError(f"{path}: cannot be written: name another file")
        place = os.path.dirname(place)
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise ConfigError(f"{path}: {place} is a file, not a folder: name another place to write to")
    if not os.access(place, os.W_OK | os.X_OK):
        raise ConfigError(f"{path}: {place} cannot be written: name another place")


def _absolute(path: str) -> str:
    return path.rstrip("/") if "://" in path else os.path.abspath(path)


def check_not_in_build(path: str, named: str = "-o") -> None:
    """Raises: ConfigError if a folder, or one above it, is that of a build, which has the files of its manifest."""
    _check_folders(f"{named} {path}", _absolute(path))


def _check_folders(named: str, folder: str) -> None:
    while folder.strip("/") and not folder.endswith(":/"):
        if _is_build(folder):
            raise ConfigError(f"{named}: {folder} has a build, to which no files can be added: name another folder")
        folder = folder.rpartition("/")[0]


def _is_build(folder: str) -> bool:
    manifest = f"{folder}/manifest.json"
    if "://" not in folder and not os.path.isfile(manifest):
        return False
    from finpile import storage

    try:
        found = storage.read_json(manifest)
    except (OSError, ValueError, StoreError):  # what a store lacks or denies, the command itself reports
        return False
    return isinstance(found, dict) and {"version", "stages", "checksum"} <= found.keys()


def _check_path(path: str) -> None:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
    try:
        os.lstat(path)
    except ValueError as error:
        raise ConfigError(f"{shown!r} is not a path ({error}): name another") from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise ConfigError(f"{shown}: File name too long ({len(path):,} characters): name a shorter path") from None


def output_option(metavar: str) -> Callable[[Command], Command]:
    """The folder that a command makes, of a build under the name OUT."""
    return click.option(
        "-o",
        "--output",
        required=True,
        type=_BuildFolder(),
        metavar=metavar,
        help="Output folder: a path or fsspec URL.",
    )


root_option = click.option(
    "--root",
    default=None,
    type=PathOrUrl(),
    metavar="DIR",
    help="Folder that the config's relative paths start from, instead of its `root`.",
)

text_field_option = click.option(
    "--text-field",
    default="text",
    show_default=True,
    metavar="FIELD",
    help="Field of the records with their text; dots reach into objects.",
)

takedowns_option = click.option(
    "--takedowns-to",
    type=PathOrUrl(),
    metavar="FILE",
    help="With --fresh, which brings back documents that were taken down: save their ids for `finpile remove OUT "
    "--documents-from FILE`.",
)
