"""A format and a filter of another package, each one file: a build reads and cleans by them, with their own reasons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config, to_dict
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS
from finpile.verify import verify
from tests.support.packages import installed
from tests.support.trees import rows_below

#: Minutes: a text between lines `==`; a text that begins with a question mark is a draft.
FORMAT_FILE = """
from functools import partial

from finpile.documents.document import RawDocument
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Record, Structure
from finpile.sources.readers.base import removal


def read(stream, locator, source):
    offset = 0
    for line in stream:
        end = offset + len(line)
        if line.startswith(b"=="):
            yield Structure(offset, end, "minutes_rule")
        else:
            where = f"{locator}#{offset}"
            yield Record(offset, end, where, line, partial(parse, line, where, source))
        offset = end


def parse(line, where, source):
    if line.startswith(b"?"):
        return removal(source, where, "minutes_draft", "begins with a question mark", line)
    return RawDocument(locator=where, text=line.decode())


FORMAT = Format(
    name="minutes",
    read=read,
    reasons={"minutes_draft": "a draft"},
    structure={"minutes_rule": "a line between two texts"},
)
"""
FILTER_FILE = """
from dataclasses import dataclass

from finpile.plugins.filter import Filter, Rejection


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    max_exclamations: int = 3


def apply(text, parameters):
    count = text.count("!")
    if count > parameters.max_exclamations:
        return Rejection("shouting", f"{count} exclamation marks > {parameters.max_exclamations}")
    return []


FILTER = Filter(name="shouting", apply=apply, reasons={"shouting": "too many exclamation marks"}, parameters=Parameters)
"""
MINUTES = "The board met on Monday.\n==\n? Not agreed yet.\nThe bank raised its rate! Again!\n==\nOil rose.\n"


@pytest.fixture
def package(tmp_path: Path) -> Iterator[None]:
    """An installed package `minutes_package` with one format and one filter."""
    modules = {"minutes_format": FORMAT_FILE, "shouting_filter": FILTER_FILE}
    entries = {FORMATS: "minutes = minutes_format:FORMAT", FILTERS: "shouting = shouting_filter:FILTER"}
    with installed(tmp_path / "site", modules, entries):
        yield


def _corpus(tmp_path: Path, filters: list[Any]) -> Path:
    (tmp_path / "board.min").write_text(MINUTES)
    source = {"name": "Board", "dataset": "FinPile", "format": "minutes", "paths": ["*.min"]}
    path = tmp_path / "corpus.yaml"
    corpus = {"name": "minutes", "sources": [{**source, "clean": {"filters": filters}}], "dedup": {"near": None}}
    path.write_text(yaml.safe_dump(corpus))
    return path


@pytest.mark.usefixtures("package")
def test_build_with_a_format_and_a_filter_of_another_package_has_their_reasons_in_the_ledger(tmp_path: Path) -> None:
    config = load_config(_corpus(tmp_path, [{"shouting": {"max_exclamations": 1}}]))
    assert to_dict(config)["sources"][0]["clean"]["filters"] == [{"shouting": {"max_exclamations": 1}}]
    out = tmp_path / "out"
    build(config, str(out), Engine(num_workers=1), until="split")
    assert {(row["stage"], row["reason"], row["removed_text"]) for row in rows_below(out / "removed")} == {
        ("ingest", "minutes_draft", b"? Not agreed yet.\n"),
        ("clean", "shouting", b"The bank raised its rate! Again!"),
    }
    assert sorted(row["text"] for row in rows_below(out / "documents")) == ["Oil rose.", "The board met on Monday."]
    [account] = ds.dataset(out / "inputs").to_table()["structure"].to_pylist()
    assert dict(account) == {"minutes_rule": 6}
    assert [check.name for check in verify(str(out)) if not check.ok] == []


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (["shoutin"], "filters: 'shoutin' is not known; did you mean `shouting`"),
        ([{"shoutin": {}}], "filters: 'shoutin' is not known; did you mean `shouting`"),
        ([{"shouting": {"max_exclamation": 1}}], "unknown key `max_exclamation` in `shouting`; did you mean"),
        ([{"shouting": {"max_exclamations": "one"}}], "`max_exclamations` is 'one': expected a whole number"),
        ([{"shouting": {}, "c4": {}}], "an entry of `filters` is a mapping of 2 keys"),
        ([{"c4": {"min_sentences": 0}}], "min_sentences is 0: expected at least 1"),
    ],
)
def test_parameters_of_filters_are_checked_strictly(tmp_path: Path, filters: list[Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(_corpus(tmp_path, filters))
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path}/corpus.yaml:")


@pytest.mark.usefixtures("package")
def test_filter_without_parameters_is_written_as_its_name(tmp_path: Path) -> None:
    for filters in (["c4", "shouting"], [{"c4": {}}, {"shouting": {"max_exclamations": 3}}]):
        config = load_config(_corpus(tmp_path, filters))
        assert to_dict(config.sources[0].clean)["filters"] == ["c4", "shouting"]
