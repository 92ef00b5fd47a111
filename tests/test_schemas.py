"""The rendered contracts match the code, and the output of a build matches the contracts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from finpile import storage
from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.plugins.format import FORMATS
from tests.support.work_folders import work_folder

ROOT = Path(__file__).resolve().parents[1]
CORPUS_FILES = sorted(
    path for path in (ROOT / "pipelines" / "configs").glob("*.yaml") if not path.name.startswith("train")
)
TRAINING_FILES = sorted((ROOT / "pipelines" / "configs").glob("train*.yaml"))


def contract(name: str) -> Any:
    return json.loads((ROOT / "schemas" / f"{name}.json").read_text())


@cache
def validator(name: str) -> Any:
    schema = contract(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def valid(value: Any, name: str) -> bool:
    return bool(validator(name).is_valid(value))


def plain(value: Any) -> Any:
    """YAML as JSON has it: days are texts."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value.isoformat() if isinstance(value, date) else value


def test_rendering_gives_the_committed_bytes(renderer: ModuleType) -> None:
    rendered = renderer.render()
    stale = [path for path, content in rendered.items() if (ROOT / path).read_bytes() != content]
    assert not stale, "the code has moved on: run `make schemas`, and commit what it writes with a decision record"
    committed = {path.relative_to(ROOT).as_posix() for path in (ROOT / "schemas").glob("*.json")}
    assert committed == {path for path in rendered if path.startswith("schemas/")}


def test_settings_of_a_source_name_every_format_that_has_them() -> None:
    source = contract("corpus")["$defs"]["SourceConfig"]["properties"]
    formats = [FORMATS.get(name) for name in FORMATS.built_in]
    assert set(re.findall(r"`(\w+)`", source["format"]["description"])) == set(FORMATS.built_in)
    with_fields = {one.name for one in formats if one.fields}
    for key in ("fields", "date_format"):
        assert set(source[key]["description"].partition(":")[0].split(", ")) == with_fields


# --- Arrow -----------------------------------------------------------------------------------------------------------


def columns_on_disk(schema: pa.Schema) -> list[tuple[str, str, bool]]:
    return [(entry.name, str(entry.type), entry.nullable) for entry in schema]


def columns_promised(columns: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(column["name"], column.get("parquet_type", column["type"]), column["nullable"]) for column in columns]


@pytest.mark.parametrize(
    ("pattern", "promised"),
    [
        ("documents/**/*", contract("documents")["published"]["columns"]),
        ("removed/**/*", contract("ledger")["columns"]),
        ("tokenizer/vocabulary", contract("vocabulary")["columns"]),
        ("tokenizer/merged", contract("merged")["columns"]),
        ("tokens/index/**/*", contract("token_index")["columns"]),
    ],
    ids=["documents", "removed", "vocabulary", "merged", "token index"],
)
def test_parquet_files_have_the_promised_columns(
    sample_build: Path, pattern: str, promised: list[dict[str, Any]]
) -> None:
    files = sorted(sample_build.glob(f"{pattern}.parquet"))
    assert files
    for file in files:
        assert columns_on_disk(pq.read_schema(file)) == columns_promised(promised), file


@pytest.mark.parametrize(("stage", "form"), [("ingest", "raw"), ("clean", "document")])
def test_batches_between_stages_have_the_promised_columns(sample_build: Path, stage: str, form: str) -> None:
    folder = work_folder(sample_build, stage) / "documents"
    assert folder.names()
    promised = [
        (column["name"], column["type"], column["nullable"]) for column in contract("documents")[form]["columns"]
    ]
    for name in folder.names():
        assert columns_on_disk(next(storage.read_ipc(folder.file(name))).schema) == promised, name


def test_token_shards_have_the_promised_column_and_metadata(sample_build: Path) -> None:
    train, *heldout = sorted(
        (sample_build / "tokens").rglob("*.arrow"), key=lambda path: "split=train" not in str(path)
    )
    schema = pa.ipc.open_file(train).schema
    metadata = {key.decode(): value.decode() for key, value in schema.metadata.items()}
    assert set(metadata) == set(contract("tokens")["metadata"]) - {"padding"}
    for file in heldout:
        assert {key.decode() for key in pa.ipc.open_file(file).schema.metadata} == set(contract("tokens")["metadata"])
    assert int(metadata["vocab_size"]) <= 65_536
    promised = contract("tokens")["columns"][0]
    sized = promised["type"].replace("sequence_length", metadata["sequence_length"])
    assert columns_on_disk(schema) == [(promised["name"], sized, promised["nullable"])]


# --- JSON ------------------------------------------------------------------------------------------------------------


def artifacts(build: Path) -> Iterator[tuple[Path, str]]:
    yield build / "manifest.json", "manifest"
    yield build / "reports" / "statistics.json", "statistics"
    for file in sorted((build / "reports").glob("table*.json")):
        yield file, "table"


def test_json_artifacts_conform(sample_build: Path) -> None:
    found = list(artifacts(sample_build))
    assert len(found) >= 4
    for file, name in found:
        assert valid(json.loads(file.read_text()), name), file


#: Keys of the sample's statistics that a corpus without licences or held-out documents does not have.
OPTIONAL = {"heldout", "licenses"}


def test_an_artifact_with_a_key_more_or_less_does_not_conform(sample_build: Path) -> None:
    for file, name in artifacts(sample_build):
        value = json.loads(file.read_text())
        assert not valid({**value, "surprise": 1}, name)
        for key in value.keys() - OPTIONAL:
            assert not valid({other: value[other] for other in value if other != key}, name), key


@pytest.mark.parametrize("file", CORPUS_FILES, ids=lambda file: str(file.name))
def test_shipped_corpus_files_conform(file: Path) -> None:
    assert valid(plain(yaml.safe_load(file.read_text())), "corpus")


@pytest.mark.parametrize("file", TRAINING_FILES, ids=lambda file: str(file.name))
def test_shipped_training_files_conform(file: Path) -> None:
    assert valid(plain(yaml.safe_load(file.read_text())), "train")


_SOURCE = "{name: News, dataset: FinPile, format: jsonl, paths: [a.jsonl]}"


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (f"{{name: a, sources: [{_SOURCE}]}}", True),
        (f"{{name: a, sources: [{_SOURCE}], heldout: {{after: 2022-07-31, undated: drop}}}}", True),
        (f"{{name: a, sources: [{_SOURCE}], dedup: {{near: null}}}}", True),
        (f"{{name: a, sources: [{_SOURCE}], dedup: {{near: fast}}}}", True),
        (f"{{name: a, sources: [{_SOURCE}], tokenizer: {{chunks: auto}}}}", True),
        (f"{{name: a, sources: [{_SOURCE.replace('[a.jsonl]', 'a.jsonl')}]}}", True),
        (f"{{name: a, sources: [{_SOURCE}], dedupe: {{}}}}", False),
        (f"{{sources: [{_SOURCE}]}}", False),
        (f"{{name: 1, sources: [{_SOURCE}]}}", False),
        (f"{{name: a, sources: [{_SOURCE.replace('jsonl,', '1,')}]}}", False),
        (f"{{name: a, sources: [{_SOURCE}], tokenizer: {{chunks: few}}}}", False),
        (f"{{name: a, sources: [{_SOURCE}], heldout: {{after: July, undated: drop}}}}", False),
        (f"{{name: a, sources: [{_SOURCE}], dedup: {{scope: source}}}}", False),
        (f"{{name: a, sources: {_SOURCE}}}", False),
    ],
)
def test_schema_and_reader_agree_on_corpus_files(tmp_path: Path, text: str, is_valid: bool) -> None:
    file = tmp_path / "corpus.yaml"
    file.write_text(text)
    try:
        load_config(file)
        is_read = True
    except ConfigError:
        is_read = False
    assert (valid(plain(yaml.safe_load(text)), "corpus"), is_read) == (is_valid, is_valid)


@pytest.mark.parametrize("name", ["corpus", "train", "statement"])
def test_every_key_of_a_file_that_one_writes_has_a_default_or_is_required(name: str) -> None:
    contract = json.loads((ROOT / "schemas" / f"{name}.json").read_text())
    mappings = [mapping for mapping in (contract, *contract["$defs"].values()) if "properties" in mapping]
    assert len(mappings) > 3
    blank = [
        key
        for mapping in mappings
        for key, schema in mapping["properties"].items()
        if "default" not in schema and key not in mapping.get("required", ())
    ]
    assert blank == []


@pytest.mark.parametrize("page", ["guide-your-own-corpus", "guide-training", "guide-compliance"])
def test_references_show_every_default(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    reference = text.partition("<!-- reference: begin -->")[2].partition("<!-- reference: end -->")[0]
    rows = [line.split(" | ") for line in reference.splitlines() if line.startswith("| `")]
    assert len(rows) > 5
    assert [row for row in rows if not row[2].strip()] == []
