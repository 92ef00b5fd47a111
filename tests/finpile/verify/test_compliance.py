"""`verify` finds each edit of a paper, and of the files of the build from which papers are made."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.remove import remove

from finpile.documents.document import PUBLISHED_SCHEMA
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot
from finpile.output.takedowns import Wanted
from finpile.report.compliance import write_papers
from finpile.report.compliance.stated import load_statement
from finpile.verify import compliance, verify
from tests.support.damage import edit, edit_documents, find

PAPERS = "compliance papers = the build and what was stated"
STATED = """
provider: {name: Bank, contact: desk@bank.example}
data: {acquired_until: 2023-02-01}
takedowns: [{snapshot: 1, day: 2023-03-01, reference: R-17}]
"""


@pytest.fixture(scope="module")
def written(sample_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample without a document, with papers. Read only."""
    out = tmp_path_factory.mktemp("papers") / "out"
    shutil.copytree(sample_build, out)
    table = pq.read_table(out / "documents/dataset=FinPile/source=Web/train-00000-of-00001.parquet", partitioning=None)
    remove(str(out), Wanted(ids=frozenset([table["id"][0].as_py()])), "asked for", Engine())
    (out.parent / "stated.yaml").write_text(STATED)
    layout = Layout(str(out))
    write_papers(layout, load_snapshot(layout), load_statement(str(out.parent / "stated.yaml")))
    return out


@pytest.fixture
def out(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "out"))


def found(out: Path) -> set[str]:
    return {check.name for check in verify(str(out), groups=[compliance.checks]) if not check.ok}


def replaced(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(out: Path) -> None:
        path = out / "compliance" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def number_of(key: str, name: str = "summary.json") -> Callable[[Path], None]:
    """Adds one to the answer of that key."""

    def change(out: Path) -> None:
        path = out / "compliance" / name
        paper = json.loads(path.read_text())
        parts = (paper, *paper["sections"])
        (answer,) = (answer for part in parts for answer in part["answers"] if answer["key"] == key)
        answer["value"] += 1
        path.write_text(json.dumps(paper, indent=1, ensure_ascii=False) + "\n")

    return change


def digit_after(name: str, mark: str) -> Callable[[Path], None]:
    """Changes the first hex digit behind a mark."""

    def change(out: Path) -> None:
        path = out / "compliance" / name
        before, _, after = path.read_text().partition(mark)
        assert after
        path.write_text(f"{before}{mark}{'1' if after[0] == '0' else '0'}{after[1:]}")

    return change


def license_of_a_document(out: Path) -> None:
    path = next((out / "compliance" / "licenses").rglob("*.parquet"))
    table = pq.read_table(path, partitioning=None)
    place = table.schema.get_field_index("license")
    other = pa.array(["MIT", *table["license"].to_pylist()[1:]], pa.string())
    pq.write_table(table.set_column(place, table.schema.field(place), other), path)


def flipped(place: Callable[[bytes], int]) -> Callable[[Path], None]:
    """Flips a bit of a file with the licences of documents."""

    def change(out: Path) -> None:
        path = next((out / "compliance" / "licenses").rglob("*.parquet"))
        data = bytearray(path.read_bytes())
        data[place(bytes(data))] ^= 1
        path.write_bytes(data)

    return change


def deleted(name: str) -> Callable[[Path], None]:
    return lambda out: (out / "compliance" / name).unlink()


#: Edits of the papers alone.
EDITS: dict[str, Callable[[Path], None]] = {
    "documents": number_of("documents"),
    "bytes": number_of("text_bytes"),
    "held-out documents": number_of("heldout"),
    "domains": number_of("domains"),
    "a figure in Markdown": replaced("summary.md", "**Training documents:** 2", "**Training documents:** 3"),
    "a domain": replaced("summary.json", "quay-ledger.example", "quay-ledger.invalid"),
    "the provider": replaced("summary.md", "Bank", "Bunk"),
    "the day of a crawl": replaced("summary.json", "2023-01-15", "2023-01-16"),
    "a kind": replaced("summary.json", '"licensed"', '"public"'),
    "a licence": replaced("licenses.md", "CC0-1.0", "CC-BY-4.0"),
    "the licence of a document": license_of_a_document,
    "a header of a page": flipped(lambda data: 4),
    "a page": flipped(lambda data: 40),
    "a footer": flipped(lambda data: len(data) - 8 - int.from_bytes(data[-8:-4], "little")),
    "statistics of the licences": flipped(lambda data: data.rindex(b"CC0-1.0")),
    "the reason of a removal": replaced("takedown-000001.json", "asked for", "not asked for"),
    "the day of a removal": replaced("takedown-000001.md", "2023-03-01", "2023-03-02"),
    "an id that was taken down": digit_after("takedown-000001.md", "| "),
    "a digest of documents": digit_after("bom.cdx.json", 'finpile:documentsDigest",\n     "value": "'),
    "a digest of the statement": digit_after("provenance.intoto.json", '"sha256": "'),
    "a version of the code": replaced("provenance.intoto.json", '"python": "3', '"python": "2'),
    "what was stated": replaced("stated.yaml", "R-17", "R-18"),
    "the manifest that was meant": digit_after("stated.yaml", "manifest: "),
    "a paper that is missing": deleted("licenses.json"),
    "a paper that is none": lambda out: (out / "compliance" / "note.md").write_text("all is well"),
}


def test_papers_of_a_removed_from_build_are_verified(written: Path) -> None:
    assert [check for check in verify(str(written)) if not check.ok] == []
    assert any(check.name == PAPERS for check in verify(str(written), groups=[compliance.checks]))


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_a_paper_is_found(out: Path, name: str) -> None:
    EDITS[name](out)
    assert found(out) == {PAPERS}


def url_of_a_page(out: Path) -> None:
    def change(rows: list[dict[str, object]]) -> None:
        rows[0]["url"] = "https://other.example/"

    (path,) = (out / "documents").glob("*/source=Web/train-*.parquet")
    edit(path, PUBLISHED_SCHEMA, change)


def text_of_a_page(out: Path) -> None:
    def change(rows: list[dict[str, object]]) -> None:
        rows[0]["text"] = f"{rows[0]['text']}!"

    (path,) = (out / "documents").glob("*/source=Web/train-*.parquet")
    edit(path, PUBLISHED_SCHEMA, change)


@pytest.mark.parametrize("change", [url_of_a_page, text_of_a_page])
def test_an_edit_of_a_file_under_the_papers_is_found(out: Path, change: Callable[[Path], None]) -> None:
    change(out)
    wrong = [check.detail for check in verify(str(out)) if not check.ok]
    assert wrong and all("source=Web/" in detail for detail in wrong)


def test_an_edit_with_mended_checksums_is_found_by_the_papers(copy_of_sample: Path, tmp_path: Path) -> None:
    """The manifest is sealed again; the papers were made before the edit."""
    path = tmp_path / "stated.yaml"
    path.write_text("provider: {name: Bank}")
    layout = Layout(str(copy_of_sample))
    write_papers(layout, load_snapshot(layout), load_statement(str(path)))
    assert found(copy_of_sample) == set()
    edit_documents(copy_of_sample, "Web", lambda rows: find(rows, split="train").update(url="https://o.example/"))
    assert found(copy_of_sample) == {PAPERS}


def test_papers_of_an_earlier_snapshot_are_compared_with_it(sample_build: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(sample_build, tmp_path / "out"))
    layout = Layout(str(out))
    (tmp_path / "stated.yaml").write_text("provider: {name: Bank}")
    write_papers(layout, load_snapshot(layout), load_statement(str(tmp_path / "stated.yaml")))
    table = pq.read_table(next((out / "documents").rglob("source=C4/*.parquet")), partitioning=None)
    remove(str(out), Wanted(ids=frozenset([pc.min(table["id"]).as_py()])), "asked for", Engine())
    *_, check = verify(str(out), groups=[compliance.checks])
    assert check.ok and check.detail.endswith("of an earlier snapshot")


def test_papers_of_another_list_of_suffixes_say_so(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compliance, "suffixes_version", lambda: "publicsuffixlist 2")
    *_, check = verify(str(out), groups=[compliance.checks])
    assert not check.ok and "install that version" in check.detail


def test_a_build_without_papers_has_no_check(copy_of_sample: Path) -> None:
    assert all(check.name != PAPERS for check in verify(str(copy_of_sample), groups=[compliance.checks]))
