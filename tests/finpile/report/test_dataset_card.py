"""The dataset card: Hugging Face `datasets` and `mlcroissant` read OUT by it, and it has what the manifest has."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import mlcroissant
import pytest
import yaml

from finpile.output.layout import CARD_FILES, CROISSANT, README
from finpile.output.manifest import CARD, CHECKSUM, checksum_of
from finpile.report.dataset_card import card_files
from finpile.verify import card, verify
from tests.support.damage import edit_manifest, read_documents

CHECK = "dataset card = the manifest"


@pytest.fixture
def manifest(sample_build: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample_build / "manifest.json").read_text())
    return found


def head_of(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((out / README).read_text().split("---\n")[1])
    return found


def test_datasets_loads_both_splits_and_the_ledger_without_arguments(sample_build: Path, tmp_path: Path) -> None:
    """It compares the numbers of rows with those of the card."""
    loaded = datasets.load_dataset(str(sample_build), cache_dir=str(tmp_path))
    expected = Counter((row["split"], row["id"]) for row in read_documents(sample_build))
    assert Counter((split, name) for split in loaded for name in loaded[split]["id"]) == expected
    assert list(loaded) == ["train", "heldout"]
    ledger = datasets.load_dataset(str(sample_build), "removed", cache_dir=str(tmp_path))["removed"]
    (info,) = (info for info in head_of(sample_build)["dataset_info"] if info["config_name"] == "removed")
    assert len(ledger) == info["splits"][0]["num_examples"] > 0


def test_mlcroissant_validates_the_card_and_loads_records(sample_build: Path) -> None:
    described = mlcroissant.Dataset(str(sample_build / CROISSANT))
    assert described.metadata.ctx.issues.errors == set()
    assert all("is recommended" in warning for warning in described.metadata.ctx.issues.warnings)
    columns = ("dataset", "source", "id", "split")
    found = [
        tuple(row[f"documents/{name}"].decode().replace("%20", " ") for name in columns)
        for row in described.records("documents")
    ]
    assert sorted(found) == sorted(tuple(row[name] for name in columns) for row in read_documents(sample_build))


def test_checksums_are_those_of_all_published_files(sample_build: Path) -> None:
    listed = json.loads((sample_build / CROISSANT).read_text())["distribution"]
    found = {entry["contentUrl"]: entry["sha256"] for entry in listed if entry["@type"] == "cr:FileObject"}
    paths = [path for path in sample_build.rglob("*") if path.is_file() and ".work" not in path.parts]
    names = {path.relative_to(sample_build).as_posix(): path for path in paths}
    tables = {name for name in names if name.startswith("delta/")}  # they follow from what is listed
    expected = names.keys() - {*CARD_FILES, "manifest.json"} - tables
    assert found == {name: hashlib.sha256(names[name].read_bytes()).hexdigest() for name in expected}


def test_stages_are_a_chain_that_begins_with_the_sources(sample_build: Path, manifest: dict[str, Any]) -> None:
    described = json.loads((sample_build / CROISSANT).read_text())
    sources, stages = described["prov:wasDerivedFrom"], described["prov:wasGeneratedBy"]
    config = manifest["config"]["sources"]
    assert [source["prov:label"] for source in sources] == [f"{one['dataset']}: {one['name']}" for one in config]
    assert [stage["prov:label"] for stage in stages] == [stage["stage"] for stage in manifest["stages"]]
    assert [used["@id"] for used in stages[0]["prov:used"]] == [source["@id"] for source in sources]
    for before, stage in itertools.pairwise(stages):
        assert stage["prov:wasInformedBy"] == {"@id": before["@id"]}


def test_the_head_has_licences_and_the_languages_that_all_sources_keep(manifest: dict[str, Any]) -> None:
    def head(change: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        changed = json.loads(json.dumps(manifest))
        change(changed)
        found: dict[str, Any] = yaml.safe_load(card_files(changed)[README].decode().split("---\n")[1])
        return found

    def license_first_file(value: str | None) -> Callable[[dict[str, Any]], None]:
        def change(changed: dict[str, Any]) -> None:
            (split,) = (stage for stage in changed["stages"] if stage["stage"] == "split")
            split["counts"]["documents"][0]["licenses"][0]["license"] = value

        return change

    def keep(sources: int) -> Callable[[dict[str, Any]], None]:
        def change(changed: dict[str, Any]) -> None:
            for source in changed["config"]["sources"][:sources]:
                source["clean"]["filters"] = ["c4", {"language": {"allow": ["en", "de"]}}]

        return change

    assert head(lambda changed: None)["license"] == ["cc0-1.0"]
    assert head(license_first_file("MIT"))["license"] == ["cc0-1.0", "mit"]
    assert head(license_first_file("of the house"))["license"] == ["cc0-1.0", "other"]
    assert head(license_first_file(None))["license"] == ["cc0-1.0", "unknown"]
    assert "language" not in head(keep(1))
    assert head(keep(len(manifest["config"]["sources"])))["language"] == ["de", "en"]


def test_no_text_of_a_document_is_in_the_card(sample_build: Path) -> None:
    texts = b"".join((sample_build / name).read_bytes() for name in CARD_FILES)
    rows = read_documents(sample_build)
    assert [row["id"] for row in rows if row["text"].encode() in texts or row["id"].encode() in texts] == []


@pytest.mark.parametrize("name", CARD_FILES)
def test_an_altered_card_is_found_also_if_the_manifest_has_its_checksum(copy_of_sample: Path, name: str) -> None:
    path = copy_of_sample / name
    path.write_text(path.read_text().replace("298", "299"))
    assert next(check.name for check in verify(str(copy_of_sample)) if not check.ok).startswith("every file")
    written = path.read_bytes()
    edit_manifest(copy_of_sample, lambda manifest: None)  # writes the card again
    path.write_bytes(written)
    raw = json.loads((copy_of_sample / "manifest.json").read_text())
    for file in raw[CARD]:
        if file["path"] == name:
            file.update(checksum=hashlib.sha256(written).hexdigest(), size_bytes=len(written))
    (copy_of_sample / "manifest.json").write_text(json.dumps({**raw, CHECKSUM: checksum_of(raw)}))
    (found,) = (check for check in verify(str(copy_of_sample), groups=(card.checks,)) if not check.ok)
    assert (found.name, found.detail) == (CHECK, f"{name} is not what the manifest gives")
