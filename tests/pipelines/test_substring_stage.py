"""The stage `substring` of whole builds: its cuts equal those of a dict of windows, and all of them are reported."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.executors.request_reply import by_key
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.config import SubstringConfig, load_config
from finpile.dedup import cuts
from finpile.dedup.substring import repeats
from finpile.dedup.substring.texts import Texts
from finpile.documents.ledger import restore
from finpile.errors import RunError
from finpile.tokens.tokenizer_files import load_tokenizer
from finpile.verify import verify
from tests.support.trees import assert_same, rows_below
from tests.support.work_folders import files_of_stage

Record = dict[str, Any]
Snapshot = Callable[[Path], dict[str, bytes]]
WriteCorpus = Callable[..., Path]
#: Symbols of each text, and the bytes of each symbol.
Symbolize = Callable[[bytes], tuple[Sequence[int], Sequence[int]]]
LENGTH = 40
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


# --- the corpus


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Texts from the oldest to the newest. Unnamed parts occur once."""
    draw = random.Random(3)

    def some(size: int) -> str:
        return "".join(draw.choice(_LETTERS + " ") for _ in range(size - 1)) + draw.choice(_LETTERS)

    paragraph, other, wide = some(90), some(60), "".join(draw.choice("é漢😀ab") for _ in range(50))
    left, right, far_left, far_right = (some(LENGTH - 8) for _ in range(4))
    found = [some(200) + paragraph + some(30), other + some(100), some(20) + wide + some(40)]
    # The text joined by the removal of a paragraph occurs elsewhere too, and so does the text joined by that removal.
    found += [some(50) + left + right + some(10), some(50) + far_left + far_right + some(10)]
    found += [
        some(60) + paragraph,
        paragraph + some(1),
        f"{paragraph[20:]}\n\n{other}",
        some(30) + wide[3:40] + some(9),
    ]
    found += [some(20) + far_left + left + paragraph + right + far_right, left + other + right + some(7)]
    found += ["ab" * 150, "x" * 120, "x" * LENGTH + "y", other[: LENGTH - 1] + "!", other[:LENGTH] + "!"]
    found += [some(25) + paragraph[:50] + paragraph[30:] + other + some(5), wide, "é" * 30 + " " + "é" * 30]
    return [*found, *(some(draw.randrange(20, 300)) for _ in range(21))]


def lines(texts: Sequence[str], first_year: int = 1980) -> bytes:
    """JSON Lines in another order than that of their dates; the youngest has none."""
    days: list[str | None] = [f"{first_year + index}-05-01T08:00:00Z" for index in range(len(texts))]
    days[-1] = None
    rows = [{"text": text, "date": day} for text, day in zip(texts, days, strict=True)]
    random.Random(3).shuffle(rows)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def source(name: str, dataset: str = "FinPile") -> Record:
    fields = {"timestamp": "date"}
    return {"name": name, "dataset": dataset, "format": "jsonl", "paths": [f"{name}*"], "fields": fields, "clean": {}}


@dataclass(frozen=True)
class Corpus:
    """The texts above, and how to build them."""

    folder: Path
    texts: list[str]
    write: WriteCorpus

    def config(self, **settings: Any) -> Any:
        """Of one source, near duplicates left in; `settings` are those of `substring`.

        Most tests are about windows, so cuts lie anywhere between characters, and short texts stay.
        """
        dedup = {"near": None, "substring": {"min_length": LENGTH, "snap": "none", "min_chars": 0, **settings}}
        files = {"News.jsonl": lines(self.texts)}
        return load_config(self.write(self.folder, files, sources=[source("News")], dedup=dedup, heldout={}))

    def build(self, name: str, engine: Engine | None = None, sizes: Sizes | None = None, **settings: Any) -> Path:
        out = self.folder / name
        build(self.config(**settings), str(out), engine or Engine(), sizes=sizes, until="split")
        return out


@pytest.fixture(scope="module")
def corpus(texts: list[str], write_corpus: WriteCorpus, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(tmp_path_factory.mktemp("corpus"), texts, write_corpus)


@pytest.fixture(scope="module")
def two_rounds(corpus: Corpus) -> Path:
    """A build of one shard. To be read only."""
    return corpus.build("two_rounds", rounds=2)


# --- what a stage leaves, by hand


def as_bytes(text: bytes) -> tuple[Sequence[int], Sequence[int]]:
    return text, [1] * len(text)


def places_by_hand(docs: Sequence[bytes], length: int, keep: str, symbolize: Symbolize) -> list[list[int]]:
    """Windows of each text, in order of preference, that go: the numbers of their first symbols."""
    windows = defaultdict(list)
    for number, doc in enumerate(docs):
        symbols = tuple(symbolize(doc)[0])
        for first in range(len(symbols) - length + 1):
            windows[symbols[first : first + length]].append((number, first))
    found: list[list[int]] = [[] for _ in docs]
    for places in windows.values():
        for number, first in (places[1:] if keep == "first" else places) if len(places) > 1 else ():
            found[number].append(first)
    return found


def cut_by_hand(doc: bytes, firsts: Sequence[int], length: int, symbolize: Symbolize) -> bytes:
    """What is left of a text; characters that windows do not cover whole stay."""
    sizes = symbolize(doc)[1]
    edges = np.r_[0, np.cumsum(sizes)]
    dropped = np.zeros(len(doc), bool)
    for first in firsts:
        dropped[edges[first] : edges[first + length]] = True
    left, at = [], 0
    for character in doc.decode():
        size = len(character.encode())
        if not dropped[at : at + size].all():
            left.append(character)
        at += size
    return "".join(left).encode()


@dataclass(frozen=True)
class Outcome:
    """What rounds leave."""

    left: dict[bytes, bytes]
    """What is left of each text; nothing but white space where it went whole."""
    num_residual_windows: int
    residual_bytes: int


def rounds_by_hand(
    texts: Sequence[str], rounds: int, keep: str = "first", length: int = LENGTH, symbolize: Symbolize = as_bytes
) -> Outcome:
    left = {text.encode(): text.encode() for text in texts}
    number = 0
    while True:
        names = [name for name, text in left.items() if text.strip() or number == 0]
        places = places_by_hand([left[name] for name in names], length, keep, symbolize)
        after = {
            name: cut_by_hand(left[name], firsts, length, symbolize) for name, firsts in zip(names, places, strict=True)
        }
        num_bytes = sum(len(left[name]) - len(text) for name, text in after.items())
        if num_bytes == 0 or number == rounds:
            return Outcome(left, sum(map(len, places)), num_bytes)
        left.update(after)
        number += 1


# --- what a build left


def left_by(out: Path) -> dict[bytes, bytes]:
    """What is left of each text, put together from documents and ledger; as `Outcome.left`."""
    kept = {row["id"]: row["text"].encode() for row in rows_below(out / "documents")}
    ledger = rows_below(out / "removed")
    whole = {row["id"]: row["removed_text"] for row in ledger if row["start"] is None}
    again = [row for row in ledger if row["start"] is None and row["reason"] == cuts.DUPLICATE]
    assert all(kept[row["duplicate_of"]] == row["removed_text"] for row in again)
    assert not kept.keys() & whole.keys()
    spans: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
    for row in ledger:
        assert row["stage"] == "substring"
        if row["start"] is not None:
            spans[row["id"]].append((row["start"], row["end"], row["removed_text"]))
    left = {restore(text, spans[name]): text for name, text in {**kept, **whole}.items()}
    blank = whole.keys() - {row["id"] for row in again}
    assert all(not whole[name].strip() for name in blank)
    return left


def counts_of(out: Path, stage: str = "substring") -> Mapping[str, Any]:
    stages = json.loads((out / "manifest.json").read_text())["stages"]
    (found,) = (record["counts"] for record in stages if record["stage"] == stage)
    return found  # type: ignore[no-any-return]


def assert_lawful(out: Path) -> None:
    assert [check for check in verify(str(out)) if not check.ok] == []


@pytest.mark.parametrize(
    ("rounds", "keep"),
    [
        ("fixpoint", "first"),
        (2, "none"),
        pytest.param(1, "first", marks=pytest.mark.slow),
        pytest.param(1, "none", marks=pytest.mark.slow),
        pytest.param(3, "first", marks=pytest.mark.slow),
        pytest.param("fixpoint", "none", marks=pytest.mark.slow),
    ],
)
def test_rounds_cut_the_spans_of_a_dict_of_windows(rounds: int | str, keep: str, corpus: Corpus) -> None:
    assert_is_by_hand(corpus.build(f"{rounds}-{keep}", rounds=rounds, keep=keep), rounds, keep, corpus.texts)


def test_two_rounds_cut_the_spans_of_a_dict_of_windows(two_rounds: Path, corpus: Corpus) -> None:
    assert_is_by_hand(two_rounds, 2, "first", corpus.texts)


def assert_is_by_hand(out: Path, rounds: int | str, keep: str, texts: Sequence[str]) -> None:
    expected = rounds_by_hand(texts, 99 if rounds == "fixpoint" else int(rounds), keep)
    assert left_by(out) == expected.left
    counts = counts_of(out)
    residual = {"residual_windows": expected.num_residual_windows, "residual_bytes": expected.residual_bytes}
    found = {name: counts[name] for name in residual if name in counts}
    assert found == ({} if rounds == 1 else residual), "one round does not count what it leaves"
    assert sum(counts["cut_bytes"]) == sum(len(name) - len(text) for name, text in expected.left.items())
    remains = [text for text in expected.left.values() if text.strip()]
    assert counts["duplicates"] == len(remains) - len(set(remains))
    assert counts["removed"] == len(expected.left) - len(set(remains))
    assert counts["text_bytes"] == sum(len(text.encode()) for text in texts)
    assert_lawful(out)


def test_corpus_has_the_cases_of_these_tests(corpus: Corpus) -> None:
    """Three rounds cut less each time. The first removes a whole text; some cuts are beside wide characters."""
    left = [rounds_by_hand(corpus.texts, rounds) for rounds in (1, 2, 3, 99)]
    assert left[0].residual_bytes > left[1].residual_bytes > left[2].residual_bytes == 0
    assert left[2] == left[3]
    assert sum(not text.strip() for text in left[0].left.values()) > 0
    assert sum(any(value > 127 for value in text) for text in left[0].left.values()) > 1
    assert rounds_by_hand(corpus.texts, 99, "none").left != left[3].left


def test_text_of_which_nothing_is_left_is_removed_whole(two_rounds: Path, corpus: Corpus) -> None:
    """The first round emptied it, the second cut others."""
    (dropped,) = (
        row for row in rows_below(two_rounds / "removed") if row["reason"] == "nothing_left" and row["removed_text"]
    )
    assert dropped["removed_text"] == b"\n\n"
    spans = [
        row for row in rows_below(two_rounds / "removed") if row["id"] == dropped["id"] and row["start"] is not None
    ]
    assert [row["reason"] for row in spans] == ["repeated_text"] * 2
    assert {row["detail"] for row in spans} == {"round 1"}
    assert counts_of(two_rounds)["rounds"] == 2


def test_ledger_names_the_place_of_each_copy_of_the_first_round(two_rounds: Path) -> None:
    documents = {row["id"]: row["text"].encode() for row in rows_below(two_rounds / "documents")}
    ledger = rows_below(two_rounds / "removed")
    spans: dict[str, list[tuple[int, int, bytes]]] = defaultdict(list)
    for row in ledger:
        if row["start"] is not None:
            spans[row["id"]].append((row["start"], row["end"], row["removed_text"]))
    num_later = 0
    for row in ledger:
        if row["start"] is None:
            continue
        if row["detail"] != "round 1":
            num_later += 1
            assert row["duplicate_of"] is not None and row["duplicate_offset"] is None
            continue
        before = restore(documents[row["duplicate_of"]], spans[row["duplicate_of"]])
        at = row["duplicate_offset"]
        assert before[at : at + len(row["removed_text"])] == row["removed_text"]
        assert (row["duplicate_of"], at) != (row["id"], row["start"])
    assert num_later > 0


@pytest.mark.parametrize("scope", ["", "FinPile", "C4"])
def test_partitions_of_minimizers_are_about_as_large_as_each_other(scope: str) -> None:
    """The smallest of many hashes is a small number: taken as they are, nearly all would fall into one partition."""
    draw = random.Random(7)
    texts = pa.array(["".join(draw.choices(_LETTERS, k=4000)) for _ in range(500)], pa.large_string())
    rows = repeats.minimizers(Texts.of_bytes(texts), SubstringConfig(min_length=200), scope, 0)
    sizes = [part.num_rows for part in by_key(rows, "hash", 25).values()]
    assert len(sizes) == 25
    assert max(sizes) < 1.2 * rows.num_rows / 25


# --- what does not show


def num_shards(out: Path) -> int:
    return len(list((files_of_stage(out, "ingest") / "documents").iterdir()))


@pytest.mark.parametrize(
    ("shard_bytes", "shards", "engine"),
    [
        (275, 17, Engine(num_workers=3, threads=True, transport="shuffle")),
        pytest.param(275, 17, Engine(num_workers=3, threads=True), marks=pytest.mark.slow),
        *(
            pytest.param(shard_bytes, shards, Engine(num_workers=workers, transport=transport), marks=pytest.mark.slow)
            for shard_bytes, shards in ((275, 17), (2_500, 3), (1 << 20, 1))
            for workers in (1, 2)
            for transport in ("files", "shuffle")
        ),
    ],
)
def test_output_does_not_depend_on_shards_workers_or_transports(
    shard_bytes: int,
    shards: int,
    engine: Engine,
    corpus: Corpus,
    two_rounds: Path,
    snapshot: Snapshot,
    tmp_path: Path,
) -> None:
    out = replace(corpus, folder=tmp_path).build("out", engine, Sizes(shard_bytes=shard_bytes), rounds=2)
    assert num_shards(out) == shards
    assert_same(snapshot(out), snapshot(two_rounds))


@pytest.mark.parametrize(
    "step",
    [pytest.param("minimizers", marks=pytest.mark.slow), "contexts", pytest.param("decided", marks=pytest.mark.slow)],
)
def test_interrupted_build_equals_an_undisturbed_one(
    step: str,
    corpus: Corpus,
    two_rounds: Path,
    snapshot: Snapshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It broke in the second round, with other settings too; nothing of it is taken for its own by the next one."""
    here, write_json = replace(corpus, folder=tmp_path), storage.write_json

    def write(file: Any, value: Any) -> None:
        write_json(file, value)
        if str(file).endswith(f"cut-2/{step}.json"):
            raise RunError("broken off")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_json", write)
        for settings in ({"min_length": 12}, {}):
            with pytest.raises(RunError, match="broken off"):
                here.build("out", rounds=2, **settings)
    assert_same(snapshot(here.build("out", rounds=2)), snapshot(two_rounds))


# --- pipelines


def names_of_pipelines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the pipelines of the stage that run from now on."""
    labels: list[str] = []
    run = Engine.run

    def note(engine: Engine, label: str, construct: Any) -> None:
        labels.extend([label] if label.startswith("substring") else [])
        run(engine, label, construct)

    monkeypatch.setattr(Engine, "run", note)
    return labels


@pytest.mark.parametrize(
    ("rounds", "labels"),
    [(1, ["substring"]), (2, ["substring"] * 3 + ["substring: left"])],
)
def test_one_round_is_one_pipeline(
    rounds: int, labels: list[str], corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = names_of_pipelines(monkeypatch)
    replace(corpus, folder=tmp_path).build("out", rounds=rounds)
    assert found == labels


@pytest.mark.parametrize("text", ["", "Nothing is repeated here at all, in this short text."])
def test_stage_that_cuts_nothing_is_one_pipeline(
    text: str, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = names_of_pipelines(monkeypatch)
    out = replace(corpus, folder=tmp_path, texts=["Gold fell for the third day in a week.", text]).build(
        "out", rounds=1
    )
    assert found == ["substring"]
    assert (counts_of(out)["rounds"], counts_of(out)["cut_bytes"], counts_of(out)["duplicates"]) == (0, [], 0)
    assert_lawful(out)


def test_crowded_keys_are_divided_in_pipelines_of_their_own(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are crowded if two contexts are a crowd; the cuts are the same."""
    expected = left_by(replace(corpus, folder=tmp_path).build("plain", rounds=1))
    found = names_of_pipelines(monkeypatch)
    monkeypatch.setattr(repeats, "shared_minimizers", partial(repeats.shared_minimizers, crowd=2))
    out = replace(corpus, folder=tmp_path).build("crowded", rounds=1)
    assert found[0] == "substring"
    assert found[1] == "substring: minimizers1"
    assert found.count("substring") == 2, "the round ends early once"
    assert left_by(out) == expected


# --- other settings


def test_scope_is_the_dataset_or_all_of_the_corpus(corpus: Corpus, tmp_path: Path) -> None:
    """The same paragraph in two datasets, the younger one in the source that is named first."""
    paragraph = corpus.texts[0][200:290]
    files = {"News.jsonl": lines([f"News {paragraph}"], 2000), "Web.jsonl": lines([f"Web {paragraph}"], 1990)}
    sources = [source("News"), source("Web", "Web")]
    kept = {}
    for scope in ("dataset", "corpus"):
        dedup = {"near": None, "substring": {"min_length": LENGTH, "min_chars": 0}, "scope": scope}
        path = corpus.write(tmp_path, files, sources=sources, dedup=dedup, heldout={})
        build(load_config(path), str(tmp_path / scope), Engine(), until="split")
        assert_lawful(tmp_path / scope)
        kept[scope] = sorted(row["text"] for row in rows_below(tmp_path / scope / "documents"))
    assert kept == {"dataset": [f"News {paragraph}", f"Web {paragraph}"], "corpus": [f"News {paragraph}", "Web"]}


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["first", "none"])
def test_tokens_are_cut_as_a_dict_of_windows_would(keep: str, corpus: Corpus, sample_build: Path) -> None:
    folder = str(sample_build / "tokenizer")
    tokenizer = load_tokenizer(folder)
    sizes = tokenizer.piece_lengths(np.arange(tokenizer.vocab_size))

    def symbolize(text: bytes) -> tuple[Sequence[int], Sequence[int]]:
        ids = tokenizer.encode_array(pa.array([text.decode()], pa.large_string()))[0].as_py()
        return ids, sizes[ids].tolist()

    out = corpus.build(f"tokens-{keep}", min_length=12, unit="tokens", tokenizer=folder, keep=keep, rounds=2)
    expected = rounds_by_hand(corpus.texts, 2, keep, 12, symbolize)
    assert counts_of(out)["cut_bytes"][0] > 500
    assert left_by(out) == expected.left
    assert counts_of(out)["residual_windows"] == expected.num_residual_windows
    assert_lawful(out)


@pytest.mark.slow
@pytest.mark.parametrize("snap", ["word", "line"])
def test_snapped_build_passes_every_check_and_ends(snap: str, corpus: Corpus) -> None:
    """A fixpoint may leave repeats that no whole word or line covers."""
    out = corpus.build(f"snap-{snap}", snap=snap, rounds="fixpoint")
    assert counts_of(out)["residual_bytes"] == 0 < counts_of(out)["residual_windows"]
    assert set(left_by(out)) == {text.encode() for text in corpus.texts}
    assert_lawful(out)


@pytest.mark.slow
def test_changed_setting_runs_the_stage_again(corpus: Corpus, snapshot: Snapshot, tmp_path: Path) -> None:
    here = replace(corpus, folder=tmp_path)
    first = snapshot(here.build("out"))
    assert snapshot(here.build("out", snap="line")) != first
    assert_same(snapshot(here.build("out")), first)
