"""Checks of the tokenizer's files: they agree with each other, with the corpus file and with the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from finpile_tokenizer import UnigramModel, Vocabulary, prune_to
from finpile_tokenizer.export import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    VOCABULARY_FILE,
    tokenizer_config_json,
    tokenizer_json,
    vocabulary_table,
)

from finpile import storage
from finpile.output.layout import MERGED_MODEL, Layout
from finpile.tokens.tokenizer_files import TRAINING_FILE, USED_FILE, load_tokenizer, tokenizer_checksum
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.used import UsedFile, UsedTokenizer
from finpile.verify.check import Check
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads the tokenizer's files."""
    layout, counts, config = output.layout, output.counts.get("tokenizer"), output.config["tokenizer"]
    if counts is None:
        return []
    if config["use"] is not None:
        return [_used(layout, counts)]
    vocabulary = load_tokenizer(layout.tokenizer).vocabulary
    training = storage.read_json(storage.join(layout.tokenizer, TRAINING_FILE))
    merged = UnigramModel.from_table(storage.read_parquet(storage.join(layout.tokenizer, MERGED_MODEL)))
    wrong = _files(layout, vocabulary, merged, training)
    wrong += _counts(layout, counts, config, vocabulary, training)
    name = "tokenizer.json, vocabulary.parquet, merged.parquet, training.json and the manifest agree"
    return [Check.of(name, wrong, f"{vocabulary.vocab_size:,} entries")]


def _used(layout: Layout, counts: Mapping[str, Any]) -> Check:
    """Of a tokenizer that was not trained: its files are those that the build was given."""
    used, wrong = UsedTokenizer.read(layout.tokenizer), []
    for file in used.files:
        if UsedFile.of(file.name, _read(layout, file.name)) != file:
            wrong.append(f"{file.name} is not the file that was given")
    there = set(storage.list_files(layout.tokenizer))
    wrong += [f"{name} is no file of it" for name in sorted(there - {USED_FILE, *(file.name for file in used.files)})]
    opened = open_build_tokenizer(layout)
    found = {"vocab_size": opened.vocab_size, "eot_id": opened.eot_id, "checksum": tokenizer_checksum(layout)}
    expected = {**used.to_json(), **found}
    wrong += [
        f"{name} is {counts[name]} in the manifest, {expected[name]} in the tokenizer"
        for name in ("kind", "pattern", "end_of_document", *found)
        if counts[name] != expected[name]
    ]
    return Check.of(
        f"tokenizer: {USED_FILE}, the files that were given and the manifest agree", wrong, f"{opened.vocab_size:,} ids"
    )


def _files(layout: Layout, vocabulary: Vocabulary, merged: UnigramModel, training: Mapping[str, Any]) -> list[str]:
    """Files that are not what the vocabulary, and the model before its cut, give."""
    expected = {TOKENIZER_FILE: tokenizer_json(vocabulary), CONFIG_FILE: tokenizer_config_json()}
    altered = [name for name, content in expected.items() if _read(layout, name) != content]
    wrong = [f"{name} is not that of its vocabulary" for name in altered]
    table: pa.Table = storage.read_parquet(storage.join(layout.tokenizer, VOCABULARY_FILE))
    if not table.equals(vocabulary_table(vocabulary)):
        wrong.append(f"{VOCABULARY_FILE} is not the vocabulary of {TOKENIZER_FILE}")
    if training["mode"] != "refit":  # there the model is trained once more before it is cut
        cut = prune_to(merged, training["vocab_size_asked_for"])
        if not vocabulary_table(cut).equals(table):
            wrong.append(f"{MERGED_MODEL}, cut to {training['vocab_size_asked_for']:,} entries, is another vocabulary")
        if len(merged.pieces) != training["pieces_before_pruning"]:
            wrong.append(f"{MERGED_MODEL} has {len(merged.pieces):,} pieces")
    return wrong


def _counts(
    layout: Layout,
    counts: Mapping[str, Any],
    config: Mapping[str, Any],
    vocabulary: Vocabulary,
    training: Mapping[str, Any],
) -> list[str]:
    """What training.json and the manifest say, against the files, the corpus file and each other."""
    summed = {"chunks": len(training["chunks"]), "checksum": tokenizer_checksum(layout)}
    again = {**{name: value for name, value in training.items() if name != "chunks"}, **summed}
    wrong = [
        f"{name} is {counts.get(name)} in the manifest, {value} in {TRAINING_FILE}"
        for name, value in again.items()
        if counts.get(name) != value
    ]
    wrong += [f"the manifest counts {name}, {TRAINING_FILE} does not" for name in sorted(counts.keys() - again.keys())]
    known = {
        "vocab_size": vocabulary.vocab_size,
        "vocab_size_asked_for": config["vocab_size"],
        "mode": config["mode"],
        "max_piece_bytes": config["max_piece_bytes"],
    }
    wrong += [
        f"{name} is {training[name]} in {TRAINING_FILE}, {value} is true"
        for name, value in known.items()
        if training[name] != value
    ]
    return wrong


def _read(layout: Layout, name: str) -> bytes:
    return storage.read_bytes(storage.join(layout.tokenizer, name))
