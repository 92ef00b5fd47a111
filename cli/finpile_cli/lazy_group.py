"""A group of commands that imports each command on first use."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

#: By name of a command: its module, its attribute and its line of help.
Commands = Mapping[str, tuple[str, str, str]]


class LazyGroup(click.Group):
    """A group whose commands are given by name, in sections of its help.

    A name of two words, such as `model train`, is a command of the group `model` in this one; `about` has the help of
    such groups.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Commands], about: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._about = about or {}
        self._lazy = {name: entry for commands in sections.values() for name, entry in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(dict.fromkeys(name.partition(" ")[0] for name in self._lazy))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self._lazy:
            module, attribute, _ = self._lazy[name]
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        own = {
            full.removeprefix(f"{name} "): entry for full, entry in self._lazy.items() if full.startswith(f"{name} ")
        }
        return LazyGroup(name, sections={"Commands": own}, help=self._about.get(name)) if own else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises: click.UsageError for an unknown command, with the nearest one."""
        names = self.list_commands(ctx)
        if args[0] not in names and not args[0].startswith("-"):
            from finpile.errors import nearest

            ctx.fail(f"No such command {args[0]!r}{nearest(args[0], names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._lazy))
        for title, commands in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, (_, _, summary) in commands.items()])
