"""Dumps of Wikipedia: the newest complete one or that of a day, with the sizes and checksums of its publisher.

`dumpstatus.json` has the files of each job of a dump, with their sizes and SHA-1. The job `articlesdump` writes
`pages-articles`: the current text of articles, for large wikis in several files.

Source: https://meta.wikimedia.org/wiki/Data_dumps
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from finpile.errors import ConfigError, InputError
from finpile.fetch.failures import Missing
from finpile.fetch.targets import Target

SERVER = "https://dumps.wikimedia.org"
REQUESTS_PER_SECOND = 2
#: The servers accept two connections of an address.
NUM_CONNECTIONS = 2
_JOB = "articlesdump"
_WIKI = re.compile(r"[a-z][a-z0-9_]*")
_DAY = re.compile(r"""href=["'](\d{8})/""")
_NAME = re.compile(r"[\w-][\w.-]*")
_SHA1 = re.compile(r"[0-9a-f]{40}")


def find_targets(server: str, wiki: str, day: str | None, get: Callable[[str], bytes]) -> list[Target]:
    """The files of the dump of a day (`20240501`), or of the newest dump whose articles are complete.

    Raises: ConfigError if there is no such dump; InputError if the server's description of it is another than expected.
    """
    if _WIKI.fullmatch(wiki) is None:
        raise ConfigError(f"wiki {wiki!r}: expected the name of a database, such as enwiki or simplewiki")
    if day is not None:
        found = _files(server, wiki, day, get)
        if found is None:
            raise ConfigError(f"the dump of {wiki} of {day} is not complete: name another day, or run it again later")
        return found
    days = sorted(set(_DAY.findall(get(f"{server}/{wiki}/").decode("latin-1"))), reverse=True)
    for one in days:
        with suppress(Missing):  # a dump that has only begun
            if (found := _files(server, wiki, one, get)) is not None:
                return found
    raise ConfigError(f"{server}/{wiki}/: no complete dump; dumps of: {', '.join(days) or 'no day'}")


def _files(server: str, wiki: str, day: str, get: Callable[[str], bytes]) -> list[Target] | None:
    """The files of a dump; None if its articles are not complete."""
    url = f"{server}/{wiki}/{day}/dumpstatus.json"
    try:
        job: Any = json.loads(get(url))["jobs"][_JOB]
        if job["status"] != "done":
            return None
        return [_target(server, f"{wiki}/{day}", name, job["files"][name]) for name in sorted(job["files"])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{url}: not the status of a dump ({type(error).__name__}: {error})") from error


def _target(server: str, folder: str, name: str, file: Any) -> Target:
    size, sha1 = file["size"], file["sha1"]
    if _NAME.fullmatch(name) is None or type(size) is not int or _SHA1.fullmatch(sha1) is None:
        raise ValueError(f"{name!r} is not a file with a size and a SHA-1")
    return Target(url=f"{server}/{folder}/{name}", path=f"{folder}/{name}", size_bytes=size, sha1=sha1)
