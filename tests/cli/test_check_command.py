"""`finpile check`: finds a corpus file and its inputs, or names the error and its location."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SAMPLES = Path(__file__).resolve().parents[2] / "data_samples"


def replace(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_sample_corpus_is_valid_and_counted(run: Run, sample_config: Path) -> None:
    found = run("check", sample_config, "--json")
    assert found.code == 0
    report = found.json()
    assert report["name"] == "sample"
    filings = [path for end in ("txt", "nc") for path in (SAMPLES / "filings").glob(f"*.{end}")]
    (row,) = (row for row in report["sources"] if row["source"] == "Filings")
    first = row.pop("first_records")
    assert (first["records"], first["unreadable"], first["undated"]) == (24, 4, 0)
    assert row == {
        "dataset": "FinPile",
        "source": "Filings",
        "format": "edgar",
        "files": len(filings),
        "bytes": sum(path.stat().st_size for path in filings),
    }
    assert len(report["sources"]) == 11


def test_table_shows_every_source_in_plain_lines(run: Run, sample_config: Path) -> None:
    found = run("check", sample_config)
    assert (found.code, found.err) == (0, "")
    assert "\x1b" not in found.out
    assert "\r" not in found.out
    lines = [line.split() for line in found.out.splitlines()]
    assert lines[1] == ["dataset", "source", "format", "files", "size"]
    assert [line[:3] for line in lines[2:5]] == [
        ["FinPile", "Web", "warc"],
        ["FinPile", "News", "jsonl"],
        ["FinPile", "News", "sgml"],
    ]
    assert len([line for line in found.out.splitlines() if line.startswith("  ") and line[2] != " "]) == 11
    assert f"finpile build {sample_config} -o OUT" in found.out


def test_check_writes_nothing(run: Run, corpus: Path) -> None:
    before = sorted(corpus.parent.rglob("*"))
    assert run("check", corpus).code == 0
    assert sorted(corpus.parent.rglob("*")) == before


def test_root_may_be_given(run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "news").rename(tmp_path / "other" / "news")
    assert run("check", corpus).code == 2
    assert run("check", corpus, "--root", tmp_path / "other").code == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my corpus.yaml").write_bytes(corpus.read_bytes())
    found = run("check", "my corpus.yaml", "--root", "other")
    assert found.code == 0
    assert found.out.rstrip().endswith("finpile build 'my corpus.yaml' -o OUT --root other")


def test_pattern_without_matches_names_line_pattern_and_existing_files(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", "news/*.json.gz")).refusal()
    assert message.startswith(f"{corpus}:6: ")
    assert "'news/*.json.gz'" in message
    assert "matches no file" in message
    assert "there is: a.jsonl" in message


def test_missing_path_names_line_path_and_nearest(run: Run, corpus: Path) -> None:
    replace(corpus, "[news/*.jsonl]", "\n      - news/a.jsonl\n      - newz/a.jsonl")
    message = run("check", corpus).refusal()
    assert message.startswith(f"{corpus}:8: ")
    assert "'newz/a.jsonl'" in message
    assert "there is: news" in message


@pytest.mark.parametrize(
    ("pattern", "written"), [("news", "news/*"), ("ne*", "ne*/*"), ("news/", "news/*"), ("''", "*")]
)
def test_folder_is_no_input_and_the_message_names_the_remedy(
    run: Run, corpus: Path, pattern: str, written: str
) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", pattern)).refusal()
    assert message.startswith(f"{corpus}:6: ")
    assert message.endswith(f": write {written}")


def test_scheme_that_no_file_system_has_is_refused(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", "gopher://host/a.jsonl")).refusal()
    assert "gopher://host/a.jsonl" in message


def test_wrong_key_names_line_and_nearest(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "paths", "path")).refusal()
    assert message == f"{corpus}:6: unknown key `path` in an entry of `sources`; did you mean `paths`?"


def test_date_pattern_without_a_year_is_refused_with_its_line(run: Run, corpus: Path) -> None:
    text = corpus.read_text()
    for pattern in ("%Q", "%m", "no date", "%Y%q%m", "%Y/%Y-%m-%d"):
        corpus.write_text(text + f'    date_pattern: "{pattern}"\n')
        message = run("check", corpus).refusal()
        assert message.startswith(f"{corpus}:7: date_pattern {pattern!r}")


def test_file_of_one_object_is_read_after_the_remedy_of_its_error(run: Run, corpus: Path) -> None:
    (corpus.parent / "news" / "a.jsonl").write_text(json.dumps({"text": "Oil rose."}, indent=2))
    assert run("check", corpus).refusal().endswith("set `format: json`")
    assert run("check", replace(corpus, "format: jsonl", "format: json")).code == 0


def with_quiz(corpus: Path, paths: str) -> Path:
    (corpus.parent / "quiz.jsonl").write_text('{"passage": "Oil rose, and gold fell."}\n')
    added = f"contamination:\n  sets:\n    - name: Quiz\n      paths: {paths}\n      fields: passage\n"
    corpus.write_text(f"{corpus.read_text().rstrip()}\n{added}")
    return corpus


def test_evaluation_sets_are_found_and_counted(run: Run, corpus: Path) -> None:
    config = with_quiz(corpus, "quiz.jsonl")
    report = run("check", config, "--json").json()
    size = (corpus.parent / "quiz.jsonl").stat().st_size
    assert report["evaluation_sets"] == [{"set": "Quiz", "files": 1, "bytes": size}]
    assert ["Quiz", "1", str(size), "B"] in [line.split() for line in run("check", config).out.splitlines()]


def test_evaluation_set_that_is_not_there_names_its_line(run: Run, corpus: Path) -> None:
    config = with_quiz(corpus, "quizz.jsonl")
    message = run("check", config).refusal()
    line = config.read_text().splitlines().index("      paths: quizz.jsonl") + 1
    assert message.startswith(f"{config}:{line}: ")
    assert "evaluation set 'Quiz'" in message
    assert "there is: quiz.jsonl" in message


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("dedup: {substring: {unit: tokens, tokenizer: nowhere}}", "substring.tokenizer: no tokenizer at"),
        ("contamination: {sets: [{name: Quiz, paths: quiz.jsonl, fields: nothing}]}", "has no text in nothing"),
        ("tokenizer: {use: nowhere}", "tokenizer.use:"),
    ],
)
def test_files_that_a_build_refuses_before_its_first_stage_are_refused(
    run: Run, corpus: Path, setting: str, says: str
) -> None:
    """Filters name files, too; no document need reach them."""
    (corpus.parent / "quiz.jsonl").write_text('{"passage": "Which port is in the north?"}\n')
    corpus.write_text(corpus.read_text() + setting + "\n")
    refusals = [run("check", corpus).refusal(), run("build", corpus, "-o", corpus.parent / "out").refusal()]
    assert says in refusals[0] == refusals[1]


def test_links_and_odd_names_are_found(run: Run, corpus: Path) -> None:
    news = corpus.parent / "news"
    os.symlink(news / "a.jsonl", news / "linked.jsonl")
    (news / "b [1] é%20#.jsonl").write_text("{}\n")
    report = run("check", corpus, "--json").json()
    assert report["sources"][0]["files"] == 3


def test_json_holds_nothing_else(run: Run, corpus: Path) -> None:
    found = run("check", corpus, "--json")
    size = (corpus.parent / "news" / "a.jsonl").stat().st_size
    first = {
        "records": 1, "unreadable": 0, "unreadable_by_reason": {}, "removed": 0, "removed_by_reason": {},
        "cut_by_reason": {}, "undated": 1, "bad_dates": 0, "date_order": None, "dates": [],
        "warnings": ["1 of 1 documents have no date"],
    }  # fmt: skip
    row = {"dataset": "FinPile", "source": "News", "format": "jsonl", "files": 1, "bytes": size, "first_records": first}
    assert json.loads(found.out) == {"name": "small", "sources": [row], "warnings": []}


# --- the first records


def with_records(corpus: Path, *records: object, setting: str = "fields: {timestamp: when}") -> Path:
    """The corpus with these records in the place of its own, and one more line under its source."""
    lines = (json.dumps(record) + "\n" for record in records)
    (corpus.parent / "news" / "a.jsonl").write_text("".join(lines))
    corpus.write_text(f"{corpus.read_text()}    {setting}\n")
    return corpus


def stories(*days: object) -> list[dict[str, object]]:
    return [{"text": f"Oil rose {number} percent.", "when": day} for number, day in enumerate(days)]


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"PAR1" + bytes(40), "looks like Parquet: set `format: parquet`"),
        (b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n", "looks like a WARC file: set `format: warc`"),
        (b"<SEC-DOCUMENT>0001.txt", "looks like an EDGAR filing: set `format: edgar`"),
        (b"<!DOCTYPE lewis SYSTEM 'x'>\n<REUTERS>", "looks like Reuters SGML: set `format: sgml`"),
        (b"[\n{},\n{}]", "looks like a JSON array"),
        (b'{\n  "text": "Oil"\n}', "looks like one JSON object over several lines: set `format: json`"),
        (b'{\n  "text": 1\n}\n{\n  "text": 2\n}\n', "looks like JSON objects over several lines each"),
        (b"a\tb\tc\n1\t2\t3\n", "looks like a table with tabs"),
        (b"Oil rose.\nGold fell.\n", "looks like plain text: set `format: text`"),
        (b"%PDF-1.4", "looks like PDF"),
        ("Öl".encode("latin-1") * 99, "looks like text of another encoding than UTF-8"),
        (b"", "looks like an empty file"),
    ],
)
def test_wrong_format_names_the_format_that_the_file_looks_like(
    run: Run, corpus: Path, content: bytes, looks: str
) -> None:
    (corpus.parent / "news" / "a.jsonl").write_bytes(content)
    message = run("check", corpus).refusal()
    assert message.startswith(f"{corpus}:5: source 'News': no document in the first ")
    assert looks in message


def test_compressed_file_of_another_format_is_looked_into(run: Run, corpus: Path) -> None:
    (corpus.parent / "news" / "a.jsonl").unlink()
    (corpus.parent / "news" / "b.jsonl.gz").write_bytes(gzip.compress(b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n"))
    assert "looks like a WARC file" in run("check", replace(corpus, "*.jsonl", "*.gz")).refusal()


def test_missing_text_field_lists_the_fields_there_are(run: Run, corpus: Path) -> None:
    message = run("check", with_records(corpus, {"body": "Oil rose.", "id": 1}, {"title": "Oil"})).refusal()
    assert message.startswith(f"{corpus}:7: ")
    assert "none has the field `text`" in message
    assert "fields there are: body, id, title" in message


def test_field_that_no_record_has_names_its_line_and_the_nearest(run: Run, corpus: Path) -> None:
    records = [{"text": "Oil rose.", "published": "2021-03-04"}] * 2
    message = run("check", with_records(corpus, *records, setting="fields: {timestamp: publishd}")).refusal()
    assert message.startswith(f"{corpus}:7: source 'News': no record has the field `publishd`")
    assert message.endswith("a record has published, text; did you mean `published`?")


def test_field_that_a_late_record_has_is_found(run: Run, corpus: Path) -> None:
    """A field is refused only after all records are read, not only the first ones, and the output states that."""
    late = [*stories(*["2021-03-04"] * 300), {**stories("2021-03-05")[0], "headline": "Oil"}]
    config = with_records(corpus, *late, setting="fields: {timestamp: when, title: headline}")
    found = run("check", config)
    assert found.code == 0
    assert "all of them are read" in found.out


def test_dates_whose_order_is_open_are_refused_with_three_examples(run: Run, corpus: Path) -> None:
    message = run("check", with_records(corpus, *stories("2/10/2008", "3/10/2008", "4/10/2008", "5/10/2008"))).refusal()
    assert message.startswith(f"{corpus}:7: source 'News': the order of day and month in `when` is not proven")
    assert [f"'{day}/10/2008' in news/a.jsonl#" in message for day in (2, 3, 4, 5)] == [True, True, True, False]
    assert "date_format: day-first" in message


@pytest.mark.parametrize(("declared", "read"), [("day-first", "2008-10-02"), ('"%m/%d/%Y"', "2008-02-10")])
def test_declared_order_is_shown_by_examples(run: Run, corpus: Path, declared: str, read: str) -> None:
    config = with_records(
        corpus, *stories("2/10/2008"), setting=f"fields: {{timestamp: when}}\n    date_format: {declared}"
    )
    assert f"dates: 2/10/2008 = {read}" in run("check", config).out


def test_proof_beyond_the_first_records_is_looked_for_in_all(run: Run, corpus: Path) -> None:
    config = with_records(corpus, *stories(*["2/10/2008"] * 300, "23/10/2008"))
    found = run("check", config)
    assert found.code == 0
    assert "all of them are read" in found.out
    (row,) = run("check", config, "--json").json()["sources"]
    assert row["first_records"]["date_order"] == "day-first"
    assert row["first_records"]["dates"][0]["read"] == "2008-10-02T00:00:00+00:00"


def test_undated_and_unreadable_dates_are_called_out(run: Run, corpus: Path) -> None:
    found = run("check", with_records(corpus, *stories("2021-03-04", None, "soon", "soon")))
    assert "warning: 3 of 4 documents have no date" in found.out
    assert "warning: 2 of 4 documents have a date that cannot be read" in found.out


def test_peek_prints_the_first_records(run: Run, corpus: Path) -> None:
    records = [{"text": "Oil rose. " * 50, "when": "2021-03-04", "title": "Oil"}, *stories(None, None)]
    out = run("check", with_records(corpus, *records), "--peek", "2").out
    assert "news/a.jsonl#0: 2021-03-04T00:00:00+00:00 (field), 'Oil'" in out
    assert "Oil rose. Oil rose." in out
    assert "no date" in out
    assert "percent" in out
    assert len([line for line in out.splitlines() if "news/a.jsonl#" in line]) == 2


def test_line_is_that_of_the_entry_not_of_the_first_text_that_is_like_it(run: Run, corpus: Path) -> None:
    """`absent.jsonl` also occurs in a comment, and in the previous entry as part of another name."""
    text = corpus.read_text().replace("name: small", "name: small  # absent.jsonl is not news/absent.jsonl")
    (corpus.parent / "news" / "not-news").mkdir()
    (corpus.parent / "news" / "not-news" / "absent.jsonl").write_text('{"text": "x"}\n')
    corpus.write_text(
        text.replace("[news/*.jsonl]", "[news/not-news/absent.jsonl]")
        + "  - name: Web\n    dataset: C4\n    format: jsonl\n    paths:\n      - news/a.jsonl\n      - absent.jsonl\n"
    )
    assert run("check", corpus).refusal().startswith(f"{corpus}:12: source 'Web': 'absent.jsonl'")


# --- settings that match nothing


def warnings_of(run: Run, config: Path) -> list[str]:
    found: list[str] = run("check", config, "--json").json()["sources"][0]["first_records"]["warnings"]
    return [warning for warning in found if "have no date" not in warning]


CALL = {"title": "Q1", "turns": [{"speaker": "Ann", "text": "Oil rose."}, {"speaker": "Bob", "text": "Why?"}]}


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{#turns}}{{speaker}}: {{txet}} {{/turns}}", "no entry of `turns` has the field `txet`"),
        ("{{title}} {{#trns}}{{speaker}}: {{text}} {{/trns}}", "no record has the field `trns`"),
        ("{{titel}} {{#turns}}{{text}} {{/turns}}", "no record has the field `titel`"),
    ],
)
def test_name_of_a_template_that_no_record_has_is_an_error(run: Run, corpus: Path, template: str, says: str) -> None:
    config = with_records(corpus, CALL, CALL, setting=f'fields: {{text: "{template}"}}')
    message = run("check", config).refusal()
    assert message.startswith(f"{corpus}:7: source 'News': {says}, which the template of `text` names; ")
    nearest = {"txet": "text", "trns": "turns", "titel": "title"}
    assert message.endswith(f"did you mean `{nearest[says.split('`')[-2]]}`?")
    assert run("build", config, "-o", corpus.parent / "out").refusal(2) == message


def test_name_of_a_template_that_a_late_record_has_is_no_error(run: Run, corpus: Path) -> None:
    late = {"title": "Q9", "turns": [{"speaker": "Ann", "text": "Oil rose.", "role": "CFO"}]}
    template = "{{#turns}}{{speaker}} {{role}}: {{text}} {{/turns}}"
    found = run("check", with_records(corpus, *[CALL] * 300, late, setting=f'fields: {{text: "{template}"}}'))
    assert (found.code, "all of them are read" in found.out) == (0, True)


def test_names_in_a_section_without_entries_are_no_error(run: Run, corpus: Path) -> None:
    records = [{"title": "Q1", "turns": []}, {"title": "Q2", "turns": None}]
    template = "{{title}} {{#turns}}{{speaker}}: {{txet}} {{/turns}}"
    assert run("check", with_records(corpus, *records, setting=f'fields: {{text: "{template}"}}')).code == 0


def test_section_for_a_text_that_no_record_has_is_a_warning(run: Run, corpus: Path) -> None:
    record = {"item_1": "Business.", "item_1A": "", "text": "x"}
    template = "{{#item_1}}{{.}} {{/item_1}}{{#item_1A}}{{.}} {{/item_1A}}{{#item_1C}}{{.}} {{/item_1C}}"
    config = with_records(corpus, record, setting=f'fields: {{text: "{template}"}}')
    assert warnings_of(run, config) == [
        f"{corpus}:7: no record has the field `item_1C`, which the template of `text` names; a record has item_1, "
        "item_1A, text; did you mean `item_1`?"
    ]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("sub_source: meta.form", "no document has `form` in `meta`; keys there are: a, a.b, country, form_type; did "),
        ("sub_source: meta.nope", "no document has `nope` in `meta`; keys there are: a, a.b, country, form_type"),
        ("template_group: meta.nada", "no document has `nada` in `meta`; keys there are: "),
        ("sub_source: region.meta.land", "no document has `land` in `meta`; keys there are: "),
        ("sub_source: region.meta.country", "no document has the two letters of a country in `country`"),
        ("sub_source: meta.a", "no document has a text or a number in `a`"),
        ("sub_source: host", "no document has a URL"),
        ("sub_source: region", "no document has a URL whose domain is of a country"),
        ('date_pattern: "%Y"', "matches no name of a file, such as news/a.jsonl#0"),
    ],
)
def test_rule_that_no_document_fulfils_is_a_warning_with_its_line(
    run: Run, corpus: Path, setting: str, says: str
) -> None:
    record = {"text": "Oil rose.", "form_type": "8-K", "country": "Germany", "a": {"b": 1}}
    config = with_records(corpus, record, record, setting=setting)
    if setting.startswith("template_group"):
        config.write_text(f"{config.read_text()}dedup: {{templates: {{}}}}\n")
    (warning,) = warnings_of(run, config)
    key, _, rule = setting.replace('"', "").partition(": ")
    assert warning.startswith(f"{corpus}:7: `{key}: {rule}`")
    assert says in warning
    assert f"warning: {warning}" in run("check", config).out


@pytest.mark.parametrize("setting", ["sub_source: meta.form_type", "sub_source: folder", "sub_source: meta.a.b"])
def test_rule_that_documents_fulfil_is_no_warning(run: Run, corpus: Path, setting: str) -> None:
    record = {"text": "Oil rose.", "meta": {"form_type": "8-K"}, "a": {"b": 1}}
    assert warnings_of(run, with_records(corpus, record, setting=setting)) == []


def test_row_of_which_no_record_is_is_a_warning(run: Run, corpus: Path) -> None:
    rows = "name: {field: meta.set, allow: [ArXiv, Github], rename: {Github: GitHub}}"
    config = replace(
        with_records(corpus, {"text": "x", "meta": {"set": "ArXiv"}}, setting="sub_source: source"), "name: News", rows
    )
    assert warnings_of(run, config) == [f"{corpus}:3: no record is of the rows GitHub, which `allow` lists"]


def test_records_of_no_row_name_the_value(run: Run, corpus: Path) -> None:
    rows = "name: {field: meta.sett, allow: [ArXiv]}"
    config = replace(
        with_records(corpus, {"text": "x", "meta": {"set": "ArXiv"}}, setting="sub_source: source"), "name: News", rows
    )
    message = run("check", config).refusal()
    assert "news/a.jsonl#0: unknown_source: `meta.sett` is missing or null" in message


def test_private_dataset_that_no_source_has_is_a_warning(run: Run, corpus: Path) -> None:
    config = corpus.parent / "private.yaml"
    config.write_text(f"{corpus.read_text()}reports: {{private: [FinPiel]}}\n")
    warning = "`reports: private`: no source is of the dataset 'FinPiel'; did you mean `FinPile`?"
    assert run("check", config, "--json").json()["warnings"] == [warning]
    assert f"warning: {warning}" in run("check", config).out
    assert "warning: `reports" not in run("check", corpus).out


# --- what is removed


def test_rejected_documents_are_counted_by_reason_and_shown(run: Run, corpus: Path) -> None:
    sentences = "Oil rose in the port today. Gold fell in the city today. Rates stayed where they were today."
    records = [{"text": sentences}, {"text": "Lorem ipsum dolor."}, {"text": "Too short."}, {"texts": "No text."}]
    config = with_records(corpus, *records, setting="clean: {filters: [{c4: {min_sentences: 3}}]}")
    out = run("check", config).out
    assert "    unreadable: no_text 1\n" in out
    assert "cleaning removes 2 of 3 documents: c4_few_sentences 1, c4_lorem_ipsum 1\n" in out
    assert "Lorem" not in out
    shown = run("check", config, "--peek", "5").out.splitlines()
    lines = [json.dumps(record) for record in records]
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(4)]
    assert f"    news/a.jsonl#{starts[3]}: unreadable: no_text (`text` is missing or null)" in shown
    at = next(number for number, line in enumerate(shown) if "removed: c4_lorem_ipsum" in line)
    assert shown[at].startswith(f"    news/a.jsonl#{starts[1]}: ")
    assert shown[at + 1] == "      Lorem ipsum dolor."
    report = run("check", config, "--peek", "5", "--json").json()["sources"][0]["first_records"]
    assert report["removed_by_reason"] == {"c4_few_sentences": 1, "c4_lorem_ipsum": 1}
    assert report["unreadable_by_reason"] == {"no_text": 1}
    assert [row["reason"] for row in report["rejected"]] == ["no_text", "c4_lorem_ipsum", "c4_few_sentences"]
    assert len(run("check", config, "--peek", "1", "--json").json()["sources"][0]["first_records"]["rejected"]) == 2


def test_filters_that_remove_everything_are_a_warning(run: Run, corpus: Path) -> None:
    config = with_records(corpus, {"text": "Too short."}, setting="clean: {filters: [c4]}")
    assert warnings_of(run, config) == ["cleaning removes all of the first 1 documents"]


def test_cuts_are_counted_and_shown_below_their_document(run: Run, corpus: Path) -> None:
    text = "\n".join(["Oil rose in the port of Vantry today."] * 6 + ["Enable javascript to read on here now."])
    config = with_records(corpus, {"text": text}, setting="clean: {filters: [c4]}")
    out = run("check", config, "--peek", "1").out
    assert "    cleaning cuts: c4_javascript 1\n" in out
    assert "      cut: c4_javascript: Enable javascript to read on here now.\n" in out


@pytest.mark.parametrize("dataset", ["D", "E"])
def test_a_file_that_a_build_would_read_twice_is_an_error(run: Run, tmp_path: Path, dataset: str) -> None:
    """Ids are of the source and the place in it: they would occur twice in another dataset, too."""
    (tmp_path / "a.txt").write_text("Oil rose.")
    sources = "".join(f"- {{name: News, dataset: {name}, format: text, paths: '*.txt'}}\n" for name in ("D", dataset))
    (tmp_path / "corpus.yaml").write_text(f"name: twice\nsources:\n{sources}")
    found = run("check", tmp_path / "corpus.yaml")
    assert found.code == 2
    assert "corpus.yaml:4: source 'News' reads a.txt twice: make its patterns disjoint, or give" in found.err
