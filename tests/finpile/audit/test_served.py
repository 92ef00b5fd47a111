"""Answers are in the file before the page is told, and none is taken from another site."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from finpile.audit import served as served_module
from finpile.audit.judgements import append_answer, read_answers
from finpile.errors import InputError
from tests.finpile.audit.conftest import Served

_PATH = "/explorer/index/judgements"
_JSON = "application/json"


def send(
    served: Served, body: bytes, headers: dict[str, str] | None = None, path: str = _PATH
) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of the answer; a header of an empty text is left out."""
    every = {"Origin": f"http://{served.host}", "Content-Type": _JSON, "Content-Length": str(len(body))}
    connection = http.client.HTTPConnection(served.host)
    connection.putrequest("POST", path, skip_host=True)
    for name, value in {"Host": served.host, **every, **(headers or {})}.items():
        if value:
            connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return response.status, json.loads(data) if data else {}


def answer(served: Served, item: object, given: object = "yes") -> bytes:
    return json.dumps({"item": item, "answer": given}).encode()


def test_concurrent_answers_are_all_written(served: Served) -> None:
    expected = {item.shown: number % 3 > 0 for number, item in enumerate(served.sample.items)}

    def judge(shown: str) -> int:
        return send(served, answer(served, shown, "yes" if expected[shown] else "no"))[0]

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(judge, [*expected, *expected])) == {200}
    assert served.answers == expected
    lines = served.judgements.read_text().splitlines()
    assert len(lines) == 2 * len(expected)
    item = served.sample.items[0]
    line = next(row for row in map(json.loads, lines) if row["shown"] == item.shown)
    keys = ("kind", "id", "stage", "start", "end", "other", "shown")
    assert line == {"answer": "no", **{key: getattr(item, key) for key in keys}}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "attacker.example", "Origin": "http://attacker.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Length": ""}, 411),
        ({"Content-Length": "-1"}, 411),
        ({"Content-Length": "²"}, 411),
        ({"Content-Length": str(1 << 40)}, 413),
    ],
)
def test_requests_of_other_sites_are_refused(served: Served, headers: dict[str, str], status: int) -> None:
    body = answer(served, served.sample.items[0].shown)
    headers = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    assert send(served, body, headers)[0] == status
    assert not served.judgements.exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not an answer"),
        (b"{", "not an answer"),
        (b"[" * 9000, "not an answer"),
        (b"\xff", "not an answer"),
        (b"[]", "not an answer"),
        (b'{"item": 5, "answer": "yes"}', "not an answer"),
        (b'{"item": "0000", "answer": "yes"}', "no item of this sample is 0000"),
    ],
)
def test_bad_answers_are_refused(served: Served, body: bytes, message: str) -> None:
    status, found = send(served, body)
    assert (status, message in found["error"]) == (400, True)
    for given in ("maybe", "", None, True, ["yes"]):
        status, found = send(served, answer(served, served.sample.items[0].shown, given))
        assert status == 400
        assert "yes or no" in found["error"]
    assert not served.judgements.exists()


def test_only_the_receiver_takes_answers(served: Served) -> None:
    body = answer(served, served.sample.items[0].shown)
    for path in ("/explorer/index/index.html", "/documents/x", "/", f"{_PATH}/x", "/audit/judgements.jsonl"):
        assert send(served, body, path=path)[0] == 404
    connection = http.client.HTTPConnection(served.host)
    connection.request("GET", "/audit/sample.json")
    assert connection.getresponse().status == 404
    connection.close()


def test_answers_about_another_build_are_not_taken(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    other = SimpleNamespace(open=lambda out: SimpleNamespace(checksum="another"))
    monkeypatch.setattr(served_module, "Corpus", other)
    status, found = send(served, answer(served, served.sample.items[0].shown))
    assert (status, "the build has changed" in found["error"]) == (409, True)
    assert not served.judgements.exists()


def test_answers_that_cannot_be_written_are_refused(served: Served) -> None:
    served.judgements.mkdir()
    status, found = send(served, answer(served, served.sample.items[0].shown))
    assert (status, "not saved" in found["error"]) == (500, True)
    served.judgements.rmdir()


def test_a_line_that_was_cut_short_is_no_answer_and_spoils_none(served: Served) -> None:
    first, second = served.sample.items[:2]
    append_answer(served.judgements, first, "yes")
    line = served.judgements.read_bytes()
    for size in (1, len(line) // 2, len(line) - 1):
        served.judgements.write_bytes(line + line[:size])
        assert served.answers == {first.shown: True}
        append_answer(served.judgements, second, "no")
        assert served.answers == {first.shown: True, second.shown: False}


def test_answers_about_other_texts_do_not_count(served: Served, tmp_path: Path) -> None:
    item = served.sample.items[0]
    append_answer(served.judgements, item, "yes")
    row = json.loads(served.judgements.read_text())
    file = tmp_path / "judgements.jsonl"
    for key, value in (("shown", "0" * 32), ("stage", "exact"), ("start", 3), ("id", "f" * 32), ("other", "e" * 32)):
        file.write_text(json.dumps({**row, key: value}) + "\n")
        assert read_answers(str(file), served.sample.items) == {}
    file.write_text(json.dumps(row) + "\n")
    assert read_answers(str(file), served.sample.items) == {item.shown: True}


@pytest.mark.parametrize(
    "line",
    ["", "yes", "[]", "{}", '{"answer": "perhaps"}', "[" * 9000, '{"answer": {}}', '{"answer": "yes", "id": 1}'],
)
def test_a_line_that_is_no_judgement_is_named(served: Served, line: str) -> None:
    append_answer(served.judgements, served.sample.items[0], "yes")
    with served.judgements.open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(InputError, match=r"judgements\.jsonl:2 is not a judgement"):
        _ = served.answers
