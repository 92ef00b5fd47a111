"""What options of several commands share: values that a command receives as one argument, and kinds of values."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from finpile.errors import ConfigError

Command = TypeVar("Command", bound=Callable[..., Any])
_UNITS = ("", "K", "M", "G", "T", "P")


class Bytes(click.ParamType[int]):
    """A number of bytes with a unit: 500MB, 1TB, 8GiB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Raises: click.BadParameter for another text."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGTP]?)(i?)B?", str(value).strip(), re.IGNORECASE)
        size = 0.0
        if found is not None:
            size = float(found[1]) * (1024 if found[3] else 1000) ** _UNITS.index(found[2].upper())
        if not 1 <= size < 1 << 63:
            self.fail(f"{value!r} is not a size: expected a number and a unit, such as 500GB or 8GiB", param, ctx)
        return int(size)


def grouped(
    argument: str, make: Callable[..., object], options: Sequence[Callable[[Any], Any]]
) -> Callable[[Command], Command]:
    """Adds options, in this order, to a command, which receives `make(**values)` of them as `argument`."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call(*args: Any, **values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            return command(*args, **{argument: make(**own)}, **values)

        num_others = len(getattr(command, "__click_params__", ()))
        for option in reversed(options):
            option(call)
        names = [parameter.name for parameter in call.__click_params__[num_others:]]  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


@contextmanager
def named_by_options(prefix: str = "") -> Iterator[None]:
    """Within it, errors about a key of the corpus file, below `prefix`, name the option of the command that sets it:
    `--near-edit-similarity` for `near.edit_similarity`, `--text-field` for `fields.text`."""
    try:
        yield
    except ConfigError as error:
        key, _, what = str(error).removeprefix(prefix).partition(" ")
        option = "--" + re.sub(r"^fields\.(\w+)$", r"\1-field", key).replace(".", "-").replace("_", "-")
        if not any(option in parameter.opts for parameter in click.get_current_context().command.params):
            raise
        raise ConfigError(f"{option} {what}") from None


def number_or(word: str) -> Any:
    """A callback for options whose value is a number from 1, or `word`."""

    def read(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
        del ctx
        if value is None or value == word:
            return value
        if not re.fullmatch(r"[0-9]{1,18}", value) or int(value) < 1:
            raise click.BadParameter(f"{value!r} is neither {word} nor a whole number from 1", param=parameter)
        return int(value)

    return read


#: Conditions on documents.
dataset_option = click.option("--dataset", metavar="DATASET", help="Documents of this dataset.")
source_option = click.option("--source", metavar="SOURCE", help="Documents of this source.")
where_option = click.option(
    "--where",
    multiple=True,
    metavar="CONDITION",
    help="Documents with COLUMN=PATTERN, of * and ?, or COLUMN<VALUE, also with !=, <=, > and >=; COLUMN can be bytes "
    "or meta.KEY. May be repeated.",
)
#: Of commands that run the stages of a build, and of plans.
memory_option = click.option(
    "--memory",
    type=Bytes(),
    metavar="SIZE",
    help="Memory of one machine that the command may take, such as 8GiB: fewer workers, or an error that states the "
    "memory needed.",
)
shard_size_option = click.option(
    "--shard-size",
    type=Bytes(),
    metavar="SIZE",
    help="Text of a shard, a task's worth of work, such as 4MiB: smaller ones take less memory in stages that hold one "
    "and make more tasks. To continue a build, give the same size.  [default: 4MiB to 128MiB by size of the inputs]",
)
split_option = click.option(
    "--split",
    type=click.Choice(["train", "heldout"]),
    default="train",
    show_default=True,
    help="Training or held-out documents.",
)
