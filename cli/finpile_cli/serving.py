"""A page that a command serves on this machine until Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from finpile.errors import ConfigError
from finpile_cli.console import Console

if TYPE_CHECKING:
    import socketserver


def serve(
    console: Console, out: str, port: int, make: Callable[[str, int], tuple[socketserver.BaseServer, str]]
) -> None:
    """Serves until Ctrl-C what `make(out, port)` gives: a server of a build, which gets an index, and the address of
    its page.

    Raises: ConfigError if the port cannot be used.
    """
    from finpile.explorer import write_index

    with console.progress("indexing", unit="B") as advance:
        write_index(out, advance)
    try:
        server, address = make(out, port)
    except OSError as error:
        raise ConfigError(f"port {port} cannot be used ({error.strerror}): name another with --port") from None
    console.line(f"open {address}  (Ctrl-C ends it)")
    console.result({"out": out, "page": address})
    sys.stdout.flush()  # the address is read while the server runs
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.line("ended")
