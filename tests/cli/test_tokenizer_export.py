"""`finpile export tokenizer`, and `--special` of `tokenizer encode`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

TEXT = b"a<|endoftext|>b\n"


def test_export_writes_the_requested_options(run: Run, sample_build: Path, tmp_path: Path) -> None:
    options = ("--pad-token", "<|pad|>", "--model-max-length", "512", "--special", "text")
    found = run("export", "tokenizer", sample_build / "tokenizer", "-o", tmp_path / "out", *options, "--json").json()
    assert [Path(file).name for file in found["files"]] == ["tokenizer.json", "tokenizer_config.json"]
    said = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert (said["pad_token"], said["model_max_length"], said["split_special_tokens"]) == ("<|pad|>", 512, True)


def test_export_overwrites_no_tokenizer(run: Run, copy_of_sample: Path) -> None:
    folder = copy_of_sample / "tokenizer"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "name another folder" in run("export", "tokenizer", folder, "-o", folder).refusal()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_pad_token_that_is_text_is_refused(run: Run, sample_build: Path, tmp_path: Path) -> None:
    command = ("export", "tokenizer", sample_build / "tokenizer", "-o", tmp_path / "out", "--pad-token", "a")
    assert "--pad-token" in run(*command).refusal()


@pytest.mark.parametrize(("options", "num_ends"), [((), 0), (("--special", "text"), 0), (("--special", "control"), 1)])
def test_special_token_in_a_line_is_encoded_as_configured(
    run: Run, sample_build: Path, options: tuple[str, ...], num_ends: int
) -> None:
    (ids,) = run("tokenizer", "encode", sample_build / "tokenizer", *options, "--json", stdin=TEXT).json()["ids"]
    assert ids.count(4095) == num_ends
