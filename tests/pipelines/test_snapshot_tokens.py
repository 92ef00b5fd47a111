"""Each snapshot has the tokens of the documents that it publishes, and every token is its bytes in its document."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum
from finpile_tokenizer import UnigramTokenizer

from finpile.config import CorpusConfig, load_config
from finpile.documents.split import HELDOUT
from finpile.errors import ConfigError
from finpile.explorer.vocabulary import vocabulary
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.snapshots import load_snapshot, published_files
from finpile.output.takedowns import Wanted
from finpile.report.from_manifest import rewrite
from finpile.report.growth import growth_of
from finpile.tokens.provenance import TokenProvenance
from finpile.tokens.store import TokenStore, write_token_shard
from finpile.verify import snapshot_tokens
from finpile.verify.output import Output
from tests.support.made_days import CORPUS, TOKENS, failed, make_days, write_batch
from tests.support.trees import assert_same, files_below, read_published


def write_config(folder: Path) -> CorpusConfig:
    path = folder / "corpus.yaml"
    heldout = {**CORPUS["heldout"], "undated": "heldout"}
    dedup = {**CORPUS["dedup"], "order": "time"}
    path.write_text(yaml.safe_dump({**CORPUS, **TOKENS, "heldout": heldout, "dedup": dedup}, sort_keys=False))
    return load_config(path)


@pytest.fixture
def config(tmp_path: Path) -> CorpusConfig:
    return write_config(tmp_path)


def texts_in_tokens(out: Path, snapshot: int) -> dict[str, bytes]:
    """The text of each document of the tokens of a snapshot, put together from its tokens."""
    layout = Layout(str(out))
    folder = Path(layout.snapshot_tokens(snapshot).tokens)
    sides: list[tuple[str, str] | None] = [None] if (folder / "split=train").exists() else []
    for path in sorted((folder / f"split={HELDOUT}").glob("*/*")):
        sides.append((path.parent.name.split("=")[1], path.name.split("=")[1]))
    pieces, files = UnigramTokenizer.load(f"{layout.tokenizer}/tokenizer.json"), published_files(layout, snapshot)
    found: dict[str, bytes] = {}
    for side in sides:
        shards = TokenProvenance(str(out), side, snapshot)
        for sequence in range(len(shards.store)):
            ids = shards.store[sequence]
            for span in shards.spans(sequence):
                row = files[span.location.file].table().slice(span.location.row, 1).to_pylist()[0]
                part = pieces.decode([number for number in ids[span.begin : span.end] if number != pieces.eot_id])
                assert row["text"].encode()[span.first_byte : span.last_byte] == part
                found[row["id"]] = found.get(row["id"], b"") + part
    return found


def test_appended_documents_have_tokens(tmp_path: Path, config: CorpusConfig) -> None:
    days, out = make_days(1, 16), tmp_path / "out"
    days[1:] = random.Random(3).sample(days[1:], len(days) - 1)
    write_batch(tmp_path, "0", *days[:8])
    build(config, str(out), Engine())
    before = files_below(out / "tokens")
    of_build = known = texts_in_tokens(out, 0)
    for number, batch in enumerate((days[8:11], days[11:14], days[14:]), 1):
        write_batch(tmp_path, f"{number}", *batch)
        manifest = append(config, str(out), Engine())
        found = texts_in_tokens(out, number)
        assert found and manifest["snapshot"]["tokens"]["sequences"] > 0
        again = found.keys() & known.keys()
        assert all(found[name] != known[name] for name in again), "a document with the text that it had has no tokens"
        known = known | found
    rows = [read_published(f"{out}/{path}") for path in _documents(out)]
    texts = {row["id"]: row["text"].encode() for table in rows for row in table.to_pylist()}
    late = {name: text for name, text in texts.items() if name not in of_build}
    assert late and {name: known[name] for name in late} == late
    # The build leaves over the tokens at the end of its stream, which fill no sequence.
    assert all(text.startswith(known[name]) for name, text in texts.items() if name in known)
    assert sum(known.get(name) != text for name, text in texts.items()) <= 1
    assert_same(files_below(out / "tokens"), before)
    assert failed(out) == []


def _documents(out: Path) -> list[str]:
    manifest: dict[str, Any] = load_snapshot(Layout(str(out)))
    split = next(stage for stage in manifest["stages"] if stage["stage"] == "split")
    return [entry["path"] for entry in split["counts"]["documents"]]


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a corpus file with a build in `build`, and in `out` the same build with an append. Read only."""
    folder, days = tmp_path_factory.mktemp("grown"), make_days(1, 12)
    config = write_config(folder)
    write_batch(folder, "0", *days[4:], days[0])
    build(config, str(folder / "build"), Engine())
    shutil.copytree(folder / "build", folder / "out")
    write_batch(folder, "1", *days[1:4])
    append(config, str(folder / "out"), Engine())
    return folder


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_workers_make_the_same_tokens(tmp_path: Path, grown: Path, threads: bool) -> None:
    out = Path(shutil.copytree(grown / "build", tmp_path / "out"))
    append(load_config(grown / "corpus.yaml"), str(out), Engine(num_workers=2, threads=threads))
    assert_same(*(files_below(tree / "snapshots/000001") for tree in (out, grown / "out")))


def test_a_vacuum_names_all_folders_of_tokens(grown: Path) -> None:
    assert vacuum(str(grown / "out"), Engine(), dry_run=True).tokens == ["tokens", "snapshots/000001/tokens"]


def test_an_export_names_the_tokens_of_snapshots(tmp_path: Path, grown: Path) -> None:
    def export(folder: Path, name: str, split: str) -> dict[str, Any]:
        words = ["export", "tokens", str(folder), "-o", str(tmp_path / name), "--format", "npy", "--split", split]
        done = CliRunner().invoke(finpile, [*words, "--json"], catch_exceptions=False)
        assert done.exit_code == 0
        return dict(json.loads(done.output))

    snapshot = grown / "out/snapshots/000001"
    of_build, added = export(grown / "out", "build", "train"), export(snapshot, "added", "train")
    assert of_build["not_exported"] == [str(snapshot)] and added["not_exported"] == []
    store = TokenStore.open(f"{snapshot}/tokens/split=train")
    assert added["num_tokens"] == store.num_tokens > 0
    assert export(grown / "build", "alone", "train")["not_exported"] == []


def test_the_explorer_counts_the_tokens_of_snapshots_too(grown: Path) -> None:
    folders = [grown / "out" / name / "split=train" for name in ("tokens", "snapshots/000001/tokens")]
    tokens = np.concatenate([ids for folder in folders for ids in TokenStore.open(str(folder)).tokens()])
    found = vocabulary(Layout(str(grown / "out")))
    assert found is not None and found["counts"] == np.bincount(tokens, minlength=found["eot_id"] + 1).tolist()
    assert sum(source["tokens"] for source in found["by_source"]) == len(tokens)


def test_a_removal_lists_the_sequences_and_tokens_of_what_comes_back(tmp_path: Path, config: CorpusConfig) -> None:
    days, out = make_days(6, 10), tmp_path / "out"
    story = {"text": "Oil rose 2 percent on Monday after the ministers met in Vantry.", "timestamp": "2021-01-01"}
    days[0] += [("News", story), ("News", {**story, "timestamp": "2021-01-04"})]
    write_batch(tmp_path, "0", *days)
    build(config, str(out), Engine())
    known = texts_in_tokens(out, 0)
    (name,) = [name for name, text in known.items() if text == story["text"].encode()]
    manifest = remove(str(out), Wanted(ids=frozenset({name})), "they asked", Engine())
    taken_down = manifest["snapshot"]["taken_down"]["tokens"]
    ((identifier, (found,)),) = taken_down.items()
    assert (identifier, found["snapshot"], found["split"]) == (name, 0, "train")
    shards = TokenProvenance(str(out))
    spans = [shards.spans(sequence, begin, end)[0] for sequence, begin, end in found["places"]]
    assert sum(span.last_byte - span.first_byte for span in spans) == len(known[name])
    assert list(texts_in_tokens(out, 1).values()) == [known[name]]
    build_row, row = growth_of(Layout(str(out)))
    assert (build_row.number, row.number, row.taken_down) == (0, 1, 1)
    assert row.documents == build_row.documents and row.removed == build_row.removed
    assert row.new_tokens == manifest["snapshot"]["tokens"]["stream_tokens"]
    result = CliRunner().invoke(finpile, ["report", str(out)], catch_exceptions=False)
    assert "Growth by snapshot" in result.output and (out / "snapshots" / "growth.csv").exists()
    assert failed(out) == []


def test_a_mixture_gets_no_tokens(tmp_path: Path, config: CorpusConfig) -> None:
    path = tmp_path / "corpus.yaml"
    settings = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**settings, "mixture": {"News": 2.0}}, sort_keys=False))
    days = make_days(4, 8)
    write_batch(tmp_path, "0", *days[:6])
    build(load_config(path), str(tmp_path / "out"), Engine())
    write_batch(tmp_path, "1", *days[6:])
    words = ["append", str(tmp_path / "out"), str(path)]
    assert "no token shards of it: the corpus has a mixture" in CliRunner().invoke(finpile, words).output
    snapshot = json.loads((tmp_path / "out" / "manifest.json").read_text())["snapshot"]
    assert (snapshot["number"], snapshot["tokens"]) == (1, None)


def alter_token(folder: Path) -> None:
    """Writes the last shard of training tokens with its first token changed."""
    path = sorted((folder / "split=train").iterdir())[-1]
    store = TokenStore.open(str(folder / "split=train"))
    sequences = store.batch(range(len(store))).copy()
    sequences[0, 0] = (sequences[0, 0] + 1) % store.eot_id
    said = {"vocab_size": store.vocab_size, "eot_id": store.eot_id, "tokenizer": store.meta.tokenizer}
    write_token_shard(str(path), sequences, **said, padding=len(store) * store.sequence_length - store.num_tokens)


def swap_documents(folder: Path) -> None:
    """Gives two documents of an index each other's rows."""
    path = sorted((folder / "index" / "split=train").iterdir())[-1]
    index = pq.read_table(path)
    rows = index["row"].to_numpy().copy()
    rows[[0, -1]] = rows[[-1, 0]]
    place = index.schema.get_field_index("row")
    field = index.schema.field(place)
    pq.write_table(index.set_column(place, field, pa.array(rows, field.type)), path)


@pytest.mark.parametrize("spoil", [alter_token, swap_documents])
def test_tokens_of_a_snapshot_that_are_not_its_documents_are_found(
    tmp_path: Path, grown: Path, spoil: Callable[[Path], None]
) -> None:
    out = Path(shutil.copytree(grown / "out", tmp_path / "out"))
    layout = Layout(str(out))
    manifest = load_snapshot(layout)
    assert [check.ok for check in snapshot_tokens.checks(Output(layout, manifest))] == [True] * 4
    spoil(out / "snapshots" / "000001" / "tokens")
    wrong = [check.name for check in snapshot_tokens.checks(Output(layout, manifest)) if not check.ok]
    assert wrong == ["token shards of snapshot 1 = the texts that it published first, encoded"]


_PASSAGE = (
    "the committee decided after a long debate that the fee for the listing of new bonds will be raised from the first "
    "day of the next quarter and that members may object in writing"
)
_NAMED = {"wire-a": "2021-03-01", "wire-c": "2021-03-02", "web-d": "2021-03-03"}


def _write_named(folder: Path, names: Sequence[str]) -> CorpusConfig:
    """Two sources of documents that share a passage, each of its own words besides."""
    for name in (name for name in names if not (folder / f"{name}.jsonl").exists()):
        own = " ".join(f"{name}{number * number}" for number in range(40))
        line = json.dumps({"body": f"{own} {_PASSAGE}", "date": _NAMED[name]})
        (folder / f"{name}.jsonl").write_text(f"{line}\n")
    fields = {"text": "body", "timestamp": "date"}
    sources = [
        {"name": name, "dataset": "D", "format": "jsonl", "paths": f"{name.lower()}-*.jsonl", "fields": fields}
        for name in ("Wire", "Web")
    ]
    dedup = {"order": "time", "substring": {"min_length": 100}}
    (folder / "c.yaml").write_text(yaml.safe_dump({"name": "c", "sources": sources, "dedup": dedup, **TOKENS}))
    return load_config(folder / "c.yaml")


def test_files_whose_documents_keep_their_texts_have_no_tokens(tmp_path: Path) -> None:
    """The file of Web is written again, because the kept copy of its document's span is another one."""
    removed, appended = tmp_path / "removed", tmp_path / "appended"
    some = _write_named(tmp_path, ["wire-c", "web-d"])
    build(some, str(appended), Engine())
    every = _write_named(tmp_path, list(_NAMED))
    append(every, str(appended), Engine())
    build(every, str(removed), Engine())
    rows = [row for path in _documents(removed) for row in read_published(f"{removed}/{path}").to_pylist()]
    (first,) = (row["id"] for row in rows if row["locator"].startswith("wire-a"))
    remove(str(removed), Wanted(ids=frozenset({first})), "asked", Engine())
    for out, number in ((removed, 1), (appended, 1)):
        assert any("source=Web" in path for path in load_snapshot(Layout(str(out)))["snapshot"]["added"])
        assert all("web-d" not in text.decode() for text in texts_in_tokens(out, number).values())
        assert failed(out) == []


@pytest.mark.parametrize("option", [["--quality"], ["--compare", "other"]])
def test_tables_of_tokenizers_are_not_those_of_a_snapshot(grown: Path, option: list[str]) -> None:
    out = str(grown / "out")
    raised = CliRunner().invoke(finpile, ["report", out, *option]).exception
    tokenizer = option[-1] if option[-1] == "other" else "TOKENIZER"
    assert f"`finpile tokenizer compare {tokenizer} --on {out}` counts" in str(raised)
    raised = CliRunner().invoke(finpile, ["report", str(grown / "build"), "--compliance", *option]).exception
    assert isinstance(raised, ConfigError) and "leave one out" in str(raised)


def test_reports_are_not_written_over_a_snapshot_that_another_command_published(grown: Path, tmp_path: Path) -> None:
    before = load_manifest(Layout(str(grown / "build")))
    shutil.copytree(grown / "out", tmp_path / "out")
    with pytest.raises(ConfigError, match="the corpus has changed meanwhile: run the same command again"):
        rewrite(Layout(str(tmp_path / "out")), before)
    assert (tmp_path / "out/manifest.json").read_bytes() == (grown / "out/manifest.json").read_bytes()
    assert failed(tmp_path / "out") == []
