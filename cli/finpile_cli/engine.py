"""Options shared by the commands that run pipelines: the engine options, and Beam's own options after `--`."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import click

from finpile.plugins.engine import ENGINES, LOCAL
from finpile_cli.option_groups import grouped

if TYPE_CHECKING:
    from finpile_pipelines.runner.engine import Engine

    from finpile_cli.display import Display


@contextmanager
def heavy_imports(*, is_lean: bool = False) -> Iterator[None]:
    """A context for imports that create many permanent objects.

    Disables the garbage collector during the imports and excludes the created objects from later collections. With
    `is_lean`, packages are left out that only Beam's own connectors use: for the local runner without added stages, and
    for commands that run no pipeline.
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
    """A command whose options after `--` are Beam's; any number of arguments may precede `--`.

    Of the logs of libraries, only errors are printed.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        cut = args.index("--") if "--" in args else len(args)
        ctx.meta["beam_options"] = tuple(args[cut + 1 :])
        return super().parse_args(ctx, args[:cut])

    def invoke(self, ctx: click.Context) -> Any:
        logging.getLogger().setLevel(logging.ERROR)
        return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- BEAM_OPTIONS...]"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """Where the pipelines of a command run."""

    runner: str
    workers: int | None
    transport: Any

    @property
    def is_local(self) -> bool:
        return self.runner == LOCAL  # an engine that is looked up is imported, and Beam with it

    def engine(self, display: Display) -> Engine:
        """The engine, with `display` as its watcher; Beam's options are those after `--`."""
        from finpile_pipelines.runner.beam_parts import changed
        from finpile_pipelines.runner.engine import Engine

        engine = Engine(
            runner=self.runner,
            num_workers=self.workers or os.cpu_count() or 1,
            beam_args=click.get_current_context().meta["beam_options"],
            transport=self.transport,
            watch=display.watch,
        )
        for message in changed(engine.type.parts):
            display.line(f"warning: {message}", style="yellow")
        return engine


class Again(TypedDict):
    """What becomes of the output of an earlier run."""

    fresh: bool
    replace: bool


#: --runner, --workers and --transport, which a command receives as `placement`.
placement_options = grouped(
    "placement",
    Placement,
    (
        click.option(
            "--runner",
            type=click.Choice(ENGINES.names()),
            default=LOCAL,
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
    ),
)
#: --delta, which a command receives as `tables`.
tables_option = click.option(
    "--delta/--no-delta",
    "tables",
    default=None,
    help="Delta Lake tables of documents and ledger in OUT/delta.  [default: on a local disk]",
)
#: --fresh and --replace, which a command receives as `again`.
again_options = grouped(
    "again",
    Again,
    (
        click.option("--fresh", is_flag=True, help="Ignore the stages that an earlier run finished."),
        click.option("--replace", is_flag=True, help="Overwrite the output of another corpus or other inputs."),
    ),
)
