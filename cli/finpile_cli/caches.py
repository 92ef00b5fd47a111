"""The folder of caches for a user without a home folder, such as one of a container that has a number alone."""

from __future__ import annotations

import contextlib
import os

_VARIABLE = "XDG_CACHE_HOME"


def find_cache_folder() -> None:
    """Names a folder for caches below that of temporary files if there is no home folder, for this process and those
    that it starts.

    Numba would make a folder called `~` in the working directory. Its caches are code: other users cannot write to the
    folder.
    """
    if _VARIABLE in os.environ or os.path.expanduser("~") != "~":
        return
    import stat
    import tempfile

    folder = os.path.join(tempfile.gettempdir(), f"finpile-cache-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    facts = os.lstat(folder)
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) != 0o700 or not stat.S_ISDIR(facts.st_mode):
        folder = tempfile.mkdtemp(prefix="finpile-cache-")  # another user has made it
    os.environ[_VARIABLE] = folder
