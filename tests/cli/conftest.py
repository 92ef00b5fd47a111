"""Calls the command in this process, exactly as a shell would: by `main`, its arguments in `sys.argv`."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from finpile_cli import main as entry

from tests.support.command import SoftExit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a shell sees of a command."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """Standard output as the one JSON object that it must be, with nothing on standard error."""
        assert self.err == ""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def refusal(self, code: int = 2) -> str:
        """The one message of a command that ended with `code`."""
        assert self.code == code, self
        assert "Traceback" not in self.err + self.out
        assert self.err.startswith("finpile: ")
        assert self.err.count("\n") == 1, "one message, on one line"
        return self.err.removeprefix("finpile: ").rstrip("\n")


Run = Callable[..., Outcome]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`run("check", "corpus.yaml", stdin=b"")`."""
    level = logging.getLogger().level
    monkeypatch.setattr(entry, "os", SoftExit())

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["finpile", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfdbinary.readouterr()
        with pytest.raises(SystemExit) as end:
            entry.main()
        sys.stdout.flush()
        captured = capfdbinary.readouterr()
        assert isinstance(end.value.code, int)
        return Outcome(end.value.code, captured.out.decode("utf-8", "surrogateescape"), captured.err.decode())

    yield call
    logging.getLogger().setLevel(level)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A valid corpus file of one source with one record."""
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "a.jsonl").write_text('{"text": "Oil rose, and gold fell."}\n')
    path = tmp_path / "corpus.yaml"
    path.write_text(
        "name: small\nsources:\n  - name: News\n    dataset: FinPile\n    format: jsonl\n    paths: [news/*.jsonl]\n"
    )
    return path
