"""Stands in for a worker process that the nursery forks: `python -S stand_in.py SOCKET`.

Started by Beam where it wants a worker. Imports next to nothing, which is its purpose: see `nursery`.
"""

import json
import os
import socket
import struct
import sys

_LENGTH = struct.Struct("<q")
_LOST = 70  # EX_SOFTWARE: the nursery went without a word


def main() -> int:
    """Ends as the fork ends: its exit code, or 128 + the signal that killed it."""
    environment = json.dumps(dict(os.environ)).encode()
    try:
        with socket.socket(socket.AF_UNIX) as nursery:
            nursery.connect(sys.argv[1])
            nursery.sendall(_LENGTH.pack(len(environment)) + environment)
            answer = nursery.recv(_LENGTH.size, socket.MSG_WAITALL)
    except OSError:
        return _LOST
    if len(answer) < _LENGTH.size:
        return _LOST
    code: int = _LENGTH.unpack(answer)[0]
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
