"""Beam's worker protocol over Unix sockets in the folder of this process, which only this user can enter.

Beam's local runner binds its gRPC servers to every network interface (`[::]:0`), without authentication, and what they
receive is unpickled: anyone who can reach such a port can run code. Beam has no option for it. `serve_privately`
replaces the module `grpc` in Beam's two server modules, so that a server that binds to `[::]:0` gets a socket file;
`connect_privately` makes clients accept the address that Beam derives from it.

Source: apache_beam 2.77, runners/portability/fn_api_runner/worker_handlers.py and runners/portability/
local_job_service.py (servers); runners/worker/channel_factory.py (clients).
"""

from __future__ import annotations

import itertools
from functools import wraps
from typing import Any

import grpc

from finpile.errors import RunError
from finpile_pipelines.process_folder import process_folder

#: The address to which Beam binds its servers, and the prefix that it puts before the name of the port.
_EVERYWHERE = "[::]:0"
_HOST = "localhost:"
_UNIX = "unix:"
_NUMBERS = itertools.count()


def serve_privately() -> None:
    """Makes Beam's local runner bind its servers to Unix sockets.

    Raises: RunError if Beam's modules have changed, so that its servers would be open to the network.
    """
    from apache_beam.runners.portability import local_job_service
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

    for module in (worker_handlers, local_job_service):
        if getattr(module, "grpc", None) is grpc:
            module.grpc = _PrivateGrpc()
        elif not isinstance(getattr(module, "grpc", None), _PrivateGrpc):
            raise RunError(
                f"{module.__name__} does not use the module grpc as expected, so its servers would be open to the "
                "network: install a version of apache-beam that FinPile is tested with (constraints.txt)"
            )


def connect_privately() -> None:
    """Makes Beam's clients connect to the addresses of such servers."""
    from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

    connect = GRPCChannelFactory.insecure_channel
    if getattr(connect, "is_private", False):
        return

    @wraps(connect)
    def insecure_channel(target: str, options: Any = None) -> Any:
        return connect(target.removeprefix(_HOST) if target.startswith(_HOST + _UNIX) else target, options)

    insecure_channel.is_private = True  # type: ignore[attr-defined]
    GRPCChannelFactory.insecure_channel = staticmethod(insecure_channel)


class _PrivateGrpc:
    """The module `grpc`, except for `server`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    def server(self, *arguments: Any, **options: Any) -> _PrivateServer:
        return _PrivateServer(grpc.server(*arguments, **options))


class _PrivateServer:
    """A gRPC server, except for the address that it is bound to."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    def add_insecure_port(self, address: str) -> str:
        """Binds a new socket; returns its address, which Beam uses as the number of a port.

        Raises: RunError for an unexpected address.
        """
        if address != _EVERYWHERE:
            raise RunError(f"Beam binds a server to {address!r}: expected {_EVERYWHERE!r}, which is replaced")
        port = f"{_UNIX}{process_folder() / str(next(_NUMBERS))}"
        self._server.add_insecure_port(port)
        return port
