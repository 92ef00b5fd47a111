"""The view Audit: the explorer's server with the items, and a receiver of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from finpile.audit.judgements import append_answer, read_answers
from finpile.audit.report import results, tables, write_results
from finpile.audit.sample import Sample
from finpile.errors import InputError, RunError
from finpile.explorer.corpus import Corpus
from finpile.explorer.serve import PAGE, Additions, address_of, make_server
from finpile.explorer.site import data_script
from finpile.report.render import to_json_value
from finpile.report.table import Table

_FOLDER = PAGE.rpartition("/")[0]


class Audit:
    """The items of a build and the answers about them; threads of the server share it."""

    def __init__(self, corpus: Corpus, sample: Sample) -> None:
        """Raises: InputError if the file of judgements is damaged."""
        self._corpus, self._sample, self._lock = corpus, sample, Lock()
        self._items = {item.shown: item for item in sample.items}
        self.answers = read_answers(judgements_of(corpus), sample.items)

    def data(self) -> bytes:
        """The script with the items, the answers and the tables."""
        with self._lock:
            items = [asdict(item) for item in self._sample.items]
            return data_script("audit", {"items": items, "note": self._sample.note, **self._state()})

    def receive(self, value: Any) -> dict[str, Any]:
        """Writes the answer `{"item": DIGEST, "answer": "yes"}`; returns all answers and the tables.

        Raises: InputError for anything else; RunError if the build is another one by now.
        """
        if not isinstance(value, Mapping) or not isinstance(value.get("item"), str):
            raise InputError('this is not an answer: {"item": DIGEST, "answer": "yes" or "no"}')
        item = self._items.get(value["item"])
        if item is None:
            raise InputError(f"no item of this sample is {value['item'][:64]}")
        if not isinstance(value.get("answer"), str):
            raise InputError("an answer is yes or no")
        with self._lock:
            if Corpus.open(self._corpus.layout.root).checksum != self._corpus.checksum:
                raise RunError("the build has changed: end `finpile audit`, and run it again")
            path = Path(judgements_of(self._corpus))
            self.answers[item.shown] = append_answer(path, item, value["answer"])
            return self._state()

    def write_results(self) -> str:
        """Writes the tables and the page; returns the page's URL."""
        return write_results(self._corpus, self._sample, self.answers)

    def results(self) -> dict[str, Any]:
        """The estimates for JSON."""
        return results(self._sample, self.answers)

    def tables(self) -> list[Table]:
        """The estimates."""
        return tables(self._sample, self.answers)

    def _state(self) -> dict[str, Any]:
        return {"answers": self.answers, "tables": [to_json_value(table) for table in self.tables()]}


def judgements_of(corpus: Corpus) -> str:
    """The file of judgements."""
    return f"{corpus.layout.audit}/judgements.jsonl"


def audit_server(audit: Audit, out: str, port: int) -> tuple[ThreadingHTTPServer, str]:
    """A server of the build in the local folder `out`, which has an index, and the address of its view Audit.

    Raises: OSError if the port is taken.
    """
    files, receivers = {f"{_FOLDER}/data/audit.js": audit.data}, {f"{_FOLDER}/judgements": audit.receive}
    server = make_server(out, port, Additions(files=files, receivers=receivers))
    return server, f"{address_of(server)}?audit#/audit"
