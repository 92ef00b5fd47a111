"""The process that Beam starts as a worker: `python -S fork_client.py SOCKET`.

The work is done by a fork of the server. The client imports almost nothing and starts fast; see `fork_server`.
"""

import json
import os
import socket
import struct
import sys

_LENGTH = struct.Struct("<q")
_LOST = 70  # EX_SOFTWARE: the fork server ended without a reply


def main() -> int:
    """Returns the fork's exit code, or 128 + the signal that killed it."""
    environment = json.dumps(dict(os.environ)).encode()
    try:
        with socket.socket(socket.AF_UNIX) as fork_server:
            fork_server.connect(sys.argv[1])
            fork_server.sendall(_LENGTH.pack(len(environment)) + environment)
            reply = fork_server.recv(_LENGTH.size, socket.MSG_WAITALL)
    except OSError:
        return _LOST
    if len(reply) < _LENGTH.size:
        return _LOST
    code: int = _LENGTH.unpack(reply)[0]
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
