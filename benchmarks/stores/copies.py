"""Folders copied to and from an object store, by a process that has the variables of the store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_COPY = """
import sys
from finpile.storage.file_systems import file_system_of
what, url, folder = sys.argv[1:]
fs, path = file_system_of(url)
if what == "put":
    fs.put(folder + "/", path + "/", recursive=True)
else:
    fs.get(path + "/", folder + "/", recursive=True)
"""


def copy_store(what: str, url: str, folder: Path, environment: Mapping[str, str]) -> None:
    """Copies a folder to (`put`) or from (`get`) an object store."""
    command = [sys.executable, "-c", _COPY, what, url, str(folder)]
    subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
