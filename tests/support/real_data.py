"""Real corpora, in the folder that the environment variable `FINPILE_DATA` names; without it, `data` in the checkout.

Tests that read them are skipped where they are absent.
"""

from __future__ import annotations

import html
import os
import re
import tarfile
from pathlib import Path

import pytest

VARIABLE = "FINPILE_DATA"
DATA = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[2] / "data").resolve()


def find(name: str) -> Path:
    """The path of that name in the folder; skips the test if it is absent."""
    if not (DATA / name).exists():
        pytest.skip(_absent(name))
    return DATA / name


def reuters_stories() -> list[str]:
    """The bodies of all stories of Reuters-21578, each on one line; skips the test if it is absent."""
    found: list[str] = []
    with tarfile.open(find("fin_news/reuters21578.tar.gz")) as archive:
        for name in sorted(name for name in archive.getnames() if name.endswith(".sgm")):
            member = archive.extractfile(name)
            assert member is not None
            bodies = re.findall(r"<BODY>(.*?)</BODY>", member.read().decode("latin-1"), re.DOTALL)
            found += [" ".join(html.unescape(body).split()) for body in bodies]
    assert len(found) == 19_043
    return found


def needs(name: str) -> pytest.MarkDecorator:
    """Skips a test if the path of that name is absent."""
    return pytest.mark.skipif(not (DATA / name).exists(), reason=_absent(name))


def _absent(name: str) -> str:
    return f"{DATA / name} is absent: {VARIABLE} names the folder of real corpora (CONTRIBUTING.md)"
