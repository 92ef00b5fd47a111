"""A preset of the corpus file equals its long form, and defaults are the same wherever a setting can be given."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import click
import pytest
from finpile_cli.dedup import dedup_command
from finpile_pipelines.transforms import ExactDuplicates, NearDuplicates, RepeatedSubstrings

from finpile import deduplicate
from finpile.config import CleanConfig, CorpusConfig, DedupConfig, NearConfig, load_config, to_dict
from finpile.config.corpus import from_dict
from finpile.errors import ConfigError

_WEB = "[{language: {allow: [en]}}, gopher_repetition, gopher_quality, c4]"
_THOROUGH = "{exact: true, near: fast, substring: {}, templates: {}}"


def read(folder: Path, filters: str = "[]", dedup: str = "{}", heldout: str = "{}", source: str = "") -> CorpusConfig:
    path = folder / "corpus.yaml"
    path.write_text(
        f"name: x\nsources:\n  - {{name: Web, dataset: A, format: jsonl, paths: a.jsonl, clean: {{filters: {filters}}}"
        f"{source}}}\n  - {{name: News, dataset: A, format: jsonl, paths: news.jsonl}}\ndedup: {dedup}\n"
        f"heldout: {heldout}\n"
    )
    return load_config(path)


def with_groups(folder: Path, dedup: str, heldout: str) -> CorpusConfig:
    """The corpus with `template_group: host` written out for both sources."""
    config = read(folder, dedup="{}", heldout=heldout, source="")
    text = (folder / "corpus.yaml").read_text().replace("dedup: {}", f"dedup: {dedup}")
    text = text.replace("filters: []}}", "filters: []}, template_group: host}")
    (folder / "corpus.yaml").write_text(text.replace("news.jsonl}", "news.jsonl, template_group: host}"))
    return load_config(Path(config.root) / "corpus.yaml")


@pytest.mark.parametrize(
    ("preset", "long"),
    [("web", _WEB), ("[web]", _WEB), ("[web, pii]", f"{_WEB[:-1]}, pii]"), ("[fineweb, web]", f"[fineweb, {_WEB[1:]}")],
)
def test_filters_web_are_their_long_form(tmp_path: Path, preset: str, long: str) -> None:
    short, whole = read(tmp_path, filters=preset), read(tmp_path, filters=long)
    assert short == whole
    assert json.dumps(to_dict(short)) == json.dumps(to_dict(whole))
    assert "web" not in to_dict(short)["sources"][0]["clean"]["filters"]
    assert from_dict(to_dict(short)) == short


def test_filters_web_are_given_by_name_in_python() -> None:
    names = [entry.name for entry in CleanConfig(filters=("web",)).filters]  # type: ignore[arg-type]
    assert names == ["language", "gopher_repetition", "gopher_quality", "c4"]


@pytest.mark.parametrize(
    ("heldout", "long"),
    [("{}", "{}"), ("{after: 2022-07-31, undated: drop}", "{after: 2022-07-31, undated: drop, overlap: {}}")],
)
def test_thorough_is_its_long_form(tmp_path: Path, heldout: str, long: str) -> None:
    short = read(tmp_path, dedup="thorough", heldout=heldout)
    whole = with_groups(tmp_path, _THOROUGH, long)
    assert short == whole
    assert json.dumps(to_dict(short)) == json.dumps(to_dict(whole))
    assert "thorough" not in json.dumps(to_dict(short)["dedup"])
    assert from_dict(to_dict(short)) == short


def test_thorough_keeps_what_is_given(tmp_path: Path) -> None:
    heldout = "{after: 2022-07-31, undated: drop, overlap: {min_length: 300}}"
    config = read(tmp_path, dedup="thorough", heldout=heldout, source=", template_group: source")
    assert [source.template_group for source in config.sources] == ["source", "host"]
    assert config.heldout.overlap is not None
    assert config.heldout.overlap.min_length == 300


def test_an_unknown_preset_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"corpus\.yaml:5: .*'thorogh'.*thorough"):
        read(tmp_path, dedup="thorogh")
    with pytest.raises(ConfigError, match=r"corpus\.yaml:3: .*wbe.*web"):
        read(tmp_path, filters="wbe")
    with pytest.raises(ConfigError, match="unknown key `preset`"):
        read(tmp_path, dedup="{preset: thorough}")


def test_near_and_scope_have_one_default() -> None:
    build = DedupConfig()
    assert build.near == NearConfig.named("fast")
    options = {parameter.name: parameter for parameter in dedup_command.params if isinstance(parameter, click.Option)}
    assert (options["near"].default, options["order"].default) == ("fast", build.order)
    assert options["exact_fold"].default == build.exact_fold
    calls = [deduplicate, ExactDuplicates.__init__, NearDuplicates.__init__, RepeatedSubstrings.__init__]
    defaults = [{name: entry.default for name, entry in inspect.signature(call).parameters.items()} for call in calls]
    assert {found["scope"] for found in defaults} == {build.scope}
    assert {found["order"] for found in defaults} == {build.order}
    assert defaults[0]["near"] == "fast"
