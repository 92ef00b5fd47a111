"""`verify` recomputes counts and digests: it finds an edit although every checksum was made to agree with it.

Each test damages a copy of the sample build, then updates all checksums and sizes in the manifest, its own last. If
others may fail, too, only the groups of checks run that are to find the edit, and those of files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_tokenizer import UnigramTokenizer

from finpile import storage
from finpile.output import stage_record
from finpile.output.manifest import CHECKSUM
from finpile.output.stage_record import fingerprint
from finpile.tokens.store import TokenStore, write_token_shard
from finpile.verify import GROUPS, counts, licenses, record, reports, texts, tokenizer, tokens, verify
from finpile.verify.check import Check
from finpile.verify.output import Output
from tests.support import damage

Group = Callable[[Output], list[Check]]
Row = dict[str, Any]

FILES = "every file is there, unaltered, and no other"
MANIFEST = "the manifest is as it was written"
FILE_COUNTS = "counts and digests of every file of documents and ledger"
STAGE_COUNTS = "counts of every stage = documents and ledger"
DATES = "dates that clean did not find = documents and ledger"
LICENCES = "licences are those of the corpus file, or of the record"
TOKENIZER = "tokenizer.json, vocabulary.parquet, merged.parquet, training.json and the manifest agree"
TOKEN_COUNTS = "counts of documents, characters, bytes and tokens"
TOKENS = "token shards = training documents, encoded, in the order of their texts' digests"
HELDOUT_TOKENS = "held-out token shards = held-out documents, encoded, by source"
REPORTS = "reports = the counts of the manifest"
LATER = "what is held out is later than all that is trained on"
#: The group of each check; a group that cannot read what it checks has its own name.
GROUP_OF: dict[str, Group] = {
    MANIFEST: record.checks,
    FILE_COUNTS: counts.checks,
    STAGE_COUNTS: counts.checks,
    DATES: counts.checks,
    LICENCES: licenses.checks,
    TOKENIZER: tokenizer.checks,
    TOKEN_COUNTS: tokens.checks,
    TOKENS: tokens.checks,
    HELDOUT_TOKENS: tokens.checks,
    "tokens: ": tokens.checks,
    REPORTS: reports.checks,
    LATER: texts.checks,
}


def broken(out: Path, *groups: Group) -> set[str]:
    """The checks of files and of the groups that fail; without groups those of all."""
    return {check.name for check in verify(str(out), groups=groups or GROUPS) if not check.ok}


def edit_manifest(out: Path, change: Callable[[dict[str, Row]], object]) -> None:
    """Changes the manifest, its stages by name, and then its checksum."""

    def by_name(manifest: Row) -> None:
        change({stage["stage"]: stage for stage in manifest["stages"]} | {"": manifest})

    damage.edit_manifest(out, by_name)


def mend(out: Path) -> None:
    """Makes every checksum, size and number of rows in the manifest that of the file on disk."""

    def change(stages: dict[str, Row]) -> None:
        stages["tokenizer"]["counts"]["checksum"] = stage_record.file_record(
            str(out), "tokenizer/tokenizer.json"
        ).checksum
        for entry in entries(stages):
            found = stage_record.file_record(str(out), entry["path"])
            entry["size_bytes"], entry["checksum"] = found.size_bytes, found.checksum
            rows = pq.read_metadata(out / entry["path"]).num_rows if entry["path"].endswith(".parquet") else None
            entry.update({key: rows for key in ("rows", "num_rows") if rows is not None and entry.get(key) is not None})

    edit_manifest(out, change)


def entries(stages: dict[str, Row]) -> Iterator[Row]:
    for name, stage in stages.items():
        if name:
            yield from stage["files"]
    yield from stages["split"]["counts"]["documents"]
    yield from stages["split"]["counts"]["ledger"]


def rewrite_documents(out: Path, source: str, change: Callable[[pa.Table], pa.Table]) -> None:
    (path,) = (out / "documents").glob(f"*/source={source}/train-*.parquet")
    before = pq.ParquetFile(path).read()
    after = change(before)
    assert not after.equals(before), "the damage must change something"
    storage.write_parquet(str(path), after.cast(before.schema))
    mend(out)


def with_first(table: pa.Table, name: str, value: Any) -> pa.Table:
    """The table with another value in the first row of a column."""
    values = [value, *table[name].to_pylist()[1:]]
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, table.schema.field(index).type))


def edit_json(path: Path, change: Callable[[Row], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_mending_alone_breaks_nothing(copy_of_sample: Path) -> None:
    mend(copy_of_sample)
    assert broken(copy_of_sample) == set()


# --- the manifest ----------------------------------------------------------------------------------------------------

#: An edit of the manifest, and the checks that fail with the manifest's checksum mended.
EDITS: dict[str, tuple[Callable[[dict[str, Row]], object], set[str]]] = {
    "tokens of the stream": (lambda s: s["tokens"]["counts"].update(stream_tokens=1), {TOKEN_COUNTS}),
    "sequences": (lambda s: s["tokens"]["counts"].update(sequences=268), {TOKEN_COUNTS, REPORTS}),
    "tokens left over": (lambda s: s["tokens"]["counts"].update(tokens_left_over=0), {TOKEN_COUNTS}),
    "tokens of a source": (
        lambda s: s["tokens"]["counts"]["statistics"][0]["groups"][0].update(num_tokens=1),
        {TOKEN_COUNTS, REPORTS},
    ),
    "a source's statistics twice": (
        lambda s: s["tokens"]["counts"]["statistics"].append(s["tokens"]["counts"]["statistics"][0]),
        {TOKEN_COUNTS, REPORTS},
    ),
    "documents of a file": (lambda s: s["split"]["counts"]["documents"][0].update(documents=1), {FILE_COUNTS}),
    "held-out documents": (lambda s: s["split"]["counts"]["documents"][0].update(heldout=99), {FILE_COUNTS}),
    "bytes of a file": (lambda s: s["split"]["counts"]["documents"][0].update(text_bytes=1), {FILE_COUNTS}),
    "licences of a file": (
        lambda s: s["split"]["counts"]["documents"][0]["licenses"][0].update(license="MIT"),
        {FILE_COUNTS, REPORTS},
    ),
    "digest of a file": (lambda s: s["split"]["counts"]["documents"][0].update(digest="0" * 32), {FILE_COUNTS}),
    "a file's source": (
        lambda s: next(one for one in s["split"]["counts"]["documents"] if one["source"] == "News").update(
            source="Web"
        ),
        {FILE_COUNTS},
    ),
    "a file without counts": (lambda s: s["split"]["counts"]["documents"].pop(), {FILE_COUNTS, MANIFEST}),
    "removals of a file": (
        lambda s: s["split"]["counts"]["ledger"][0]["removed"][0].update(num_docs=7),
        {FILE_COUNTS, REPORTS},
    ),
    "exact": (lambda s: s["exact"]["counts"].update(removed=19), {STAGE_COUNTS}),
    "near": (lambda s: s["near"]["counts"].update(removed=13), {STAGE_COUNTS, REPORTS}),
    "compared pairs": (lambda s: s["near"]["counts"].update(compared_pairs=11), {REPORTS}),
    "unreadable": (lambda s: s["ingest"]["counts"]["sources"][0].update(removed={}), {STAGE_COUNTS}),
    "undated": (lambda s: s["clean"]["counts"]["sources"][0].update(undated=99), {DATES}),
    "dated": (lambda s: [row.update(undated=0) for row in s["clean"]["counts"]["sources"]], {DATES}),
    "unreadable dates": (
        lambda s: [row.update(unreadable_dates=0) for row in s["clean"]["counts"]["sources"]],
        {DATES},
    ),
    "cleaned": (lambda s: s["clean"]["counts"]["sources"][0].update(spans=0), {STAGE_COUNTS}),
    "vocabulary size": (lambda s: s["tokenizer"]["counts"].update(vocab_size=4095), {TOKENIZER, REPORTS}),
    "vocabulary size asked for": (
        lambda s: s[""]["config"]["tokenizer"].update(vocab_size=8192),
        {TOKENIZER, MANIFEST},
    ),
    "chunks": (lambda s: s["tokenizer"]["counts"].update(chunks=3), {TOKENIZER, REPORTS}),
    "name": (lambda s: s[""].update(name="another"), {MANIFEST, REPORTS}),
    "name, twice": (lambda s: (s[""].update(name="x"), s[""]["config"].update(name="x")), {MANIFEST, REPORTS}),
    "name, and all of its traces in the manifest": (
        lambda s: (
            s[""].update(name="x"),
            s[""]["config"].update(name="x"),
            s[""].update(config_hash=fingerprint(s[""]["config"])),
        ),
        {REPORTS},
    ),
    "a licence in the corpus file": (
        lambda s: [source.update(license="MIT") for source in s[""]["config"]["sources"]],
        {LICENCES, MANIFEST},
    ),
    "day of the split": (lambda s: s[""]["config"]["heldout"].update(after="2022-06-30"), {LATER}),
    "a stage's files": (lambda s: s["reports"]["files"].append(s["tokens"]["files"][0]), {MANIFEST}),
    "a statistic of no form": (lambda s: s["tokens"]["counts"].pop("statistics"), {"tokens: "}),
}


@pytest.mark.parametrize(("change", "checks"), EDITS.values(), ids=EDITS.keys())
def test_edit_of_the_manifest_is_found_by_its_counts(
    copy_of_sample: Path, change: Callable[[dict[str, Row]], object], checks: set[str]
) -> None:
    edit_manifest(copy_of_sample, change)
    found = broken(copy_of_sample, *{GROUP_OF[check] for check in checks})
    assert all(any(name.startswith(check) for name in found) for check in checks), found


def test_any_edit_of_the_manifest_alone_breaks_its_checksum(copy_of_sample: Path) -> None:
    edit_json(copy_of_sample / "manifest.json", lambda manifest: manifest["stages"][0].update(wall_seconds=0.0))
    assert broken(copy_of_sample) == {MANIFEST}
    edit_json(copy_of_sample / "manifest.json", lambda manifest: manifest.pop(CHECKSUM))
    assert broken(copy_of_sample) == {MANIFEST}


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["notes.txt", "documents.bak/part.parquet", "manifest.json.orig"])
def test_extra_entry_at_the_top_is_found(copy_of_sample: Path, name: str) -> None:
    (copy_of_sample / name).parent.mkdir(exist_ok=True)
    (copy_of_sample / name).write_text("x")
    assert broken(copy_of_sample) == {FILES}


@pytest.mark.parametrize("value", ["MIT", None], ids=str)
def test_edited_licence_is_found(copy_of_sample: Path, value: str | None) -> None:
    """Of a source whose format has no licences of records."""
    rewrite_documents(copy_of_sample, "Bloomberg", lambda table: with_first(table, "license", value))
    assert broken(copy_of_sample, licenses.checks, counts.checks) == {LICENCES, FILE_COUNTS}


METADATA: dict[str, Any] = {"license": "MIT", "title": "Another", "url": "https://example.com/x", "meta": '{"a": 1}'}


@pytest.mark.parametrize("name", METADATA)
def test_edited_metadata_is_found(copy_of_sample: Path, name: str) -> None:
    """Of records, which may say it of themselves: only the digest taken at publication tells."""
    rewrite_documents(copy_of_sample, "News", lambda table: with_first(table, name, METADATA[name]))
    assert FILE_COUNTS in broken(copy_of_sample, counts.checks)


@pytest.mark.parametrize("name", ["tokenizer/training.json", "tokens/index/split=train/part-00000-of-00001.parquet"])
def test_file_that_is_absent_on_disk_and_in_the_manifest_is_found(copy_of_sample: Path, name: str) -> None:
    (copy_of_sample / name).unlink()

    def change(stages: dict[str, Row]) -> None:
        files = stages[name.split("/", 1)[0]]["files"]
        files.remove(next(file for file in files if file["path"] == name))

    edit_manifest(copy_of_sample, change)
    (found,) = [check for check in verify(str(copy_of_sample)) if not check.ok]
    assert "FileNotFoundError" in found.detail


# --- tokens ----------------------------------------------------------------------------------------------------------

Ids = np.ndarray[Any, Any]


def swap(ids: Ids, tokenizer: UnigramTokenizer) -> Ids:
    """Two documents of the stream change places."""
    flat = ids.reshape(-1)
    first, second = np.flatnonzero(flat == tokenizer.eot_id)[:2] + 1
    return np.concatenate([flat[first:second], flat[:first], flat[second:]]).reshape(ids.shape)


def split_piece(ids: Ids, tokenizer: UnigramTokenizer) -> Ids:
    """The same text in other pieces: its first piece of two bytes as two bytes. The last token falls off."""
    flat = ids.reshape(-1).tolist()
    place = next(index for index, token in enumerate(flat) if len(tokenizer.decode([token])) == 2)
    return np.array([*flat[:place], *tokenizer.decode([flat[place]]), *flat[place + 1 : -1]]).reshape(ids.shape)


def alter(ids: Ids, tokenizer: UnigramTokenizer) -> Ids:
    changed = ids.copy()
    changed[-1, -1] = (changed[-1, -1] + 1) % tokenizer.eot_id
    return changed


TOKEN_EDITS = {
    "one token": alter,
    "two documents swapped": swap,
    "another segmentation": split_piece,
    "two sequences swapped": lambda ids, _: ids[[1, 0, *range(2, len(ids))]],
    "a sequence dropped": lambda ids, _: ids[:-1],
    "a sequence twice": lambda ids, _: np.concatenate([ids, ids[:1]]),
}


@pytest.mark.parametrize("change", TOKEN_EDITS.values(), ids=TOKEN_EDITS.keys())
def test_edited_tokens_are_found(copy_of_sample: Path, change: Callable[[Ids, UnigramTokenizer], Ids]) -> None:
    store = TokenStore.open(str(copy_of_sample / "tokens" / "split=train"))
    tokenizer = UnigramTokenizer.load(copy_of_sample / "tokenizer")
    (path,) = (copy_of_sample / "tokens" / "split=train").iterdir()
    edited = change(store.batch(range(len(store))), tokenizer)
    write_token_shard(
        str(path), edited, vocab_size=store.vocab_size, eot_id=store.eot_id, tokenizer=store.meta.tokenizer
    )
    mend(copy_of_sample)
    assert TOKENS in broken(copy_of_sample, tokens.checks)


@pytest.mark.parametrize("change", [alter, swap], ids=["one token", "two documents swapped"])
def test_edited_held_out_tokens_are_found(copy_of_sample: Path, change: Callable[[Ids, UnigramTokenizer], Ids]) -> None:
    folder = copy_of_sample / "tokens/split=heldout/dataset=FinPile/source=News"
    store = TokenStore.open(str(folder))
    edited = change(store.batch(range(len(store))), UnigramTokenizer.load(copy_of_sample / "tokenizer"))
    (path,) = folder.iterdir()
    padding = store.sequence_length - store.length_of(len(store) - 1)
    said: Row = {"vocab_size": store.vocab_size, "eot_id": store.eot_id, "tokenizer": store.meta.tokenizer}
    write_token_shard(str(path), edited, **said, padding=padding)
    mend(copy_of_sample)
    assert broken(copy_of_sample) == {HELDOUT_TOKENS}


def test_held_out_tokens_that_are_absent_or_padded_otherwise_are_found(copy_of_sample: Path) -> None:
    folder = copy_of_sample / "tokens/split=heldout/dataset=FinPile/source=News"
    store = TokenStore.open(str(folder))
    (path,) = folder.iterdir()
    said: Row = {"vocab_size": store.vocab_size, "eot_id": store.eot_id, "tokenizer": store.meta.tokenizer}
    write_token_shard(str(path), store.batch(range(len(store))), **said)
    edit_manifest(copy_of_sample, lambda stages: stages["tokens"]["counts"]["heldout"].pop())
    mend(copy_of_sample)
    assert broken(copy_of_sample) == {HELDOUT_TOKENS}


@pytest.mark.parametrize("key", ["vocab_size", "tokenizer"])
def test_edited_metadata_of_tokens_is_found(copy_of_sample: Path, key: str) -> None:
    store = TokenStore.open(str(copy_of_sample / "tokens" / "split=train"))
    (path,) = (copy_of_sample / "tokens" / "split=train").iterdir()
    said: Row = {"vocab_size": store.vocab_size, "eot_id": store.eot_id, "tokenizer": store.meta.tokenizer}
    said[key] = {"vocab_size": 5000, "tokenizer": "0" * 32}[key]
    write_token_shard(str(path), store.batch(range(len(store))), **said)
    mend(copy_of_sample)
    assert TOKENS in broken(copy_of_sample, tokens.checks)


# --- the tokenizer ---------------------------------------------------------------------------------------------------


def set_score(content: Row) -> None:
    content["model"]["vocab"][300][1] -= 1


TOKENIZER_EDITS: dict[str, Callable[[Path], object]] = {
    "a score": lambda folder: edit_json(folder / "tokenizer.json", set_score),
    "training.json": lambda folder: edit_json(folder / "training.json", lambda found: found.update(vocab_size=4095)),
    "bytes trained on": lambda folder: edit_json(folder / "training.json", lambda found: found.update(trained_bytes=1)),
    "its class": lambda folder: edit_json(folder / "tokenizer_config.json", lambda found: found.update(eos_token="x")),
    "a row of vocabulary.parquet": lambda folder: rewrite_parquet(folder / "vocabulary.parquet", "log_prob", -1.0),
    "the models of a piece": lambda folder: rewrite_parquet(folder / "vocabulary.parquet", "num_models", 7),
    "a row of merged.parquet": lambda folder: rewrite_parquet(folder / "merged.parquet", "log_prob", -0.5),
}


def rewrite_parquet(path: Path, name: str, value: float) -> None:
    table = pq.read_table(path, partitioning=None)
    storage.write_parquet(str(path), with_first(table, name, value))


@pytest.mark.parametrize("change", TOKENIZER_EDITS.values(), ids=TOKENIZER_EDITS.keys())
def test_edited_tokenizer_is_found(copy_of_sample: Path, change: Callable[[Path], object]) -> None:
    change(copy_of_sample / "tokenizer")
    mend(copy_of_sample)
    found = broken(copy_of_sample, tokenizer.checks)
    assert any(name == TOKENIZER or name.startswith("tokenizer: ") for name in found)


# --- reports ---------------------------------------------------------------------------------------------------------


def test_reports_of_another_version_are_those_of_its_manifest(
    copy_of_sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("finpile.report.from_manifest.__version__", "99.0")
    assert broken(copy_of_sample) == set()


@pytest.mark.parametrize("name", ["table1.csv", "index.html", "statistics.json"])
def test_edited_report_is_found(copy_of_sample: Path, name: str) -> None:
    path = copy_of_sample / "reports" / name
    path.write_text(path.read_text().replace("2", "3", 1))
    mend(copy_of_sample)
    assert broken(copy_of_sample) == {REPORTS}


@pytest.fixture(scope="module")
def compared(sample_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample build with tables of tokenizers. Read only."""
    out = tmp_path_factory.mktemp("compared") / "out"
    shutil.copytree(sample_build, out, ignore=shutil.ignore_patterns(".work"))
    arguments = ["report", str(out), "--compare", f"other={out}/tokenizer", "--quality"]
    assert CliRunner().invoke(finpile, arguments, catch_exceptions=False).exit_code == 0
    found = {check.name: check for check in verify(str(out))}
    assert found[REPORTS].ok and found[REPORTS].detail.endswith(" files, 4 tables of tokenizers as in their JSON")
    return out


@pytest.mark.parametrize("name", ["index.html", "table3.csv", "table3_efficiency.md", "tokenizer_quality.tex"])
def test_edited_report_with_tables_of_tokenizers_is_found(compared: Path, tmp_path: Path, name: str) -> None:
    """The page has tables that only texts and tokenizers give: they are compared with their JSON files."""
    out = Path(shutil.copytree(compared, tmp_path / "out"))
    path = out / "reports" / name
    before = path.read_text()
    path.write_text(before[: before.rindex("1")] + before[before.rindex("1") :].replace("1", "7", 1))
    mend(out)
    assert broken(out) == {REPORTS}
