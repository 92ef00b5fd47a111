"""What a command needs late is looked for before its first stage: its error leaves every file as it was."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile

from finpile import storage
from finpile.errors import FinpileError
from finpile.output.layout import Layout
from tests.support.work_folders import files_of_stage


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of all files but locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def refusal(folder: Path, *arguments: object) -> str:
    """The message of a command that fails before it writes anything, or says that it has begun."""
    before = state(folder)
    result = CliRunner().invoke(finpile, [str(argument) for argument in arguments])
    assert isinstance(result.exception, FinpileError), (result.exception, result.output)
    assert result.stdout == ""
    assert state(folder) == before
    return str(result.exception)


def remove_file(out: Path, pattern: str) -> None:
    sorted(out.glob(pattern))[0].unlink()


def alter_tokenizer(out: Path) -> None:
    path = out / "tokenizer" / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:-1] + b" ")


@pytest.fixture
def corpus(copy_small: Callable[[Path], Path], tmp_path: Path) -> Path:
    """The corpus file of a build in `out`, with a new file that it has not read."""
    config = copy_small(tmp_path / "corpus")
    (config.parent / "News-2.jsonl").write_text(
        json.dumps({"text": "Gold rose by a tenth. " * 9, "date": "2020-01-01"})
    )
    return config


#: What a next snapshot is made from.
DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "tokenizer missing": (lambda out: remove_file(out, "tokenizer/tokenizer.json"), "tokenizer.json is missing"),
    "tokenizer altered": (alter_tokenizer, "tokenizer.json is damaged"),
    "documents missing": (lambda out: remove_file(out, "documents/**/*.parquet"), ".parquet is missing"),
    "ledger missing": (lambda out: remove_file(out, "removed/**/*.parquet"), ".parquet is missing"),
    "clean shard missing": (lambda out: remove_file(out, ".work/clean/*/documents/*.arrow"), "build --fresh"),
    "decisions missing": (lambda out: shutil.rmtree(out / ".work" / "near"), "build --fresh"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_append_looks_for_its_base_first(corpus: Path, damage: str) -> None:
    out = corpus.parent / "out"
    harm, says = DAMAGES[damage]
    harm(out)
    assert says in refusal(corpus.parent, "append", out, corpus)


@pytest.mark.parametrize("damage", DAMAGES)
def test_remove_looks_for_its_base_first(corpus: Path, damage: str) -> None:
    out = corpus.parent / "out"
    harm, says = DAMAGES[damage]
    harm(out)
    assert says in refusal(corpus.parent, "remove", out, "--source", "Web", "--why", "x", "--workers", 1)


def test_remove_looks_for_its_runs_first(corpus: Path) -> None:
    pytest.importorskip("torch")
    out = corpus.parent / "out"
    run = corpus.parent / "none"
    message = refusal(corpus.parent, "remove", out, "--source", "Web", "--why", "x", "--run", run)
    assert f"{run} is not a training run" in message


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (["--source", "Wbe"], "did you mean `Web`"),
        (["--dataset", "FinPiel"], "did you mean `FinPile`"),
        (["--where", "ulr=*"], "did you mean `url`"),
        (["--where", "url"], "expected COLUMN=PATTERN"),
        (["--document", "nothing.txt"], "has the id, locator or file 'nothing.txt'"),
    ],
)
def test_remove_knows_its_conditions_first(corpus: Path, condition: list[str], says: str) -> None:
    assert says in refusal(corpus.parent, "remove", corpus.parent / "out", *condition, "--why", "x")


def test_vacuum_looks_for_clean_shards_before_it_drops_snapshots(corpus: Path) -> None:
    out = corpus.parent / "out"
    for command in (["append", out, corpus], ["remove", out, "--source", "Web", "--why", "x"]):
        assert CliRunner().invoke(finpile, [str(word) for word in command]).exit_code == 0
    (files_of_stage(out, "ingest") / "tasks.json").unlink()
    assert "build --fresh" in refusal(corpus.parent, "vacuum", out)
    assert len(list((out / "snapshots").glob("*.json"))) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--until", "tokens", "-o", "corpus.yaml"], "is a file"),
        (["-o", "out"], "is the build itself"),
        (["-o", "files"], "files of another kind"),
    ],
)
def test_as_of_looks_for_its_target_first(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(corpus.parent)
    (corpus.parent / "files").mkdir()
    (corpus.parent / "files" / "thesis.tex").write_text("x")
    corpus.write_text(corpus.read_text() + "dedup: {order: time}\n")
    assert CliRunner().invoke(finpile, ["build", str(corpus), "-o", str(corpus.parent / "out")]).exit_code == 0
    assert says in refusal(corpus.parent, "as-of", "out", "2021-12-31", *words)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("contamination: {sets: [{name: Quiz, paths: quiz.jsonl, fields: text}]}", "quiz.jsonl"),
        ("dedup: {substring: {min_length: 50, unit: tokens, tokenizer: none}}", "none"),
        ("sources: [{name: A, dataset: D, format: jsonl, paths: News*, fields: {timestamp: date},"
         " clean: {filters: [{url_list: {lists: [none]}}]}}]", "none"),
        ("sources: [{name: A, dataset: D, format: jsonl, paths: News*, fields: {timestamp: date},"
         " clean: {filters: [{fasttext: {model: none.bin, label: hq, min_score: 0.1}}]}}]", "none.bin"),
    ],
    ids=["evaluation set", "symbols", "list", "model"],
)  # fmt: skip
def test_build_looks_for_the_files_of_its_stages_first(corpus: Path, change: str, says: str) -> None:
    key = change.partition(":")[0]
    lines = corpus.read_text()
    import yaml

    values = {**yaml.safe_load(lines), **yaml.safe_load(change)}
    corpus.write_text(yaml.safe_dump(values))
    assert key in values
    assert says in refusal(corpus.parent, "build", corpus, "-o", corpus.parent / "new")


@pytest.mark.parametrize(
    ("held_out", "says"),
    [
        ({"a.jsonl": '{"body": "Oil."}\n'}, "no string under the key `text`"),
        ({"a.jsonl": ""}, "hold no text"),
        ({"a.csv": "x"}, "a.csv"),
        ({}, "no such file"),
    ],
    ids=["other field", "empty", "other format", "missing"],
)
def test_tokenizer_train_reads_held_out_documents_first(corpus: Path, held_out: dict[str, str], says: str) -> None:
    for name, text in held_out.items():
        (corpus.parent / name).write_text(text)
    words = [corpus.parent / "News.jsonl", "-o", corpus.parent / "tokenizer", "--vocab-size", 300]
    wanted = corpus.parent / (next(iter(held_out), "missing.jsonl"))
    assert says in refusal(corpus.parent, "tokenizer", "train", *words, "--heldout", wanted)


def test_sweep_reads_its_documents_before_it_trains(corpus: Path) -> None:
    (corpus.parent / "empty.txt").write_text("")
    words = ["tokenizer", "sweep", "--train", corpus.parent / "News.jsonl", "--sizes", "300,400"]
    assert "holds no text to encode" in refusal(corpus.parent, *words, "--on", corpus.parent / "empty.txt")
    assert "no such file" in refusal(corpus.parent, *words, "--on", corpus.parent / "missing.txt")


#: Commands that write their results last, with -o at the end.
WRITERS = {
    "tokenizer compare": ["tokenizer", "compare", "out/tokenizer", "--on", "News.jsonl", "-o"],
    "tokenizer sweep": ["tokenizer", "sweep", "out/tokenizer", "--on", "News.jsonl", "--sizes", "300", "-o"],
    "export tokenizer": ["export", "tokenizer", "out/tokenizer", "-o"],
    "export tokens": ["export", "tokens", "out", "--format", "npy", "-o"],
    "export hf": ["export", "hf", "run", "-o"],
    "model evaluate": ["model", "evaluate", "out", "run", "-o"],
    "model tasks": ["model", "tasks", "run", "blimp", "-o"],
    "model generate": ["model", "generate", "run", "News.jsonl", "--prompt-field", "text", "-o"],
    "model plan": ["model", "plan", "--flops", "1e20", "-o"],
}


@pytest.mark.parametrize("name", WRITERS)
def test_place_of_the_result_is_checked_first(corpus: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(corpus.parent)
    (corpus.parent / "run").mkdir(exist_ok=True)
    assert "is a file, not a folder" in refusal(corpus.parent, *WRITERS[name], "corpus.yaml/result")


@pytest.mark.parametrize("name", WRITERS)
def test_results_are_not_written_into_a_build(corpus: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(corpus.parent)
    (corpus.parent / "run").mkdir(exist_ok=True)
    for place in ("out/result", "out/new/result"):
        says = f"-o {place}: {corpus.parent}/out has a build, to which no files can be added"
        assert says in refusal(corpus.parent, *WRITERS[name], place)


@pytest.mark.parametrize(
    "command",
    [
        ("build", "corpus.yaml"),
        ("as-of", "out", "2020-01-01"),
        ("dedup", "News.jsonl"),
        ("tokenizer", "train", "out"),
        ("fetch", "wikipedia", "enwiki"),
    ],
)
def test_builds_are_not_written_into_a_build(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(corpus.parent)
    message = refusal(corpus.parent, *command, "-o", "out/new")
    assert (
        message == f"-o out/new: {corpus.parent}/out has a build, to which no files can be added: name another folder"
    )


@pytest.mark.parametrize("out", ["out", "out/run"])
def test_a_training_is_not_written_into_a_build(corpus: Path, out: str) -> None:
    file = corpus.parent / "train.yaml"
    file.write_text(f"tokens: out/tokens/split=train\nout: {out}\nsteps: 1\n")
    place = corpus.parent / "out"
    message = refusal(corpus.parent, "model", "train", file)
    assert (
        message
        == f"out {corpus.parent / out}: {place} has a build, to which no files can be added: name another folder"
    )


def test_report_looks_for_its_tokenizers_first(corpus: Path) -> None:
    refusal(corpus.parent, "report", corpus.parent / "out", "--compare", corpus.parent / "none")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("heldout: none", "none"),
        ("tokens: none", "none"),
        ("device: cuda", "cuda"),
        ("preset: bloomberggpt-tny", "bloomberggpt-tiny"),
    ],
)
def test_train_looks_for_its_shards_first(corpus: Path, setting: str, says: str) -> None:
    torch = pytest.importorskip("torch")
    if setting == "device: cuda" and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    key = setting.partition(":")[0]
    settings = {"tokens": "out/tokens/split=train", "out": "run", "steps": "2", "batch_size": "2", "threads": "1"}
    settings |= {"model": "{num_layers: 1, num_heads: 2, hidden_size: 16}", key: setting.partition(": ")[2]}
    config = corpus.parent / "train.yaml"
    config.write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    assert says in refusal(corpus.parent, "model", "train", config)


@pytest.fixture
def run_of_small(corpus: Path) -> Path:
    """A run of two steps over the shards of the build."""
    pytest.importorskip("torch")
    config = corpus.parent / "train.yaml"
    config.write_text(
        "tokens: out/tokens/split=train\nout: run\nsteps: 2\nbatch_size: 2\nthreads: 1\n"
        "model: {num_layers: 1, num_heads: 2, hidden_size: 16}\n"
    )
    assert CliRunner().invoke(finpile, ["model", "train", str(config)]).exit_code == 0
    return corpus.parent / "run"


@pytest.mark.parametrize("more", [[], ["--memorization"]], ids=["documents", "memorization"])
def test_evaluate_loads_every_model_before_it_scores_the_first(
    run_of_small: Path, more: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run_of_small.parent
    (folder / "other").mkdir()
    words = ["model", "evaluate", folder / "out", run_of_small, folder / "other", "-o", folder / "result"]
    assert "holds no checkpoint.pt" in refusal(folder, *words, *more)
    shutil.copytree(run_of_small, folder / "another")
    config = json.loads((folder / "another" / "config.json").read_text())
    assert config["train"]["tokens"]
    monkeypatch.chdir(folder)
    assert "named twice" in refusal(folder, "model", "evaluate", "out", "run", "run", "-o", "result", *more)


def test_evaluate_looks_for_the_build_of_contamination_before_it_evaluates(run_of_small: Path) -> None:
    folder = run_of_small.parent
    pairs = folder / "blimp"
    pairs.mkdir()
    record: dict[str, Any] = {"sentence_good": "Oil rose.", "sentence_bad": "Oil rise.", "UID": "a", "pairID": "0"}
    record |= {"field": "syntax", "linguistics_term": "x", "simple_LM_method": True}
    (pairs / "a.jsonl").write_text(json.dumps(record) + "\n")
    words = ["model", "tasks", run_of_small, "blimp", "--data", pairs]
    message = refusal(folder, *words, "--contamination", folder / "none", "-o", folder / "result")
    assert str(folder / "none") in message


def test_generate_reads_prompts_and_its_tokenizer_first(run_of_small: Path) -> None:
    folder = run_of_small.parent
    message = refusal(folder, "model", "generate", run_of_small, folder / "News.jsonl", "-o", folder / "a.jsonl")
    assert "`prompt`" in message
    storage.remove_tree(Layout(str(folder / "out")).tokenizer)
    words = [
        "model",
        "generate",
        run_of_small,
        folder / "News.jsonl",
        "--prompt-field",
        "text",
        "-o",
        folder / "a.jsonl",
    ]
    assert "tokenizer" in refusal(folder, *words)
