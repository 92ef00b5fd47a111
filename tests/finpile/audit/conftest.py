"""The sample build with a server of its audit, and the browser of the explorer's tests."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from finpile.audit.judgements import Answers, read_answers
from finpile.audit.sample import Sample, open_sample
from finpile.audit.served import Audit, audit_server
from finpile.explorer import write_index
from finpile.explorer.corpus import Corpus
from tests.finpile.explorer.conftest import browser, browser_process

__all__ = ["browser", "browser_process"]


@dataclass(frozen=True)
class Served:
    """A server of the audit of a build."""

    out: Path
    address: str
    sample: Sample

    @property
    def host(self) -> str:
        return self.address.split("/")[2]

    @property
    def judgements(self) -> Path:
        return self.out / "audit" / "judgements.jsonl"

    @property
    def answers(self) -> Answers:
        return read_answers(str(self.judgements), self.sample.items)


@pytest.fixture(scope="session")
def indexed(sample_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample build with an index and without judgements."""
    out = tmp_path_factory.mktemp("audited") / "out"
    shutil.copytree(sample_build, out, ignore=shutil.ignore_patterns(".work"))
    write_index(str(out))
    return out


@pytest.fixture
def served(indexed: Path) -> Iterator[Served]:
    """A server of the sample, of 4 removals of each stage and source and of all pairs."""
    corpus = Corpus.open(str(indexed))
    sample = open_sample(corpus, 4, 1000, lambda amount: None)
    server, address = audit_server(Audit(corpus, sample), str(indexed), 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Served(indexed, address, sample)
    server.shutdown()
    server.server_close()
    thread.join()
    for path in (indexed / "audit").iterdir():
        if path.name != "sample.json":  # drawn once
            path.unlink()
