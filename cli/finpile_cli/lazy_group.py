"""A group of commands that imports each command on first use."""

from __future__ import annotations

import importlib
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are given by name: `lazy` maps each to its module, attribute and line of help."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._lazy)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in self._lazy:
            return None
        module, attribute, _ = self._lazy[name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Raises: click.UsageError for an unknown command, with the nearest one."""
        if args[0] not in self._lazy and not args[0].startswith("-"):
            from finpile.errors import nearest

            ctx.fail(f"No such command {args[0]!r}{nearest(args[0], self._lazy)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, _, summary) in self._lazy.items()])
