"""What can go wrong with a request."""

from __future__ import annotations

from finpile.errors import FetchError


class Passing(Exception):
    """An attempt failed; another one may succeed."""

    def __init__(self, reason: str, wait_seconds: float | None = None) -> None:
        super().__init__(reason)
        self.wait_seconds = wait_seconds
        """As the server requests by `Retry-After`."""


class Blocked(FetchError):
    """The server refuses this client: further requests would prolong that."""


class Missing(FetchError):
    """The server has no such file."""


class Stopped(Exception):
    """The client was stopped by another thread."""
