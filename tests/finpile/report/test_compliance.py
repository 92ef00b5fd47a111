"""The papers of a build have its figures, counted here by other means, and what was stated, and nothing else."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from finpile_cli.main import finpile

from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.manifest import write_manifest
from finpile.output.snapshots import load_snapshot
from finpile.report.compliance import papers_of, write_papers
from finpile.report.compliance.bom import SPDX_LICENSES
from finpile.report.compliance.domains import registered_domain, suffixes_version
from finpile.report.compliance.facts import kind_of
from finpile.report.compliance.stated import Given, Statement, load_given, load_statement
from finpile.report.compliance.survey import Domain, largest
from tests.support.trees import assert_same, files_below, rows_below

STATED = """
version: "2"
updated: 2026-11-25
provider: {name: Bank, contact: desk@bank.example, small: true}
model: {names: [lm-1, lm-2], placed_on_market: 2026-12-01}
sources:
  C4/C4: {link: "https://c4.example/", first_day: 2019-04-01}
crawlers: [{name: Bot, behaviour: reads robots.txt}]
rights: {code_of_practice: false}
"""


@pytest.fixture
def out(copy_of_sample: Path, tmp_path: Path) -> Path:
    """The sample with papers, for which some things were stated."""
    path = tmp_path / "stated.yaml"
    path.write_text(STATED)
    done = CliRunner().invoke(finpile, ["report", str(copy_of_sample), "--compliance", "--stated", str(path)])
    assert done.exit_code == 0, done.output
    return copy_of_sample


@pytest.fixture
def documents(out: Path) -> list[dict[str, Any]]:
    return rows_below(out / "documents")


def paper(out: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "compliance" / f"{name}.json").read_text())
    return found


def answers(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in (found, *found["sections"]):
        yield from ((answer["key"], answer) for answer in part["answers"])


def value(found: dict[str, Any], key: str) -> Any:
    (answer, *_) = (answer for name, answer in answers(found) if name == key)
    return answer["value"]


def table(found: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (rows,) = (one["rows"] for part in (found, *found["sections"]) for one in part["tables"] if one["name"] == name)
    return [row["values"] for row in rows]


def test_sections_are_those_of_the_template(out: Path) -> None:
    numbers = [section["number"] for section in paper(out, "summary")["sections"]]
    template = "1 1.1 1.2 1.3 2 2.1 2.2 2.2.1 2.2.2 2.3 2.4 2.5 2.6 3 3.1 3.2 3.3"
    assert numbers == template.split()


def test_figures_are_those_of_the_training_documents(out: Path, documents: list[dict[str, Any]]) -> None:
    training = [row for row in documents if row["split"] == "train"]
    found = paper(out, "summary")
    days = sorted(row["timestamp"].date().isoformat() for row in training if row["timestamp"])
    assert value(found, "documents") == len(training)
    assert value(found, "heldout") == len(documents) - len(training)
    assert value(found, "text_bytes") == sum(len(row["text"].encode()) for row in training)
    assert (value(found, "first_document"), value(found, "last_document")) == (days[0], days[-1])
    counts = Counter(f"{row['dataset']}: {row['source']}" for row in training)
    assert {row["source"]: row["num_docs"] for row in table(found, "sources")} == counts
    reported = json.loads((out / "reports" / "statistics.json").read_text())["sources"]
    assert value(found, "tokens") == sum(source["num_tokens"] for source in reported)
    assert value(found, "size_range") == "less than 1 billion tokens"


def test_crawled_domains_and_days_are_those_of_web_archives(out: Path, documents: list[dict[str, Any]]) -> None:
    pages = [row for row in documents if row["source"] == "Web" and row["split"] == "train"]
    sizes: Counter[str] = Counter()
    for row in pages:
        sizes[row["url"].split("/")[2].removeprefix("www.")] += len(row["text"].encode())
    (listed,) = table(paper(out, "summary"), "domains")
    assert dict(sizes) == {listed["domain"]: listed["num_bytes"]}
    days = {json.loads(row["meta"])["crawl_date"][:10] for row in pages}
    found = paper(out, "summary")
    assert (value(found, "first_crawl"), value(found, "last_crawl")) == (min(days), max(days))


def test_what_is_stated_is_marked_and_nothing_is_invented(out: Path) -> None:
    found = dict(answers(paper(out, "summary")))
    assert (found["provider"]["value"], found["provider"]["origin"]) == ("Bank", "stated")
    assert found["models"]["value"] == ["lm-1", "lm-2"]
    assert found["link of C4/C4"]["value"] == "https://c4.example/"
    silent = ("representative", "dependencies", "acquired_until", "rights_measures", "illegal_content", "other")
    assert all(found[key] | {"label": ""} == unstated(key) for key in silent)
    said = [answer for answer in found.values() if answer["origin"] == "stated"]
    assert {str(answer["value"]) for answer in said} <= {
        "2", "2026-11-25", "Bank", "desk@bank.example", "True", "False", "['lm-1', 'lm-2']", "2026-12-01",
        "https://c4.example/", "2019-04-01", "['Bot']", "reads robots.txt",
    }  # fmt: skip


def unstated(key: str) -> dict[str, Any]:
    return {"key": key, "label": "", "value": None, "origin": "not stated"}


def test_licences_are_counted_by_licence_source_and_document(out: Path, documents: list[dict[str, Any]]) -> None:
    found = paper(out, "licenses")
    sizes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in documents:
        sizes[row["license"]][0] += 1
        sizes[row["license"]][1] += len(row["text"].encode())
    *rows, total = table(found, "by_license")
    assert {row["license"]: [row["num_docs"], row["num_bytes"]] for row in rows} == dict(sizes)
    assert total["num_docs"] == len(documents)
    each = ds.dataset(out / "compliance" / "licenses", partitioning="hive").to_table().to_pylist()
    expected = [(row["id"], row["license"], row["dataset"]) for row in documents]
    assert sorted((row["id"], row["license"], row["dataset"].replace("%20", " ")) for row in each) == sorted(expected)


def test_statement_has_the_digests_that_sha256sum_prints(out: Path) -> None:
    found = json.loads((out / "compliance" / "provenance.intoto.json").read_text())
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    assert found["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {entry["name"]: entry["digest"]["sha256"] for entry in found["subject"]}
    files = [path for path in out.rglob("*") if path.is_file() and path.relative_to(out).parts[0] != ".work"]
    names = {path.relative_to(out).as_posix(): path for path in files}
    published = {name for name in names if not name.startswith(("compliance/", "delta/"))}
    assert subjects == {name: hashlib.sha256(names[name].read_bytes()).hexdigest() for name in published}
    more = {entry["name"]: entry["digest"]["sha256"] for entry in found["predicate"]["runDetails"]["byproducts"]}
    assert more == {name: hashlib.sha256(names[name].read_bytes()).hexdigest() for name in more}
    texts = {name for name in names if name.startswith("compliance/") and not name.endswith(".parquet")}
    assert more.keys() == texts - {"compliance/provenance.intoto.json"}


def test_statement_names_inputs_code_and_settings_and_no_path(out: Path) -> None:
    content = (out / "compliance" / "provenance.intoto.json").read_text()
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["config"]["root"] not in content
    definition = json.loads(content)["predicate"]["buildDefinition"]
    inputs = {entry["name"]: entry for entry in definition["resolvedDependencies"] if "annotations" in entry}
    (clean,) = (stage["counts"]["sources"] for stage in manifest["stages"] if stage["stage"] == "clean")
    digests = {f"{row['dataset']}: {row['source']}": row.get("digest_before_filters", row["digest"]) for row in clean}
    assert {name: entry["digest"]["finpileDocuments"] for name, entry in inputs.items()} == digests
    assert {"name": "finpile", "uri": f"pkg:generic/finpile@{manifest['finpile']}"} in definition[
        "resolvedDependencies"
    ]
    assert definition["externalParameters"]["corpus"]["dedup"] == manifest["config"]["dedup"]


def test_of_paths_outside_of_the_root_the_statement_has_the_last_name(out: Path) -> None:
    layout = Layout(str(out))
    manifest = load_snapshot(layout)
    source = manifest["config"]["sources"][0]
    source["paths"] = ["/home/person/archive/*.jsonl", "file:///home/person/a.txt", "s3://bucket/a/b.txt", "a/b.txt"]
    source["date_pattern"] = "/%Y/%m/%d"
    source["clean"]["filters"] = [{"url_list": {"lists": ["/home/person/lists/"]}}]
    manifest["config"]["tokenizer"]["use"] = "/home/person/tokenizers/mine"
    manifest = write_manifest(layout.manifest, manifest)
    write_papers(layout, manifest, Statement())
    content = (out / "compliance" / "provenance.intoto.json").read_text()
    assert "/home/person" not in content
    corpus = json.loads(content)["predicate"]["buildDefinition"]["externalParameters"]["corpus"]
    expected = {**manifest["config"], "tokenizer": {**manifest["config"]["tokenizer"], "use": "mine"}}
    assert corpus["tokenizer"] == expected["tokenizer"]
    source["paths"] = ["*.jsonl", "a.txt", "s3://bucket/a/b.txt", "a/b.txt"]
    source["clean"]["filters"] = [{"url_list": {"lists": ["lists"]}}]
    assert corpus["sources"][0] == source


def test_bill_of_materials_fulfils_the_schema_of_cyclonedx(out: Path) -> None:
    content = (out / "compliance" / "bom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(content) is None
    damaged = content.replace('"type": "data"', '"type": "date"', 1)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(damaged) is not None
    found = json.loads(content)
    assert {component["name"] for component in found["components"]} >= {"Web", "News", "C4"}


def test_identifiers_of_licences_are_those_of_the_schema(out: Path) -> None:
    found = json.loads((out / "compliance" / "bom.cdx.json").read_text())
    for identifier in sorted(SPDX_LICENSES):
        found["metadata"]["component"]["licenses"] = [{"license": {"id": identifier}}]
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(found)) is None, identifier


def test_hash_of_a_source_is_that_of_a_listing_by_sha256sum(out: Path) -> None:
    found = json.loads((out / "compliance" / "bom.cdx.json").read_text())
    (web,) = (component for component in found["components"] if component["name"] == "Web")
    command = "LC_ALL=C; sha256sum documents/dataset=FinPile/source=Web/* | sha256sum"
    printed = subprocess.run(["bash", "-c", command], cwd=out, capture_output=True, text=True, check=True).stdout
    assert web["hashes"] == [{"alg": "SHA-256", "content": printed.split()[0]}]


def test_the_same_build_has_the_same_papers_in_another_folder(out: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["cp", "-r", str(out), str(other)], check=True)
    write_papers(Layout(str(other)), load_snapshot(Layout(str(other))), load_statement(str(tmp_path / "stated.yaml")))
    assert_same(*(files_below(folder / "compliance") for folder in (out, other)))


def test_what_was_stated_is_read_as_it_was_written(out: Path, tmp_path: Path) -> None:
    given = load_given(str(out / "compliance" / "stated.yaml"))
    assert given.stated == load_statement(str(tmp_path / "stated.yaml"))
    assert given.suffixes == suffixes_version()
    assert given.stated.model.placed_on_market == date(2026, 12, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("provider: {nam: Bank}", "unknown key `nam`"),
        ("sources: {C4/C5: {link: x}}", "'C4/C5' is not known"),
        ("takedowns: [{snapshot: 1}]", "snapshot 1 took nothing down"),
        ("takedowns: [{snapshot: 1}, {snapshot: 1}]", "snapshot 1 is there twice"),
        ("updated: soon", "expected a day such as 2022-07-31 or null"),
    ],
)
def test_errors_of_the_statement_name_the_remedy(
    content: str, message: str, copy_of_sample: Path, tmp_path: Path
) -> None:
    path = tmp_path / "stated.yaml"
    path.write_text(content)
    done = CliRunner().invoke(finpile, ["report", str(copy_of_sample), "--compliance", "--stated", str(path)])
    assert isinstance(done.exception, ConfigError) and message in str(done.exception)
    assert not (copy_of_sample / "compliance").exists()


def test_options_of_papers_need_compliance(copy_of_sample: Path) -> None:
    done = CliRunner().invoke(finpile, ["report", str(copy_of_sample), "--stated", "x.yaml"])
    assert isinstance(done.exception, ConfigError) and "add --compliance" in str(done.exception)


def test_small_providers_list_fewer_domains() -> None:
    """A tenth, and a twentieth but at most 1,000; the largest, then by name."""
    domains = {f"{number:05d}.example": Domain(1, number // 2) for number in range(30_001)}
    all_listed = largest(domains, is_small=False)
    assert len(all_listed) == 3001 and len(largest(domains, is_small=True)) == 1000
    assert [name for name, _ in all_listed[:3]] == ["30000.example", "29998.example", "29999.example"]
    assert len(largest(dict(list(domains.items())[:41]), is_small=True)) == 3
    assert largest({}, is_small=True) == []


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.example.com", "example.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.168.1.20", "192.168.1.20"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("xn--bcher-kva.example.de", "example.de"),
    ],
)
def test_domains_are_those_that_a_registrant_has(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


@pytest.mark.parametrize(
    ("entries", "kind"),
    [
        ([{"format": "warc"}], "crawled"),
        ([{"format": "warc", "kind": "public"}], "public"),
        ([{"format": "edgar"}, {"format": "wikipedia"}], "public"),
        ([{"format": "jsonl"}], None),
        ([{"format": "jsonl", "kind": "own"}, {"format": "jsonl"}], None),
        ([{"format": "warc"}, {"format": "jsonl", "kind": "crawled"}], "crawled"),
    ],
)
def test_kind_is_stated_or_that_of_the_format(entries: list[dict[str, Any]], kind: str | None) -> None:
    assert kind_of(entries) == kind


def test_papers_of_nothing_stated_say_so(copy_of_sample: Path) -> None:
    layout = Layout(str(copy_of_sample))
    manifest = load_snapshot(layout)
    given = Given(manifest=manifest["checksum"], suffixes=suffixes_version(), stated=Statement())
    texts = dict(papers_of(layout, manifest, given, lambda size_bytes: None))
    summary = texts["compliance/summary.json"]
    assert isinstance(summary, bytes) and b'"origin": "stated"' not in summary
