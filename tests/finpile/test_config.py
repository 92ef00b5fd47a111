"""The corpus file is strict: every invalid entry is an error with its line and a remedy."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from finpile.config import (
    CleanConfig,
    ContaminationConfig,
    CorpusConfig,
    DedupConfig,
    EvalSetConfig,
    HeldoutConfig,
    NearConfig,
    SourceConfig,
    TokenizerConfig,
    TokensConfig,
    load_config,
    to_dict,
)
from finpile.config.strict_yaml import Place
from finpile.errors import ConfigError

#: Seven lines; each case below adds its own, or changes one of these.
SMALL = """\
name: small
sources:
  - name: News
    dataset: FinPile
    format: jsonl
    paths: [news/*.jsonl]
    fields: {text: body}
"""

Refusal = Callable[[str], str]


@pytest.fixture
def refusal(tmp_path: Path) -> Refusal:
    """Loads a text that must be refused, and returns the message, the file's folder cut off."""

    def load(text: str) -> str:
        path = tmp_path / "corpus.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            load_config(path)
        message = str(caught.value)
        assert message.startswith(f"{path}:"), message
        return message.removeprefix(f"{tmp_path}/")

    return load


def load(folder: Path, text: str) -> CorpusConfig:
    path = folder / "corpus.yaml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


def test_small_file_gets_every_default(tmp_path: Path) -> None:
    found = load(tmp_path, SMALL)
    source = SourceConfig(
        name="News", dataset="FinPile", format="jsonl", paths=("news/*.jsonl",), fields={"text": "body"}
    )
    assert found == CorpusConfig(name="small", sources=(source,), root=str(tmp_path))


def test_contract_example_is_read_value_by_value(tmp_path: Path) -> None:
    text = SMALL + (
        "    clean: {filters: [c4], html: always}\n"
        "    license: CC-BY-4.0\n"
        "    encoding: [utf-8, latin-1]\n"
        '    date_pattern: "%Y%m%d"\n'
        '    members: ["*.txt"]\n'
        "root: data\n"
        "dedup:\n"
        "  exact_fold: whitespace\n"
        "  near: {ngram: 4, bands: 10, rows: 2, edit_similarity: 1, numbers: any}\n"
        "  scope: corpus\n"
        "heldout: {after: 2022-07-31, undated: drop}\n"
        "tokenizer: {vocab_size: 4_096, chunks: 7, chunk_vocab_size: 300, max_piece_bytes: 9, train_on: [FinPile]}\n"
        "tokens: {sequence_length: 512}\n"
        "reports: {private: [FinPile, Bloomberg]}\n"
    )
    found = load(tmp_path, text)
    (source,) = found.sources
    assert source.clean == CleanConfig(filters=("c4",), html="always")
    assert (source.license, source.encoding) == ("CC-BY-4.0", ("utf-8", "latin-1"))
    assert (source.date_pattern, source.members) == ("%Y%m%d", ("*.txt",))
    assert found.root == str(tmp_path / "data")
    near = NearConfig(ngram=4, bands=10, rows=2, edit_similarity=1.0, numbers="any")
    assert found.dedup == DedupConfig(exact=True, exact_fold="whitespace", near=near, scope="corpus")
    assert found.heldout == HeldoutConfig(after=date(2022, 7, 31), undated="drop")
    assert found.tokenizer == TokenizerConfig(
        vocab_size=4096, chunks=7, chunk_vocab_size=300, max_piece_bytes=9, train_on=("FinPile",)
    )
    assert found.tokens == TokensConfig(sequence_length=512)
    assert found.reports.private == ("FinPile", "Bloomberg")


@pytest.mark.parametrize("name", ["sample.yaml", "open-finance.yaml"])
def test_configs_of_the_project_are_valid(name: str, sample_config: Path) -> None:
    assert load_config(sample_config.parent / name).sources


@pytest.mark.parametrize(("written", "expected"), [("auto", "auto"), ("3", 3)])
def test_chunks_are_a_number_or_auto(written: str, expected: object, tmp_path: Path) -> None:
    assert load(tmp_path, SMALL + f"tokenizer: {{chunks: {written}}}\n").tokenizer.chunks == expected


@pytest.mark.parametrize("written", ["null", "~", ""])
def test_null_near_leaves_near_duplicates_in(written: str, tmp_path: Path) -> None:
    assert load(tmp_path, SMALL + f"dedup:\n  near: {written}\n").dedup.near is None


@pytest.mark.parametrize(("name", "ngram", "bands", "rows"), [("fast", 1, 48, 10), ("paper", 5, 450, 20)])
def test_near_may_be_named(name: str, ngram: int, bands: int, rows: int, tmp_path: Path) -> None:
    asked = NearConfig(ngram=ngram, bands=bands, rows=rows)
    assert load(tmp_path, SMALL + f"dedup: {{near: {name}}}\n").dedup.near == asked


def test_builds_and_tables_have_one_default_of_near(tmp_path: Path) -> None:
    assert load(tmp_path, SMALL).dedup.near == NearConfig.named("fast") == NearConfig()


def test_one_path_needs_no_list(tmp_path: Path) -> None:
    found = load(tmp_path, SMALL.replace("[news/*.jsonl]", "news/one.jsonl"))
    assert found.sources[0].paths == ("news/one.jsonl",)


@pytest.mark.parametrize(
    ("root", "expected"),
    [("sub/..", "{folder}"), ("/elsewhere", "/elsewhere"), ("gs://bucket/data", "gs://bucket/data")],
)
def test_root_is_relative_to_the_file_unless_it_is_a_url(root: str, expected: str, tmp_path: Path) -> None:
    assert load(tmp_path, SMALL + f"root: {root}\n").root == expected.format(folder=tmp_path)


@pytest.mark.parametrize("root", [None, "{folder}/other", "s3://bucket/data"])
def test_files_of_filters_are_below_the_root_that_is_given(root: str | None, tmp_path: Path) -> None:
    (tmp_path / "corpus.yaml").write_text(SMALL + "    clean: {filters: [{url_list: {lists: [adult]}}]}\n")
    given = None if root is None else root.format(folder=tmp_path)
    found = load_config(tmp_path / "corpus.yaml", given)
    assert found.root == (given or str(tmp_path))
    assert found.sources[0].clean.filters[0].parameters.lists == (f"{found.root}/adult",)


EVALUATION = SMALL + "contamination:\n  sets:\n    - name: Quiz\n      paths: quiz.jsonl\n      fields: passage\n"


def test_evaluation_sets_get_every_default(tmp_path: Path) -> None:
    quiz = EvalSetConfig(name="Quiz", paths=("quiz.jsonl",), fields=("passage",))
    found = load(tmp_path, EVALUATION).contamination
    assert found == ContaminationConfig(sets=(quiz,), ngram=13, min_words=8, max_documents=10, min_coverage=0.3)
    assert load(tmp_path, SMALL).contamination is None
    assert load(tmp_path, EVALUATION + "      min_coverage: 1\n").contamination == ContaminationConfig(
        sets=(dataclasses.replace(quiz, min_coverage=1.0),)
    )


EVALUATION_ERRORS = {
    "no set": (SMALL + "contamination: {sets: []}\n", 8, "list at least one evaluation set"),
    "sets forgotten": (SMALL + "contamination: {ngram: 13}\n", 8, "key `sets` is missing"),
    "name twice": (
        EVALUATION + "    - {name: Quiz, paths: a.jsonl, fields: b}\n",
        10,
        "'Quiz': expected each name once",
    ),
    "no field": (EVALUATION.replace("fields: passage", "fields: []"), 12, "fields of evaluation set 'Quiz' is empty"),
    "no name": (EVALUATION.replace("name: Quiz", 'name: ""'), 10, "name of evaluation set '' is empty"),
    "long gram": (EVALUATION + "  ngram: 33\n", 13, "ngram is 33: expected 1 to 32 words, such as 13"),
    "more words than the gram": (EVALUATION + "  min_words: 14\n", 13, "expected 1 to ngram, which is 13"),
    "no document": (EVALUATION + "  max_documents: 0\n", 13, "max_documents is 0: expected at least 1"),
    "no coverage": (EVALUATION + "  min_coverage: 0.0\n", 13, "min_coverage is 0.0: expected 0 < value <= 1"),
    "coverage of a set": (EVALUATION + "      min_coverage: 30\n", 13, "min_coverage of evaluation set 'Quiz' is 30.0"),
}


@pytest.mark.parametrize(("text", "line", "reported"), EVALUATION_ERRORS.values(), ids=EVALUATION_ERRORS.keys())
def test_evaluation_sets_that_cannot_be_meant_are_refused(
    text: str, line: int, reported: str, refusal: Refusal
) -> None:
    message = refusal(text)
    assert message.startswith(f"corpus.yaml:{line}: ")
    assert reported in message


UNKNOWN = [
    ("rooot: x\n", 8, "rooot", "root"),
    ("    pahts: [a]\n", 8, "pahts", "paths"),
    ("    clean: {filter: [c4]}\n", 8, "filter", "filters"),
    ("dedup:\n  exact: true\n  exactfold: none\n", 10, "exactfold", "exact_fold"),
    ("dedup:\n  near:\n    band: 4\n", 10, "band", "bands"),
    ("heldout: {afer: 2022-07-31}\n", 8, "afer", "after"),
    ("tokenizer:\n\n  vocabsize: 4096\n", 10, "vocabsize", "vocab_size"),
    ("tokens: {sequence_lenght: 512}\n", 8, "sequence_lenght", "sequence_length"),
    ("reports: {privat: [FinPile]}\n", 8, "privat", "private"),
]


@pytest.mark.parametrize(("added", "line", "key", "nearest"), UNKNOWN, ids=[case[2] for case in UNKNOWN])
def test_unknown_key_names_line_and_nearest(added: str, line: int, key: str, nearest: str, refusal: Refusal) -> None:
    message = refusal(SMALL + added)
    assert message.startswith(f"corpus.yaml:{line}: unknown key `{key}`")
    assert f"did you mean `{nearest}`?" in message


def test_unknown_field_names_its_own_line_and_nearest(refusal: Refusal) -> None:
    message = refusal(SMALL.replace("fields: {text: body}", "fields:\n      text: body\n      txet: body"))
    assert message.startswith("corpus.yaml:9: ")
    assert "'txet'" in message
    assert "did you mean `text`?" in message


def test_unknown_key_that_is_near_to_nothing_lists_all(refusal: Refusal) -> None:
    known = "contamination, dedup, heldout, limits, mixture, name, reports, root, sources, tokenizer, tokens"
    assert refusal(SMALL + "zzz: 1\n") == f"corpus.yaml:8: unknown key `zzz` in the corpus; known: {known}"


WRONG_TYPES = {
    "number for text": (SMALL.replace("name: small", "name: 5"), 1, "'5'", "text"),
    "list for text": (SMALL.replace("name: small", "name: [a]"), 1, "list", "text"),
    "nothing for text": (SMALL.replace("name: small", "name:"), 1, "name", "text"),
    "text for list of mappings": ("name: x\nsources: News\n", 2, "'News'", "a list"),
    "text for mapping": ("name: x\nsources:\n  - News\n", 3, "'News'", "a mapping"),
    "list for mapping": (SMALL + "tokens: [512]\n", 8, "a list", "a mapping"),
    "nothing for mapping": (SMALL + "tokens:\n", 8, "tokens", "a mapping"),
    "mapping for list": (SMALL.replace("[news/*.jsonl]", "{a: b}"), 6, "a mapping", "a list"),
    "number in list of text": (SMALL.replace("[news/*.jsonl]", "[a, 7]"), 6, "'7'", "text"),
    "list for fields": (SMALL.replace("{text: body}", "[text]"), 7, "a list", "a mapping"),
    "number as field": (SMALL.replace("{text: body}", "{text: 1}"), 7, "'1'", "text"),
    "text for number": (SMALL + "tokens: {sequence_length: long}\n", 8, "'long'", "a whole number"),
    "fraction for whole number": (SMALL + "tokens: {sequence_length: 5.5}\n", 8, "'5.5'", "a whole number"),
    "truth for whole number": (SMALL + "tokens: {sequence_length: true}\n", 8, "'true'", "a whole number"),
    "text for number with point": (SMALL + "dedup: {near: {edit_similarity: most}}\n", 8, "'most'", "a number"),
    "truth for number with point": (SMALL + "dedup: {near: {edit_similarity: yes}}\n", 8, "'yes'", "a number"),
    "text for truth": (SMALL + "dedup: {exact: sure}\n", 8, "'sure'", "true or false"),
    "number for truth": (SMALL + "dedup: {exact: 1}\n", 8, "'1'", "true or false"),
    "text for day": (SMALL + "heldout: {after: soon}\n", 8, "'soon'", "a day such as 2022-07-31"),
    "day that is none": (SMALL + "heldout: {after: 2022-02-30}\n", 8, "2022-02-30", "a day such as 2022-07-31"),
    "moment for day": (SMALL + "heldout: {after: 2022-07-31 12:00:00}\n", 8, "12:00", "a day such as 2022-07-31"),
    "list for a file": ("- name: x\n", 1, "a list", "a mapping"),
    "text for a file": ("corpus\n", 1, "'corpus'", "a mapping"),
}


@pytest.mark.parametrize(("text", "line", "found", "expected"), WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
def test_wrong_type_names_line_value_and_expectation(
    text: str, line: int, found: str, expected: str, refusal: Refusal
) -> None:
    message = refusal(text)
    assert message.startswith(f"corpus.yaml:{line}: ")
    assert found in message
    assert f"expected {expected}" in message


@pytest.mark.parametrize("value", ["5", "yes", "2021-03-04", "1.0", "Yes"])
def test_text_that_yaml_takes_for_another_type_is_to_be_quoted(value: str, refusal: Refusal) -> None:
    message = refusal(SMALL.replace("name: small", f"name: {value}"))
    assert message == f"corpus.yaml:1: `name` is '{value}': expected text; put it in quotes if it is text"
    assert "quotes" not in refusal(SMALL.replace("name: small", "name: null"))
    assert "quotes" not in refusal(SMALL + "tokens: {sequence_length: long}\n")


@pytest.mark.parametrize(
    ("key", "line"), [("name", 1), ("sources", 1), ("dataset", 3), ("format", 3), ("paths", 3)], ids=str
)
def test_missing_key_is_named(key: str, line: int, refusal: Refusal) -> None:
    lines = SMALL.splitlines(keepends=True)
    text = "name: x\n" if key == "sources" else "".join(row for row in lines if not row.strip(" ").startswith(key))
    if key == "name":
        text = "".join(lines[1:])
    message = refusal(text)
    assert message.startswith(f"corpus.yaml:{line}: key `{key}` is missing")


DUPLICATES = [
    (SMALL + "name: again\n", 8, "name"),
    (SMALL + "    format: text\n", 8, "format"),
    (SMALL + "dedup: {near: {rows: 2, rows: 3}}\n", 8, "rows"),
    (SMALL.replace("{text: body}", "{text: body, text: title}"), 7, "text"),
]


@pytest.mark.parametrize(
    ("text", "line", "key"), DUPLICATES, ids=["of the corpus", "of a source", "of near", "of fields"]
)
def test_duplicate_key_is_refused(text: str, line: int, key: str, refusal: Refusal) -> None:
    message = refusal(text)
    assert message.startswith(f"corpus.yaml:{line}: key `{key}` is given twice")


ENUMS = [
    ("dedup: {scope: everything}\n", "everything", ("dataset", "corpus")),
    ("dedup: {exact_fold: cases}\n", "cases", ("none", "whitespace", "case", "case_whitespace")),
    ("dedup: {near: {numbers: drop}}\n", "drop", ("keep", "any")),
    ("    clean: {html: sometimes}\n", "sometimes", ("auto", "always", "never")),
    ("    clean: {html: no}\n", "no", ("auto", "always", "never")),
    ("dedup: {near: fats}\n", "fats", ("fast",)),
    ("dedup: {near: 3}\n", "3", ("a mapping",)),
    ("tokenizer: {chunks: many}\n", "many", ("auto", "a whole number")),
    ("tokenizer: {chunks: 1.5}\n", "1.5", ("auto", "a whole number")),
]


@pytest.mark.parametrize(("added", "value", "choices"), ENUMS, ids=[case[0].strip() for case in ENUMS])
def test_bad_choice_names_the_valid_choices(added: str, value: str, choices: tuple[str, ...], refusal: Refusal) -> None:
    message = refusal(SMALL + added)
    assert message.startswith("corpus.yaml:8: ")
    assert repr(value) in message
    assert all(choice in message for choice in choices), message


#: Text, line of the key or value that is wrong, remedy.
BAD_VALUES = [
    (SMALL.replace("jsonl\n", "jsonll\n", 1), 5, "did you mean `jsonl`?"),
    (SMALL.replace("[news/*.jsonl]", "[]"), 6, "at least one file or pattern"),
    (SMALL.replace("name: News", f"name: {'新闻' * 14}"), 3, "takes 259 bytes of 255: shorten it"),
    (SMALL.replace("dataset: FinPile", f"dataset: {'x' * 248}"), 4, "takes 256 bytes of 255: shorten it"),
    (SMALL.replace("format: jsonl", "format: text"), 7, "format text of source 'News' has no named fields"),
    (SMALL + "    encoding: [utf-8, utf-9]\n", 8, "no encoding is called 'utf-9'"),
    (SMALL + "    encoding: [utf-8, utf-16]\n", 8, "`iconv -f utf-16 -t utf-8`"),
    (SMALL + "    clean: {filters: [c5]}\n", 8, "did you mean `c4`?"),
    ("name: x\nsources: []\n", 2, "list at least one under `sources:`"),
    (SMALL + "dedup: {exact: false}\n", 8, "set `exact: true`"),
    (
        SMALL + "dedup: {exact: false, near: null}\nheldout: {after: 2022-07-31, undated: drop, overlap: {}}\n",
        9,
        "near duplicates are searched among distinct texts",
    ),
    (SMALL + "dedup: {near: {ngram: 0}}\n", 8, "near.ngram is 0: expected at least 1"),
    (SMALL + "dedup: {near: {bands: -1}}\n", 8, "near.bands is -1: expected at least 1"),
    (SMALL + "dedup: {near: {rows: 0}}\n", 8, "near.rows is 0: expected at least 1"),
    (SMALL + "dedup: {near: {edit_similarity: 0}}\n", 8, "0.0: expected 0 < value <= 1"),
    (SMALL + "dedup: {near: {edit_similarity: 1.01}}\n", 8, "1.01: expected 0 < value <= 1"),
    (SMALL + "dedup: {near: {edit_similarity: .nan}}\n", 8, "nan: expected 0 < value <= 1"),
    (SMALL + "    date_format: dayfirst\n", 8, "expected day-first, month-first, year-first, or a strptime pattern"),
    (SMALL + '    date_format: "%d-%m"\n', 8, "needs a year"),
    (
        SMALL.replace("jsonl\n", "sgml\n", 1).replace("    fields: {text: body}\n", "    date_format: day-first\n"),
        7,
        "date_format: format sgml has no date field",
    ),
    (SMALL + "heldout: {undated: drop}\n", 8, "set its day with `after`"),
    (SMALL + "tokenizer: {vocab_size: 257}\n", 8, "tokenizer.vocab_size is 257: expected at least 258"),
    (SMALL + "tokenizer: {chunk_vocab_size: 0}\n", 8, "tokenizer.chunk_vocab_size is 0: expected at least 258"),
    (SMALL + "tokenizer: {chunks: 0}\n", 8, "tokenizer.chunks is 0: expected at least 1"),
    (SMALL + "tokenizer: {max_piece_bytes: 1}\n", 8, "1: expected 2 to 254"),
    (SMALL + "tokenizer: {max_piece_bytes: 255}\n", 8, "255: expected 2 to 254"),
    (SMALL + "tokens: {sequence_length: 1}\n", 8, "tokens.sequence_length is 1: expected at least 2"),
    (SMALL + "tokenizer: {train_on: [Finpile]}\n", 8, "did you mean `FinPile`?"),
    (SMALL + "dedup: {near: {bands: 1e9}}\n", 8, "'1e9': expected a whole number"),
    (SMALL + "dedup: {near: {bands: 1000000000}}\n", 8, "bands is 1,000,000,000: expected at most 65,536, because"),
    (SMALL + "dedup: {near: {rows: 65537}}\n", 8, "near.rows is 65,537: expected at most 65,536, because"),
    (SMALL + "dedup: {near: {bands: 512, rows: 129}}\n", 8, "near.bands x near.rows is 66,048: expected at most"),
    (SMALL + "dedup: {near: {ngram: 2000}}\n", 8, "near.ngram is 2,000: expected at most 1,024, because"),
    (SMALL + "dedup: {substring: {min_length: 9999999}}\n", 8, "substring.min_length is 9,999,999: expected at"),
    (SMALL + "dedup: {substring: {min_chars: -1}}\n", 8, "substring.min_chars is -1: expected at least 0"),
    (SMALL + "dedup: {substring: {min_chars: 9999999}}\n", 8, "substring.min_chars is 9,999,999: expected at"),
    (SMALL + "dedup: {substring: {rounds: 9999}}\n", 8, "substring.rounds is 9,999: expected at most 1,000"),
    (SMALL + "tokenizer: {vocab_size: 99999999}\n", 8, "tokenizer.vocab_size is 99,999,999: expected at most"),
    (SMALL + "tokenizer: {chunks: 99999999}\n", 8, "tokenizer.chunks is 99,999,999: expected at most 65,536"),
    (SMALL + "tokens: {sequence_length: 99999999}\n", 8, "tokens.sequence_length is 99,999,999: expected at most"),
    (
        SMALL + "heldout: {after: 2022-07-31, undated: train, overlap: {min_length: 9999999}}\n",
        8,
        "overlap.min_length is 9,999,999: expected at most 1,048,576",
    ),
    (
        SMALL + "heldout: {after: 2022-07-31, undated: train, overlap: {max_documents: 9999999999}}\n",
        8,
        "overlap.max_documents is 9,999,999,999: expected at most 2,147,483,647",
    ),
]


@pytest.mark.parametrize(("text", "line", "remedy"), BAD_VALUES, ids=[case[2] for case in BAD_VALUES])
def test_value_out_of_bounds_names_bound_or_remedy(text: str, line: int, remedy: str, refusal: Refusal) -> None:
    message = refusal(text)
    assert remedy in message
    assert message.startswith(f"corpus.yaml:{line}: ")


def test_split_without_a_choice_for_undated_documents_names_the_choices(refusal: Refusal) -> None:
    """There is no default: a misspelt date field would train on everything, in silence."""
    message = refusal(SMALL + "heldout:\n  after: 2022-07-31\n")
    assert message.startswith("corpus.yaml:9: ")
    for choice in ("train", "drop", "heldout"):
        assert f"`undated: {choice}`" in message


def test_sources_have_their_line_numbers(tmp_path: Path) -> None:
    """Of two equal paths, each entry has its own line; a remark that is like them has none."""
    text = SMALL.replace("name: small", "name: small  # news/*.jsonl") + (
        "  - name: Web\n    dataset: C4\n    format: jsonl\n    paths:\n      - other.jsonl\n      - news/*.jsonl\n"
    )
    first, second = load(tmp_path, text).sources
    file = tmp_path / "corpus.yaml"
    assert first.where.of("paths", "news/*.jsonl") == f"{file}:6: "
    assert second.where.of("paths", "news/*.jsonl") == f"{file}:13: "
    assert (second.where.of("paths", "absent"), second.where.of("absent")) == (f"{file}:11: ", f"{file}:8: ")
    assert dataclasses.replace(first, where=Place()) == first
    assert "where" not in to_dict(first)


BOUNDS = [
    "dedup: {near: {ngram: 1, bands: 1, rows: 1, edit_similarity: 1}}\n",
    "dedup: {near: {ngram: 1024, bands: 512, rows: 128}}\n",
    "dedup: {substring: {min_length: 1048576, min_chars: 1048576, rounds: 1000}}\n",
    "dedup: {substring: {min_length: 2, min_chars: 0, rounds: 1}}\n",
    "tokenizer: {vocab_size: 258, chunk_vocab_size: 258, chunks: 1, max_piece_bytes: 2, train_on: [FinPile]}\n",
    "tokenizer: {max_piece_bytes: 254}\n",
    "tokens: {sequence_length: 2}\n",
    "dedup: {exact: false, near: null}\n",
    "dedup: {exact: false, near: null}\nheldout: {after: 2022-07-31, undated: drop, overlap: {near: null}}\n",
]


@pytest.mark.parametrize("added", BOUNDS)
def test_value_on_its_bound_is_accepted(added: str, tmp_path: Path) -> None:
    assert load(tmp_path, SMALL + added).name == "small"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a remark\n"])
def test_error_for_an_empty_file_names_the_expected_content(text: str, refusal: Refusal) -> None:
    assert refusal(text) == "corpus.yaml: is empty; expected the keys of the corpus"


NOT_YAML = {
    "open bracket": SMALL + "report: [\n",
    "tab": SMALL + "\tname: x\n",
    "two documents": SMALL + "---\nname: y\n",
    "unknown alias": SMALL + "root: *nowhere\n",
    "unknown tag": SMALL.replace("small", "!foo small"),
    "wrong tag": SMALL + "tokens: {sequence_length: !!int many}\n",
    "half of a character": SMALL.replace("name: News", 'name: "\\ud800"'),
    "zero byte": SMALL.replace("name: News", 'name: "a\\0"'),
    "list as key": SMALL + "? [a, b]\n: c\n",
    "list as field": SMALL.replace("{text: body}", "{? [text] : body}"),
}


@pytest.mark.parametrize("text", NOT_YAML.values(), ids=NOT_YAML.keys())
def test_invalid_yaml_is_refused_in_one_line(text: str, refusal: Refusal) -> None:
    assert "\n" not in refusal(text)


@pytest.mark.parametrize(
    "text", ["name: a\nsources: [&s {name: b, paths: *s}]\n", "name: &n [*n]\n", "&c {name: *c}\n"]
)
def test_values_with_themselves_as_a_part_are_refused(text: str, refusal: Refusal) -> None:
    assert "\n" not in refusal(text)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.yaml"
    path.write_bytes(b"name: \xff\xfe\n")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_config(path)


def test_missing_file_and_folder_name_the_remedy(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(ConfigError, match=r"cannot be read \(.+\); give the path of a YAML file"):
            load_config(path)


def test_every_default_can_be_written_down_and_read_again(tmp_path: Path) -> None:
    first = load(tmp_path, SMALL)
    assert load(tmp_path, json.dumps(to_dict(first))) == first  # JSON is YAML


def test_configs_are_frozen_and_keyword_only(tmp_path: Path) -> None:
    found = load(tmp_path, SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        TokensConfig(512)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("size", "expected"),
    [("256 MiB", 256 << 20), ("1.5KiB", 1536), (2048, 2048), ("4096", 4096), ("1 GiB", 1 << 30), ("9 MB", 9_000_000)],
)
def test_limits_are_sizes_and_hold_for_sources_without_their_own(
    tmp_path: Path, size: int | str, expected: int
) -> None:
    other = SMALL.partition("sources:\n")[2].replace("name: News", "name: Web") + "    limits: {record: 9 KiB}\n"
    config = load(tmp_path, f"{SMALL}{other}limits: {{record: {size}}}\n")
    assert config.limits.record_bytes == expected
    assert [entry.limits and entry.limits.record_bytes for entry in config.sources] == [expected, 9 << 10]


@pytest.mark.parametrize("value", ["256 XB", "-1", "12 bytes", "1 KiB KiB", "5"])
def test_a_size_that_is_none_is_refused_with_its_line(refusal: Refusal, value: str) -> None:
    assert "limits.record is" in refusal(SMALL + f"limits: {{record: {value}}}\n")


@pytest.mark.parametrize(
    ("size", "expected"), [("20 GB", 20 * 10**9), ("1.5 MB", 1_500_000), (2_000_000, 2_000_000), ("all", None)]
)
def test_the_tokenizers_sample_is_a_size_or_all(tmp_path: Path, size: int | str, expected: int | None) -> None:
    (tmp_path / "corpus.yaml").write_text(SMALL + f"tokenizer: {{sample: {size}}}\n")
    assert load_config(tmp_path / "corpus.yaml").tokenizer.sample_bytes == expected


@pytest.mark.parametrize("value", ["none", "5", "999 B", "-1"])
def test_a_sample_that_is_no_size_is_refused(refusal: Refusal, value: str) -> None:
    assert "tokenizer.sample is" in refusal(SMALL + f"tokenizer: {{sample: {value}}}\n")


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ("{Newz: 2}", "'Newz' is not a source or dataset of this corpus; did you mean `News`?"),
        ("{News: 100%}", "share is 1.0: expected 0 < value < 1"),
        ("{News: 401 epochs}", "epochs is 401.0: expected 0 to 400"),
        ("{News: 5 times}", "weight '5 times': expected a number such as 1.5, `3 epochs`, `40%` or a mapping"),
        ("{News: [2]}", "expected a number or a mapping"),
        ("{News: {epoch: 2}}", "unknown key `epoch` in `News` of `mixture`; did you mean `epochs`?"),
        ("2", "`mixture` is '2': expected a mapping or null"),
    ],
)
def test_bad_mixture_is_refused_with_its_line(mixture: str, message: str, refusal: Refusal) -> None:
    found = refusal(f"{SMALL}mixture: {mixture}\n")
    assert found.startswith("corpus.yaml:8: ")
    assert message in found
