"""Archives of members in memory."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping

#: Contents by name, or pairs of both where names repeat.
Members = Mapping[str, bytes] | Iterable[tuple[str, bytes]]


def tar_of(members: Members, kind: int = tarfile.PAX_FORMAT) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=kind) as archive:
        for name, content in _pairs(members):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def zip_of(members: Members, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as archive:
        for name, content in _pairs(members):
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return data.getvalue()


def _pairs(members: Members) -> Iterable[tuple[str, bytes]]:
    return members.items() if isinstance(members, Mapping) else members
