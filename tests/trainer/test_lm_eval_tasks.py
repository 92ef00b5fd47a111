"""Tasks of lm-evaluation-harness give the numbers of its own adapter, and errors name the remedy."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from finpile_cli.tasks import tasks_command
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.lm_eval import LmEvalTasks
from finpile_trainer.evaluation.outcomes import Outcomes

from finpile.errors import ConfigError, InputError

pytest.importorskip("accelerate", reason="lm-eval of the extra `eval` is not installed")
lm_eval = pytest.importorskip("lm_eval", reason="lm-eval of the extra `eval` is not installed")
pytest.importorskip("lm_eval.tasks")

TASKS = {
    "choose": "output_type: multiple_choice\ndoc_to_choice: [rose, fell, does not]\ndoc_to_target: label\n"
    "metric_list: [{metric: acc}, {metric: acc_norm}]\nnum_fewshot: 1\nfewshot_split: test\n",
    "write": "output_type: generate_until\ndoc_to_target: answer\ngeneration_kwargs: {until: [gold], max_gen_toks: 9}\n"
    "metric_list: [{metric: exact_match}]\n",
    "read": "output_type: loglikelihood_rolling\ndoc_to_target: text\n"
    "metric_list: [{metric: word_perplexity}, {metric: bits_per_byte}]\n",
    "last_word": "output_type: loglikelihood\ndoc_to_target: ' {{answer}}'\n"
    "metric_list: [{metric: perplexity}, {metric: acc}]\n",
}


@pytest.fixture(autouse=True, scope="module")
def only_local_tasks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The index of lm-eval's 14,000 tasks takes seconds; its data sets would stay in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lm_eval.tasks.TaskManager", partial(lm_eval.tasks.TaskManager, include_defaults=False))
        patch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, small_model: tuple[Any, Any]) -> Path:
    """Tasks with their data in files, the answers being what the model writes for some of the items."""
    root = tmp_path_factory.mktemp("tasks")
    model = LanguageModel.of_transformers(*small_model, "small")
    lines = []
    for number in range(6):
        text = f"the author laughs. gold rose {number} and oil fell. " * (number + 1)
        answer = model.generate(text, stop=["gold"], max_tokens=9) if number % 2 else "fell."
        lines.append(json.dumps({"text": text, "label": number % 3, "answer": answer}))
    (root / "items.jsonl").write_text("\n".join(lines) + "\n")
    for name, settings in TASKS.items():
        data = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {root}/items.jsonl}}}}\ntest_split: test\n"
        (root / f"{name}.yaml").write_text(f"task: local_{name}\n{data}doc_to_text: '{{{{text}}}}'\n{settings}")
    return root


@pytest.fixture(scope="module")
def tasks(folder: Path) -> LmEvalTasks:
    return LmEvalTasks([f"local_{name}" for name in TASKS], str(folder))


def test_metrics_equal_those_of_lm_evals_own_adapter(
    tasks: LmEvalTasks,
    small_model: tuple[Any, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from finpile_trainer.evaluation import lm_eval as lm_eval_tasks
    from lm_eval.models.huggingface import HFLM

    progress: dict[str, list[float]] = {}

    @contextlib.contextmanager
    def show(kind: str, number: int) -> Iterator[Callable[[float], None]]:
        progress[kind] = [number]
        yield progress[kind].append

    model = LanguageModel.of_transformers(*small_model, "small")
    found = tasks.evaluate(model, progress=show)
    assert capsys.readouterr().out == ""
    network, tokenizer = small_model
    peer = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=1, device="cpu")
    monkeypatch.setattr(lm_eval_tasks, "_adapter", lambda *_: peer)
    expected = tasks.evaluate(model)
    assert {kind: (number, sum(done)) for kind, (number, *done) in progress.items()} == {
        "likelihoods": (6 * 3 + 6, 6 * 3 + 6),
        "documents": (6, 6),
        "generated answers": (6, 6),
    }
    assert [(entry["task"], entry["metric"]) for entry in found] == [
        ("local_choose", "acc"),
        ("local_choose", "acc_norm"),
        ("local_write", "exact_match"),
        ("local_read", "word_perplexity"),
        ("local_read", "bits_per_byte"),
        ("local_last_word", "perplexity"),
        ("local_last_word", "acc"),
    ]
    for one, other in zip(found, expected, strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-6)
        unlike = {"value": 0, "standard_error": 0, "num_truncated": 0}  # lm-eval does not count what it cuts
        assert {**one, **unlike} == {**other, **unlike}
    assert next(entry for entry in found if entry["metric"] == "exact_match")["value"] >= 0.5
    assert {entry["num_shots"] for entry in found if entry["task"] == "local_choose"} == {1}


def test_metrics_that_are_means_have_the_outcome_of_each_item(tasks: LmEvalTasks, small_model: tuple[Any, Any]) -> None:
    outcomes: list[Outcomes] = []
    found = tasks.evaluate(LanguageModel.of_transformers(*small_model, "small"), outcomes=outcomes)
    results = {(entry["task"], entry["metric"]): entry["value"] for entry in found}
    assert {(one.task, one.metric) for one in outcomes} == {
        ("local_choose", "acc"),
        ("local_choose", "acc_norm"),
        ("local_write", "exact_match"),
        ("local_last_word", "acc"),
    }
    for one in outcomes:
        assert one.score_of(np.arange(len(one.items))) == pytest.approx(results[one.task, one.metric])
        assert [item.item for item in one.items] == [str(number) for number in range(6)]
        assert all(item.texts and all(isinstance(text, str) for text in item.texts) for item in one.items)


def test_items_longer_than_the_model_reads_are_counted_by_task(
    tmp_path_factory: pytest.TempPathFactory, small_model: tuple[Any, Any]
) -> None:
    """One item of four has an answer, another one a question, that is longer than the 96 tokens of the model."""
    root, long = tmp_path_factory.mktemp("long"), "the author laughs. " * 60
    items = [("gold", "rose"), (long, "fell"), ("oil", long), ("gold and", "oil")]
    lines = [json.dumps({"text": text, "answer": answer}) for text, answer in items]
    (root / "items.jsonl").write_text("\n".join(lines) + "\n")
    data = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {root}/items.jsonl}}}}\ntest_split: test\n"
    for name in ("write", "read", "last_word"):
        settings = f"task: long_{name}\n{data}doc_to_text: '{{{{text}}}}'\n{TASKS[name]}"
        (root / f"{name}.yaml").write_text(settings.replace("{metric: perplexity}, ", ""))
    names = ("long_write", "long_read", "long_last_word")
    model = LanguageModel.of_transformers(*small_model, "small")
    found = LmEvalTasks(names, str(root)).evaluate(model)
    assert all(math.isfinite(entry["value"]) for entry in found)
    assert {entry["task"]: entry["num_truncated"] for entry in found} == dict(zip(names, (1, 0, 2), strict=True))


def test_a_long_document_is_read_in_windows(small_model: tuple[Any, Any]) -> None:
    network, tokenizer = small_model
    model = LanguageModel.of_transformers(network, tokenizer, "small")
    text = "the author laughs. " * 40
    ids = tokenizer.encode(text)
    whole = [tokenizer.eos_token_id, *ids]
    nats = 0.0
    for start in range(0, len(ids), 96):
        end = min(start + 96, len(ids))
        begin = max(0, end - 96)
        scores = torch.log_softmax(network(torch.tensor([whole[begin:end]])).logits[0], -1)
        nats += sum(scores[place - begin, ids[place]].item() for place in range(start, end))
    assert model.document_likelihood(text).nats == pytest.approx(nats, abs=1e-9)
    assert model.document_likelihood("").nats == 0.0


def test_a_task_that_samples_is_refused(small_model: tuple[Any, Any]) -> None:
    from finpile_trainer.evaluation import lm_eval as lm_eval_tasks

    model = LanguageModel.of_transformers(*small_model, "small")
    with pytest.raises(ConfigError, match="the task samples its answers"):
        lm_eval_tasks._generate(model, "gold", {"do_sample": True, "temperature": 0.7}, 3)
    settings = {"do_sample": False, "max_new_tokens": 3, "until": "\0"}
    assert lm_eval_tasks._answer_tokens(model, settings) == 3
    assert lm_eval_tasks._generate(model, "gold", settings, 3)


def test_absent_data_and_names_name_the_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)  # between attempts to reach the hub
    (folder / "absent.yaml").write_text(
        "task: local_absent\ndataset_path: json\ndataset_kwargs: {data_files: {test: /nowhere/items.jsonl}}\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: text\ndoc_to_choice: [a]\ndoc_to_target: label\n"
    )
    with pytest.raises(InputError, match=r"local_absent: lm-eval cannot load its data .*HF_HUB_OFFLINE=1"):
        LmEvalTasks(["local_absent"], str(folder))
    with pytest.raises(ConfigError, match=r"nosuchtask: neither tasks of FinPile nor of lm-eval; `lm_eval ls tasks`"):
        LmEvalTasks(["nosuchtask"], str(folder))
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", None)
    with pytest.raises(ConfigError, match=r'pip install "finpile\[eval\]"'):
        LmEvalTasks(["piqa"])


def test_the_command_writes_the_tables(folder: Path, small_model: tuple[Any, Any], tmp_path: Path) -> None:
    network, tokenizer = small_model
    network.save_pretrained(tmp_path / "hf")
    tokenizer.save_pretrained(tmp_path / "hf")
    arguments = ["local_choose,local_read", "--data", folder, "-o", tmp_path / "out", "--limit", 4]
    result = CliRunner().invoke(tasks_command, [str(part) for part in (tmp_path / "hf", *arguments)])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out/tasks.json").read_text())["tasks"]
    assert [entry["metric"] for entry in report["local_choose"]] == ["acc", "acc_norm"]
    assert math.isfinite(report["local_read"][0]["value"])
    shown = f"{report['local_choose'][0]['value']:.4f}"
    for text in (result.output, (tmp_path / "out/tasks.md").read_text(), (tmp_path / "out/tasks.html").read_text()):
        assert "local_choose" in text.replace("\\", "")
        assert shown in text
