"""The command in this process, as `finpile_cli.main.main` runs it in one of its own, and the commands it has."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import click


class SoftExit:
    """The module `os`, but for `_exit`, which would take pytest with it."""

    def __getattr__(self, name: str) -> Any:
        return sys.exit if name == "_exit" else getattr(os, name)


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands below a group, by the words that call them."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command
