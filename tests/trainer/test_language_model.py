"""Likelihoods are those of the tokens one by one, and those of lm-evaluation-harness."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.minimal_pairs import judge_pairs
from finpile_trainer.model.config import ModelConfig
from finpile_trainer.model.model import Decoder, KeyValueCache
from finpile_trainer.tasks import blimp

from finpile.errors import InputError


@pytest.fixture(scope="module")
def model(small_model: tuple[Any, Any]) -> LanguageModel:
    return LanguageModel.of_transformers(*small_model, "random")


PAIRS = [
    ("", "the author laughs."),
    ("gold rose", " and oil fell."),
    ("gold rose ", "and oil fell."),
    ("the author that guards like", " does not"),
    ("x" * 190 + " oil", " fell."),
    (" \n", "gold"),
]


def test_a_likelihood_is_the_sum_over_tokens(model: LanguageModel, small_model: tuple[Any, Any]) -> None:
    network, tokenizer = small_model
    for found, (context, continuation) in zip(model.log_likelihoods(PAIRS[:4]), PAIRS[:4], strict=True):
        kept = context.rstrip()
        begin = tokenizer.encode(kept) or [tokenizer.eos_token_id]
        ids = tokenizer.encode(context + continuation)
        ids = ids if kept else [*begin, *ids]
        nats = 0.0
        for place in range(len(begin), len(ids)):
            logits = network(torch.tensor([ids[:place]])).logits[0, -1]
            nats += torch.log_softmax(logits, -1)[ids[place]].item()
        assert (found.nats, found.num_tokens) == (pytest.approx(nats, abs=1e-9), len(ids) - len(begin))


def test_a_likelihood_does_not_depend_on_the_batch(model: LanguageModel) -> None:
    alone = [model.log_likelihoods([pair])[0] for pair in PAIRS]
    together = model.log_likelihoods(PAIRS * 3)
    for one, other in zip(alone * 3, together, strict=True):
        assert one.num_tokens == other.num_tokens
        assert one.nats == pytest.approx(other.nats, abs=1e-9)


@pytest.mark.parametrize(
    ("num_context", "num_continued"), [(90, 6), (90, 7), (90, 8), (500, 1), (3, 96), (3, 500), (0, 97)]
)
def test_what_is_longer_than_the_model_reads_is_cut_from_the_left(
    model: LanguageModel, small_model: tuple[Any, Any], num_context: int, num_continued: int
) -> None:
    """A token of these texts is a byte. The model reads 96 tokens; the last one of the continuation is not read."""
    network, tokenizer = small_model
    text = "".join(chr(65 + number * 7 % 26) for number in range(num_context + num_continued))
    ids = tokenizer.encode(text)
    assert len(ids) == len(text)
    whole = ids if num_context else [tokenizer.eos_token_id, *ids]
    (found,) = model.log_likelihoods([(text[:num_context], text[num_context:])])
    assert found.is_cut == (len(whole) > 97)
    kept = whole[-97:]
    scores = torch.log_softmax(network(torch.tensor([kept[:-1]])).logits[0], -1)
    scored = range(len(kept) - min(num_continued, 96), len(kept))
    assert found.num_tokens == len(scored)
    assert found.nats == pytest.approx(sum(scores[place - 1, kept[place]].item() for place in scored), abs=1e-9)


def test_a_continuation_that_adds_no_token_is_encoded_alone() -> None:
    """`abc` has two tokens, and `abcd` is one."""
    tokens = {"abc": [1, 2], "abcd": [3], "d": [4]}

    def logits(ids: torch.Tensor) -> torch.Tensor:
        return torch.arange(5.0).expand(*ids.shape, 5)

    model = LanguageModel(logits, tokens.__getitem__, str, begin_id=0, max_length=8, name="m")
    (found,) = model.log_likelihoods([("abc", "d")])
    expected = torch.log_softmax(torch.arange(5.0), -1)[4].item()
    assert (found.num_tokens, found.nats, found.is_greedy) == (1, pytest.approx(expected), True)


def test_an_empty_continuation_is_refused(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="a continuation is empty"):
        model.log_likelihoods([("oil", "")])


def test_generation_is_greedy_and_ends_at_the_stop(model: LanguageModel, small_model: tuple[Any, Any]) -> None:
    network, tokenizer = small_model
    text = model.generate("the author", max_tokens=6)
    ids = torch.tensor([tokenizer.encode("the author")])
    expected = network.generate(ids, max_new_tokens=6, do_sample=False, pad_token_id=tokenizer.eos_token_id)
    assert text == tokenizer.decode(expected[0, ids.shape[1] :])
    assert len(text) > 3
    assert model.generate("the author", stop=["\0", text[1:3]], max_tokens=6) == text.partition(text[1:3])[0]


def test_a_long_prompt_keeps_its_end(model: LanguageModel) -> None:
    """The model reads 96 tokens: 90 of the prompt, and those generated."""
    prompt = "".join(chr(65 + number % 26) for number in range(200))
    assert model.generate(prompt, max_tokens=6) == model.generate(prompt[-90:], max_tokens=6)
    with pytest.raises(InputError, match="96 tokens to generate: the model reads 96, prompt included"):
        model.generate(prompt, max_tokens=96)


@pytest.mark.parametrize("architecture", ["bloomberggpt", "gpt-neox", "palm"])
def test_generation_with_a_cache_equals_that_without(architecture: Any) -> None:
    torch.manual_seed(3)
    config = ModelConfig(architecture=architecture, num_layers=2, num_heads=3, hidden_size=48)
    network = Decoder(config, vocab_size=60).double().eval()
    for parameter in network.parameters():
        if parameter.dim() > 1:  # so large that the next token is seldom the current one
            torch.nn.init.normal_(parameter)
    ids = torch.randint(60, (1, 17))
    cache = KeyValueCache()
    parts = [network(part, cache) for part in ids.split([6, 1, 1, 5, 4], dim=1)]
    torch.testing.assert_close(torch.cat(parts, dim=1), network(ids), rtol=1e-9, atol=1e-9)
    assert cache.length == 17

    def model_with(new_reader: Any) -> LanguageModel:
        return LanguageModel(
            network,
            lambda text: list(map(ord, text)),
            lambda found: "".join(map(chr, found)),
            begin_id=0,
            max_length=64,
            name=architecture,
            new_reader=new_reader,
        )

    prompts = ["".join(map(chr, ids[0, :length])) for length in (1, 5, 17)]
    cached, plain = model_with(lambda: partial(network, cache=KeyValueCache())), model_with(None)
    texts = [cached.generate(prompt, max_tokens=40) for prompt in prompts]
    assert texts == [plain.generate(prompt, max_tokens=40) for prompt in prompts]
    assert len({letter for text in texts for letter in text}) > 3, "not a repeated token"


def test_generation_with_the_cache_of_transformers_equals_that_without(
    model: LanguageModel, small_model: tuple[Any, Any]
) -> None:
    network, tokenizer = small_model
    plain = LanguageModel(
        lambda ids: network(ids).logits,
        lambda text: tokenizer.encode(text, add_special_tokens=False),
        tokenizer.decode,
        begin_id=tokenizer.eos_token_id,
        max_length=96,
        name="plain",
    )
    for prompt in ("the author", "gold rose and oil fell.", "x" * 300):
        assert model.generate(prompt, max_tokens=30) == plain.generate(prompt, max_tokens=30)


# --- lm-evaluation-harness -----------------------------------------------------------------------------------------


def peer_likelihoods(small_model: tuple[Any, Any], pairs: list[tuple[str, str]]) -> list[float]:
    pytest.importorskip("accelerate", reason="lm-eval of the extra `eval` is not installed")
    pytest.importorskip("lm_eval", reason="lm-eval of the extra `eval` is not installed")
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    network, tokenizer = small_model
    peer = HFLM(pretrained=network, tokenizer=tokenizer, batch_size=1, device="cpu")
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=index) for index, pair in enumerate(pairs)
    ]
    return [nats for nats, _ in peer.loglikelihood(requests, disable_tqdm=True)]


def test_likelihoods_equal_those_of_lm_eval(model: LanguageModel, small_model: tuple[Any, Any]) -> None:
    pairs = PAIRS[:5]
    expected = peer_likelihoods(small_model, pairs)
    assert [found.nats for found in model.log_likelihoods(pairs)] == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
def test_blimp_equals_that_of_lm_eval(
    model: LanguageModel, small_model: tuple[Any, Any], real_data: Any, tmp_path: Path
) -> None:
    """Its task `blimp_*`: the log-likelihood of both sentences after an empty context."""
    sets = blimp.TASK.read(real_data("blimp"), 3).sets
    for entry in sets[::10]:
        sentences = [("", sentence) for pair in entry.pairs for sentence in (pair.good, pair.bad)]
        expected = peer_likelihoods(small_model, sentences)
        found = [one.nats for one in model.log_likelihoods(sentences)]
        assert found == pytest.approx(expected, abs=1e-6)
        right = [good > bad for good, bad in zip(expected[::2], expected[1::2], strict=True)]
        assert [pair.is_right for pair in judge_pairs(model, entry)] == right
