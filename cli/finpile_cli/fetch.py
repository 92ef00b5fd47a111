"""`finpile fetch`: download archives from their publishers into a local folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from finpile.errors import ConfigError, FetchError, count_of
from finpile.fetch import common_crawl, edgar, wikipedia
from finpile.version import __version__
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.option_groups import Command, grouped
from finpile_cli.paths import Output

if TYPE_CHECKING:
    from datetime import datetime
    from types import ModuleType

    from finpile.fetch.client import Client
    from finpile.fetch.fetched import FetchManifest
    from finpile.fetch.targets import Target
    from finpile.fetch.transfer import Outcome

#: Failures and unreadable lines of an index that are printed; `--json` has all failures.
_NUM_SHOWN = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class _Way:
    """The options of all three commands."""

    output: str
    server: str
    contact: str | None
    rate: float
    connections: int
    check: bool
    as_json: bool


def _checked_server(ctx: click.Context, parameter: click.Parameter, server: str) -> str:
    del ctx, parameter
    if not server.startswith(("https://", "http://")):
        raise ConfigError(f"--server {server}: expected a URL that begins with https://")
    return server.rstrip("/")


def _options(publisher: ModuleType, most_per_second: float) -> Callable[[Command], Command]:
    """The options of a command, which receives them as `way`; `publisher` is a module of `finpile.fetch`."""
    name = publisher.__name__.rpartition(".")[2].replace("_", "").upper()
    options = (
        click.option("-o", "--output", required=True, type=Output(), metavar="DIR", help="Output folder, a local one."),
        click.option(
            "--contact",
            envvar="FINPILE_CONTACT",
            show_envvar=True,
            help='Name and e-mail address to declare in User-Agent: "Example Corp data@example.com".',
        ),
        click.option(
            "--rate",
            type=click.FloatRange(0, most_per_second, min_open=True),
            default=publisher.REQUESTS_PER_SECOND,
            show_default=True,
            help="Requests in a second, at most.",
        ),
        click.option(
            "--connections",
            type=click.IntRange(1, publisher.NUM_CONNECTIONS),
            default=publisher.NUM_CONNECTIONS,
            show_default=True,
            help="Files to download at a time.",
        ),
        click.option("--check", is_flag=True, help="Compare the SHA-256 of the files that are here, too."),
        click.option(
            "--server",
            default=publisher.SERVER,
            show_default=True,
            envvar=f"FINPILE_{name}_SERVER",
            show_envvar=True,
            callback=_checked_server,
            help="URL of the publisher, or of a mirror.",
        ),
        json_option,
    )

    return grouped("way", _Way, options)


def _day(required: bool, name: str, text: str) -> Callable[[Command], Command]:
    return click.option(
        f"--{name}", f"{name}_day", required=required, type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help=text
    )


@click.command()
@_day(True, "from", "First filing day, such as 2021-03-01.")
@_day(False, "to", "Last filing day.  [default: that of --from]")
@click.option("--form", "forms", multiple=True, metavar="FORM", help="A form, such as 10-K or 8-K/A. May be repeated.")
@click.option("--cik", "ciks", multiple=True, type=click.IntRange(1), help="A filer's number. May be repeated.")
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="At most N filings, the first by day and path.  [default: all]"
)
@_options(edgar, edgar.MOST_REQUESTS_PER_SECOND)
def edgar_command(
    way: _Way,
    from_day: datetime,
    to_day: datetime | None,
    forms: tuple[str, ...],
    ciks: tuple[int, ...],
    limit: int | None,
) -> None:
    """Download full submissions of EDGAR, and the quarterly indexes that list them.

    The SEC requires a contact and blocks clients with more than 10 requests in a second. A filing of several filers is
    fetched once. Read the files with `format: edgar` and `paths: DIR/edgar/data/*/*.txt`.
    """
    selection = edgar.Selection(
        first=from_day.date(),
        last=(to_day or from_day).date(),
        forms=frozenset(form.upper() for form in forms),
        ciks=frozenset(ciks),
    )
    if way.contact is None:
        raise ConfigError(
            "the SEC requires a name and an e-mail address: "
            '--contact "Example Corp data@example.com", or the variable FINPILE_CONTACT'
        )
    with _run(way) as run:
        indexes = edgar.index_targets(way.server, selection)
        run.transfer("indexes", indexes)
        if run.outcome.failures:
            run.finish("index")
        filings, unreadable = edgar.select([run.folder / index.path for index in indexes], selection)
        run.warn("lines of the indexes name no filing", unreadable)
        run.transfer("filings", edgar.filing_targets(way.server, filings[:limit]), len(filings[:limit]))
        run.finish("file")


@click.command()
@click.argument("crawl")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["wet", "warc"]),
    default="wet",
    show_default=True,
    help="Format of the files: text as Common Crawl extracted it (wet), or responses as servers sent them (warc).",
)
@click.option(
    "--limit", type=click.IntRange(1), required=True, metavar="N", help="At most N files, the first of the list."
)
@_options(common_crawl, 10)
def common_crawl_command(way: _Way, crawl: str, file_format: Any, limit: int) -> None:
    """Download the first files of CRAWL: CC-MAIN-YEAR-WEEK, or CC-NEWS/YEAR/MONTH of the news crawl.

    Each file is a sample of the whole crawl, of about 30,000 pages; a later run with a higher limit adds files. Read
    them with `format: warc`.
    """
    url = common_crawl.list_url(way.server, crawl, file_format)
    with _run(way) as run:
        files = common_crawl.targets(way.server, url, run.client.get(url), limit)
        run.transfer("files", files)
        run.finish("file")


@click.command()
@click.argument("wiki")
@click.option("--dump", metavar="DAY", help="Day of the dump, such as 20240501.  [default: the newest complete one]")
@_options(wikipedia, 10)
def wikipedia_command(way: _Way, wiki: str, dump: str | None) -> None:
    """Download the articles of WIKI, such as enwiki, and compare them with their publisher's SHA-1.

    Large wikis have several files. Read them with `format: wikipedia`.
    """
    if dump is not None and (len(dump) != 8 or not dump.isdecimal()):
        raise ConfigError(f"--dump {dump}: expected a day without hyphens, such as 20240501")
    with _run(way) as run:
        run.transfer("files", wikipedia.find_targets(way.server, wiki, dump, run.client.get))
        run.finish("file")


class _Run:
    """One run: its client, its folder, and what it has done so far."""

    def __init__(self, way: _Way, client: Client, folder: Path, manifest: FetchManifest) -> None:
        from finpile.fetch.transfer import Outcome

        self.client = client
        self.folder = folder
        self.outcome: Outcome = Outcome()
        self._way = way
        self._manifest = manifest
        self._console = Console(way.as_json)
        self._num_unreadable = 0

    def transfer(self, what: str, targets: Iterable[Target], num_targets: int | None = None) -> None:
        from finpile.fetch.transfer import transfer

        total = num_targets if num_targets is not None else len(list(targets))
        self._console.line(f"{self._way.output}: {what}: {total:,}")
        with self._console.progress("fetching", total, what) as advance:
            done = transfer(
                self.client,
                targets,
                self.folder,
                self._manifest,
                num_connections=self._way.connections,
                check=self._way.check,
                listener=lambda _target, _state: advance(1),
            )
        self.outcome.add(done)

    def warn(self, what: str, lines: list[str]) -> None:
        if lines:
            self._num_unreadable += len(lines)
            self._console.warn(f"{len(lines):,} {what}, such as {lines[0]}")

    def finish(self, what: str) -> None:
        """Prints what the run did. Raises: FetchError if a file could not be fetched."""
        outcome, failures = self.outcome, self.outcome.failures
        self._console.line(
            f"fetched {count_of(outcome.num_fetched, 'file')}, {quantity(outcome.num_bytes, 'B')}; "
            f"{outcome.num_here:,} were here; {len(failures):,} failed"
        )
        for _, message in failures[:_NUM_SHOWN]:
            self._console.line(f"  {message}")
        self._console.result(
            {
                "fetched": outcome.num_fetched,
                "here": outcome.num_here,
                "bytes": outcome.num_bytes,
                "failures": [{"path": path, "message": message} for path, message in failures],
                "unreadable_lines": self._num_unreadable,
            }
        )
        if failures:
            count = count_of(len(failures), what)
            raise FetchError(f"{count} could not be fetched: run the same command again: it resumes")


@contextmanager
def _run(way: _Way) -> Iterator[_Run]:
    """The client and the folder of a run; one run at a time uses a folder.

    Raises: ConfigError if the folder is not a local one, or another run uses it.
    """
    from finpile.fetch.client import Client, check_contact
    from finpile.fetch.fetched import open_manifest
    from finpile.output.layout import Layout
    from finpile.output.lock import hold_to_write

    if "://" in way.output:
        raise ConfigError(
            f"-o {way.output}: expected a local folder, since downloads are resumed; copy them from there"
        )
    agent = f"finpile/{__version__}"
    if way.contact is not None:
        agent = f"{check_contact(way.contact)} {agent}"
    client = Client(agent, way.rate, num_connections=way.connections)
    refusal = f"-o {way.output}: the folder cannot be written: name another one"
    with hold_to_write(Layout(way.output), "fetch", refusal), open_manifest(Path(way.output)) as manifest:
        yield _Run(way, client, Path(way.output), manifest)
