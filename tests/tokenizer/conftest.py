"""Fixtures of the tokenizer tests: slices of real corpora, and SentencePiece's trainer."""

from __future__ import annotations

import importlib.util
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
CORPORA = {
    "reuters": "fin_news/reuters21578.tar.gz",
    "fed_speeches": "fin_centralbank/fed_speeches_txt.tar.zst",
    "stacks_tex": "arxiv/stacks_project_tex.tar.zst",
    "ubuntu_irc": "ubuntu_irc/ubuntu_irc_raw.tar.zst",
}


# Used without the project's conftest: the same examples in every run, without a deadline.
if settings.default is not None and settings.default.deadline is not None:
    settings.register_profile("alone", deadline=None, derandomize=True)
    settings.load_profile("alone")


@pytest.fixture(scope="session")
def real_text(request: pytest.FixtureRequest) -> Callable[[int], list[bytes]]:
    """`real_text(100_000)`: 100,000 bytes, a quarter from each real corpus; skips the test if a corpus is missing."""

    pytest.importorskip("zstandard")
    try:
        real_data = request.getfixturevalue("real_data")
    except pytest.FixtureLookupError:
        pytest.skip("the real corpora are absent")

    def read(num_bytes: int) -> list[bytes]:
        return [_first_bytes(real_data(path), num_bytes // len(CORPORA)) for path in CORPORA.values()]

    return read


def _first_bytes(path: Path, num_bytes: int) -> bytes:
    """The first bytes of the concatenated files of an archive."""
    zstandard = pytest.importorskip("zstandard")
    with path.open("rb") as raw:
        packed = zstandard.ZstdDecompressor().stream_reader(raw) if path.suffix == ".zst" else raw
        mode = "r|" if path.suffix == ".zst" else "r|gz"
        found = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
            for member in filter(tarfile.TarInfo.isfile, archive):
                found.write(archive.extractfile(member).read(num_bytes - found.tell()))
                if found.tell() >= num_bytes:
                    break
    return found.getvalue()


@pytest.fixture(scope="session")
def sentencepiece_peer() -> ModuleType:
    """`benchmarks/sentencepiece_peer.py`: SentencePiece's trainer on our counts."""
    spec = importlib.util.spec_from_file_location("sentencepiece_peer", BENCHMARKS / "tokenizer/sentencepiece_peer.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load sentencepiece_peer from {BENCHMARKS}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
