"""Options shared by the commands that run pipelines: the engine options, and Beam's own options after `--`."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from finpile_pipelines.runner.engine import Engine

    from finpile_cli.display import Display

Command = TypeVar("Command", bound=Callable[..., Any])


@contextmanager
def heavy_imports(*, is_lean: bool = False) -> Iterator[None]:
    """A context for imports that create many permanent objects.

    Disables the garbage collector during the imports and excludes the created objects from later collections. With
    `is_lean`, packages are left out that only Beam's own connectors use: for the local runner without added stages.
    """
    gc.disable()
    try:
        if is_lean:
            from finpile_pipelines.runner.lean_imports import import_lean

            import_lean()
        yield
    finally:
        gc.freeze()
        gc.enable()


class BeamOptionsLast(click.Command):
    """A command whose options after `--` are Beam's; any number of arguments may precede `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta["beam_options"] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- BEAM_OPTIONS...]"]


def engine_options(command: Command) -> Command:
    """Adds --runner, --workers, --transport, --fresh and --replace, in this order."""
    replace = click.option("--replace", is_flag=True, help="Overwrite what was made of something else.")
    fresh = click.option("--fresh", is_flag=True, help="Forget what an earlier run finished.")
    return placement_options(fresh(replace(command)))


def placement_options(command: Command) -> Command:
    """Adds --runner, --workers and --transport, in this order."""
    options = (
        click.option(
            "--runner",
            type=click.Choice(["local", "spark", "flink", "dataflow"]),
            default="local",
            show_default=True,
            help="Where the pipelines run; all but local take their settings after `--`.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="Workers of the local runner, threads or processes.  [default: CPU cores]",
        ),
        click.option(
            "--transport",
            type=click.Choice(["files", "shuffle"]),
            help="How exchanges travel.  [default: files on local]",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def make_engine(runner: Any, workers: int | None, transport: Any, display: Display) -> Engine:
    """The engine for the given options, with `display` as its watcher; Beam's options are those after `--`."""
    from finpile_pipelines.runner.beam_parts import changed
    from finpile_pipelines.runner.engine import Engine

    for message in changed(runner):
        display.line(f"warning: {message}", style="yellow")
    return Engine(
        runner=runner,
        num_workers=workers or os.cpu_count() or 1,
        beam_args=click.get_current_context().meta["beam_options"],
        transport=transport,
        watch=display.watch,
    )
