"""The remains of cuts are checked again: short and equal ones are removed, and the ledger has all of them."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.config import load_config
from finpile.documents.ledger import restore
from finpile.errors import RunError
from finpile.history.document import document_history
from finpile.report.summary import source_rows
from finpile.verify import verify
from tests.support.trees import rows_below
from tests.support.work_folders import files_of_stage

Record = dict[str, Any]
Span = tuple[int, int, bytes]
WriteCorpus = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, bytes]]

LENGTH = 40
#: Two paragraphs that several texts have; each line is longer than a window.
OIL = "Oil rose two percent on Monday after ministers met in the port of Vantry."
GOLD = "Gold fell for the third day in a week of thin trade, dealers in Zurich said."
#: Shorter than a window, so that it is never cut.
REMAINS = "Copper held near its peak."
TEXTS = {
    "whole": f"Markets at noon.\n{OIL}\n{GOLD}\nMore follows later in the day.",
    "cut": f"{REMAINS}\n{OIL}",
    "cut too": f"{REMAINS}\n{GOLD}",
    "uncut": REMAINS,
    "folded": f"{REMAINS.upper()}\n{OIL}\n{GOLD}",
    "short": f"Page 3\n{GOLD}",
    "empty": f"{OIL}\n\n{GOLD}",
    "short but uncut": "Page 4",
    "other": "Wheat was steady.",
}


def build_texts(
    folder: Path,
    write_corpus: WriteCorpus,
    order: Sequence[str] = tuple(TEXTS),
    engine: Engine | None = None,
    sizes: Sizes | None = None,
    fold: str = "none",
    extra: Sequence[str] = (),
    **settings: Any,
) -> Path:
    """A build of the texts, from the oldest to the youngest, to the split; `extra` come last."""
    texts = [*(TEXTS[name] for name in order), *extra]
    rows = [{"text": text, "date": f"{1990 + number}-05-01"} for number, text in enumerate(texts)]
    source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": ["News*"], "clean": {}}
    path = write_corpus(
        folder,
        {"News.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode()},
        sources=[{**source, "fields": {"timestamp": "date"}}],
        dedup={"near": None, "exact_fold": fold, "substring": {"min_length": LENGTH, **settings}},
        heldout={},
    )
    build(load_config(path), str(folder / "out"), engine or Engine(), sizes=sizes, until="split")
    assert [check for check in verify(str(folder / "out")) if not check.ok] == []
    return folder / "out"


def removed_by_substring(out: Path) -> dict[str, list[Span]]:
    """The spans cut from each document."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for row in rows_below(out / "removed"):
        if row["start"] is not None and row["stage"] == "substring":
            spans[row["id"]].append((row["start"], row["end"], row["removed_text"]))
    return spans


def outcome(out: Path) -> dict[str, tuple[str, str | None]]:
    """What became of each text: `kept` or the reason, and what is left of it."""
    spans = removed_by_substring(out)
    found = {row["id"]: ("kept", row["text"].encode()) for row in rows_below(out / "documents")}
    found |= {
        row["id"]: (row["reason"], row["removed_text"]) for row in rows_below(out / "removed") if row["end"] is None
    }
    names = {text.encode(): name for name, text in TEXTS.items()}
    return {
        names[restore(left, spans[identifier])]: (reason, left.decode())
        for identifier, (reason, left) in found.items()
        if restore(left, spans[identifier]) in names
    }


def counts_of(out: Path) -> Mapping[str, Any]:
    stages = json.loads((out / "manifest.json").read_text())["stages"]
    (found,) = (stage["counts"] for stage in stages if stage["stage"] == "substring")
    return found  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def built(write_corpus: WriteCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_texts(tmp_path_factory.mktemp("built"), write_corpus)


def test_short_and_equal_remains_are_removed(built: Path) -> None:
    """Counted by hand, from the oldest to the youngest."""
    assert outcome(built) == {
        "whole": ("kept", TEXTS["whole"]),
        "cut": ("kept", REMAINS),
        "cut too": ("duplicate_after_cuts", REMAINS),
        "uncut": ("duplicate_after_cuts", REMAINS),
        "folded": ("kept", REMAINS.upper()),
        "short": ("too_short_after_cuts", "Page 3"),
        "empty": ("nothing_left", ""),
        "short but uncut": ("kept", "Page 4"),
        "other": ("kept", "Wheat was steady."),
    }
    counts = counts_of(built)
    assert (counts["removed"], counts["too_short"], counts["duplicates"]) == (4, 1, 2)


def test_manifest_show_and_table_count_them(built: Path) -> None:
    kept = next(row for row in rows_below(built / "documents") if row["text"] == REMAINS)
    assert kept["num_copies"] == 3
    history = document_history(str(built), kept["id"])
    assert {copy["reason"] for copy in history.copies if copy["start"] is None} == {"duplicate_after_cuts"}
    (row,) = source_rows(json.loads((built / "manifest.json").read_text()))
    assert (row["read"], row["substring"], row["train"]) == (len(TEXTS), 4, 5)
    assert row["reasons"]["too_short_after_cuts"] == 1
    assert row["reasons"]["duplicate_after_cuts"] == 2


@pytest.mark.parametrize("order", [("uncut", "cut", "cut too"), ("cut too", "uncut", "cut")])
def test_earliest_of_equal_remains_stays(order: tuple[str, ...], write_corpus: WriteCorpus, tmp_path: Path) -> None:
    found = outcome(build_texts(tmp_path, write_corpus, ("whole", *order)))
    assert [found[name][0] for name in order] == ["kept", "duplicate_after_cuts", "duplicate_after_cuts"]


def test_remains_are_compared_as_exact_duplicates_are(write_corpus: WriteCorpus, tmp_path: Path) -> None:
    found = outcome(build_texts(tmp_path, write_corpus, fold="case"))
    assert [found[name][0] for name in ("cut", "folded")] == ["kept", "duplicate_after_cuts"]


def test_copies_of_removed_documents_name_the_kept_document(write_corpus: WriteCorpus, tmp_path: Path) -> None:
    """An exact copy of a document that cuts made equal to an older one."""
    out = build_texts(tmp_path, write_corpus, ("whole", "uncut", "cut"), extra=[TEXTS["cut"]])
    kept = next(row for row in rows_below(out / "documents") if row["text"] == REMAINS)
    whole = {row["reason"]: row for row in rows_below(out / "removed") if row["end"] is None}
    assert whole.keys() == {"exact_duplicate", "duplicate_after_cuts"}
    assert {row["duplicate_of"] for row in whole.values()} == {kept["id"]}
    assert kept["num_copies"] == 3


@pytest.mark.parametrize(("min_chars", "short"), [(6, "kept"), (7, "too_short_after_cuts")])
def test_min_chars_is_the_least_that_stays(
    min_chars: int, short: str, write_corpus: WriteCorpus, tmp_path: Path
) -> None:
    out = build_texts(tmp_path, write_corpus, min_chars=min_chars)
    assert outcome(out)["short"] == (short, "Page 3")
    assert outcome(out)["empty"][0] == "nothing_left"


@pytest.mark.parametrize(
    ("shard_bytes", "engine"),
    [
        (100, Engine(transport="shuffle", num_workers=3, threads=True)),
        pytest.param(150, Engine(), marks=pytest.mark.slow),
        pytest.param(100, Engine(num_workers=2), marks=pytest.mark.slow),
    ],
)
def test_output_does_not_depend_on_shards_workers_or_transports(
    shard_bytes: int, engine: Engine, built: Path, write_corpus: WriteCorpus, snapshot: Snapshot, tmp_path: Path
) -> None:
    out = build_texts(tmp_path, write_corpus, engine=engine, sizes=Sizes(shard_bytes=shard_bytes))
    assert len(list((files_of_stage(out, "ingest") / "documents").iterdir())) > 3
    assert snapshot(out) == snapshot(built)


def test_interrupted_build_equals_an_undisturbed_one(
    built: Path, write_corpus: WriteCorpus, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It broke off after equal remains were found, with settings that find others."""
    write_json = storage.write_json

    def write(file: Any, value: Any) -> None:
        write_json(file, value)
        if str(file).endswith("left/digests.json"):
            raise RunError("broken off")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_json", write)
        with pytest.raises(RunError, match="broken off"):
            build_texts(tmp_path, write_corpus, min_chars=0, snap="line")
    assert snapshot(build_texts(tmp_path, write_corpus)) == snapshot(built)


# --- real text


def seams(text: bytes, spans: Sequence[Span]) -> list[tuple[str, str]]:
    """The characters on both sides of each place where a text was joined."""
    merged: list[list[int]] = []
    for start, end, _ in sorted(spans):
        if merged and merged[-1][1] == start:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    edges = [0, *(edge for span in merged for edge in span), len(text)]
    kept = [text[begin:end].decode() for begin, end in zip(edges[::2], edges[1::2], strict=True)]
    return [(left[-1:], right[:1]) for left, right in pairwise(kept) if left and right]


@pytest.mark.slow
@pytest.mark.parametrize("snap", ["none", "word", "line"])
def test_cuts_of_real_stories_join_no_words(
    snap: str, write_corpus: WriteCorpus, real_data: Callable[[str], Path], tmp_path: Path
) -> None:
    """Two thousand stories of Reuters-21578: most seams of `none` join two words, and none of the others'."""
    with tarfile.open(real_data("fin_news/reuters21578.tar.gz")) as archive:
        names = sorted(name for name in archive.getnames() if name.endswith(".sgm"))[:2]
        members = {Path(name).name: archive.extractfile(name) for name in names}
        files = {name: member.read() for name, member in members.items() if member}
    source = {"name": "News", "dataset": "FinPile", "format": "sgml", "paths": ["*.sgm"], "clean": {}}
    dedup = {"near": None, "substring": {"min_length": 50, "snap": snap}}
    config = load_config(write_corpus(tmp_path, files, sources=[source], dedup=dedup, heldout={}))
    out = tmp_path / "out"
    build(config, str(out), Engine(num_workers=2, threads=True), until="split")
    assert [check for check in verify(str(out)) if not check.ok] == []
    spans = removed_by_substring(out)
    documents = {row["id"]: row["text"] for row in rows_below(out / "documents")}
    found = [
        seam for name, text in documents.items() for seam in seams(restore(text.encode(), spans[name]), spans[name])
    ]
    num_joined = sum(re.fullmatch(r"\w\w", left + right) is not None for left, right in found)
    assert len(found) > 100
    assert num_joined > len(found) / 2 if snap == "none" else num_joined == 0
    assert all(len(documents[name].strip()) >= 20 for name in documents.keys() & spans.keys())
