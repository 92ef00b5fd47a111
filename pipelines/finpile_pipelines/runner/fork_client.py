"""Stands in for a worker process that the fork server forks: `python -S fork_client.py SOCKET`.

Started by Beam where it wants a worker. Imports next to nothing, which is its purpose: see `fork server`.
"""

import json
import os
import socket
import struct
import sys

_LENGTH = struct.Struct("<q")
_LOST = 70  # EX_SOFTWARE: the fork server ended without an answer


def main() -> int:
    """Ends as the fork ends: its exit code, or 128 + the signal that killed it."""
    environment = json.dumps(dict(os.environ)).encode()
    try:
        with socket.socket(socket.AF_UNIX) as fork_server:
            fork_server.connect(sys.argv[1])
            fork_server.sendall(_LENGTH.pack(len(environment)) + environment)
            answer = fork_server.recv(_LENGTH.size, socket.MSG_WAITALL)
    except OSError:
        return _LOST
    if len(answer) < _LENGTH.size:
        return _LOST
    code: int = _LENGTH.unpack(answer)[0]
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
