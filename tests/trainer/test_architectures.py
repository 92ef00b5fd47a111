"""The three papers' decoders: published sizes, initialisation, PaLM's einsum reference, and transformers' logits."""

# ruff: noqa: N803, N806 (names end in the axes of their tensors)

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from finpile_trainer.model.model import (
    Decoder,
    ModelConfig,
    Positions,
    SelfAttention,
    alibi_slopes,
    initial_std,
    z_loss,
)
from finpile_trainer.training.checkpoint import ModelMeta
from finpile_trainer.training.hugging_face import hugging_face_config, hugging_face_tensors
from finpile_trainer.training.presets import PRESETS, preset

from finpile.errors import ConfigError

#: GPT-NeoX-20B: 20,554,567,680 parameters, of which 19.9 B are not embeddings (§2): both
#: untied embedding matrices of the padded vocabulary of 50,432. PaLM, Table 1, in billions: all matrices, the shared
#: embedding once; the gains of the LayerNorms would make 540.36 of 540.35.
PUBLISHED = {
    "gpt-neox-20b": (20_554_567_680, 1),
    "palm-8b": (8.63, 1e9),
    "palm-62b": (62.50, 1e9),
    "palm-540b": (540.35, 1e9),
}
VOCAB = 61


def small(architecture: Any, **changes: Any) -> ModelConfig:
    values = {"num_layers": 2, "num_heads": 6, "hidden_size": 48, **changes}
    return ModelConfig(architecture=architecture, **values)


def random_model(config: ModelConfig) -> Decoder:
    """Gains and biases are random, too, so that each of them matters."""
    torch.manual_seed(5)
    model = Decoder(config, VOCAB).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_preset_has_the_published_number_of_parameters(name: str) -> None:
    published, unit = PUBLISHED[name]
    entry = preset(name)
    with torch.device("meta"):
        model = Decoder(entry.model, entry.vocab_size or 0)
    sizes = [parameter.numel() for parameter in model.parameters() if parameter.dim() == 2 or "palm" not in name]
    assert round(sum(sizes) / unit, 2) == published
    count = sum(parameter.numel() for parameter in model.parameters())
    assert entry.model.num_parameters(entry.vocab_size or 0) == count


def test_all_but_the_embeddings_of_gpt_neox_are_19_9_billion() -> None:
    model = preset("gpt-neox-20b").model
    assert round(model.num_parameters(0) / 1e9, 1) == 19.9


@pytest.mark.parametrize("name", [name for name in PRESETS if name.endswith("tiny")])
def test_the_formula_counts_the_parameters_of_a_tiny_model(name: str) -> None:
    model = preset(name).model
    count = sum(parameter.numel() for parameter in Decoder(model, VOCAB).parameters())
    assert model.num_parameters(VOCAB) == count


def test_slopes_of_bloom_divide_by_the_power_of_two() -> None:
    assert alibi_slopes(8, "bloom") == alibi_slopes(8, "paper")
    exponents = [-math.log2(slope) for slope in alibi_slopes(40, "bloom")]
    assert exponents == pytest.approx([n / 4 for n in range(1, 33)] + [n / 8 for n in range(1, 16, 2)])


def palm_reference(model: Decoder, ids: list[int]) -> torch.Tensor:
    """PaLM §2 with einsum, head by head; rotations as complex numbers."""
    weight = {name: tensor.detach().double() for name, tensor in model.named_parameters()}
    config, T = model.config, len(ids)
    K = config.size_per_head
    turn = torch.polar(
        torch.ones(T, K // 2, dtype=torch.float64),
        torch.einsum("t,r->tr", torch.arange(T).double(), 10_000.0 ** (-torch.arange(0, K, 2).double() / K)),
    )

    def norm(name: str, x_TD: torch.Tensor) -> torch.Tensor:
        centred = x_TD - x_TD.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * weight[name]

    def rotate(x_TK: torch.Tensor) -> torch.Tensor:
        turned = torch.complex(x_TK[:, : K // 2], x_TK[:, K // 2 :]) * turn
        return torch.cat([turned.real, turned.imag], dim=1)

    h_TD = weight["embedding.weight"][ids]
    for layer in range(config.num_layers):
        block = f"blocks.{layer}"
        x_TD = norm(f"{block}.norm.weight", h_TD)
        key_SK = rotate(torch.einsum("td,kd->tk", x_TD, weight[f"{block}.attention.key.weight"]))
        value_SK = torch.einsum("td,kd->tk", x_TD, weight[f"{block}.attention.value.weight"])
        mixed = []
        for query in weight[f"{block}.attention.query.weight"].split(K):
            score_TS = torch.einsum("tk,sk->ts", rotate(torch.einsum("td,kd->tk", x_TD, query)), key_SK) / K**0.5
            score_TS = score_TS.masked_fill(torch.ones(T, T).triu(1).bool(), -math.inf)
            mixed.append(torch.einsum("ts,sk->tk", score_TS.exp() / score_TS.exp().sum(1, keepdim=True), value_SK))
        attended = torch.einsum("ta,da->td", torch.cat(mixed, dim=1), weight[f"{block}.attention.output.weight"])
        gate = torch.einsum("td,fd->tf", x_TD, weight[f"{block}.ffn.gate.weight"])
        wide = gate / (1 + torch.exp(-gate)) * torch.einsum("td,fd->tf", x_TD, weight[f"{block}.ffn.input.weight"])
        h_TD = h_TD + attended + torch.einsum("tf,df->td", wide, weight[f"{block}.ffn.output.weight"])
    x_TD = norm("final_norm.weight", h_TD)
    return torch.einsum("td,vd->tv", x_TD, weight["embedding.weight"]) / config.hidden_size**0.5


@pytest.mark.parametrize("head_size", [None, 10])
def test_palm_equals_its_reference(head_size: int | None) -> None:
    model = random_model(small("palm", head_size=head_size)).double()
    ids = torch.randint(0, VOCAB, (20,)).tolist()
    torch.testing.assert_close(model(torch.tensor([ids]))[0], palm_reference(model, ids), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("architecture", ["gpt-neox", "palm"])
def test_a_position_sees_nothing_that_comes_after_it(architecture: str) -> None:
    model = random_model(small(architecture))
    ids = torch.randint(0, VOCAB, (1, 9))
    changed = ids.clone()
    changed[0, 5] = (ids[0, 5] + 1) % VOCAB
    before, after = model(ids)[0], model(changed)[0]
    assert torch.equal(before[:5], after[:5])
    assert (before[5:] - after[5:]).abs().amax(dim=1).min() > 0


@pytest.mark.parametrize(
    ("architecture", "masked_at"), [("bloomberggpt", None), ("gpt-neox", None), ("palm", None), ("palm", 4)]
)
def test_activation_checkpointing_changes_no_bit(architecture: str, masked_at: int | None) -> None:
    """With dropout, the second forward pass must draw the same masks; with documents, it must mask them again."""
    gradients = []
    for recompute in (False, True):
        torch.manual_seed(2)
        config = small(architecture, dropout=0.2)
        model = Decoder(config, VOCAB, activation_checkpointing=recompute, masked_at=masked_at).train()
        ids = torch.randint(0, 8, (2, 40))
        model(ids).square().mean().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        assert one is not None and other is not None and torch.equal(one, other)


def test_softmax_of_bfloat16_is_computed_in_float32() -> None:
    """1,000 equal scores: weights of 1 / 1000 sum to 1 to the precision of the output, not of a bfloat16 sum."""
    attention = SelfAttention(small("gpt-neox", num_heads=1, hidden_size=8))
    for parameter in attention.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.ones_(attention.value.bias)
    torch.nn.init.eye_(attention.output.weight)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        out = attention(torch.randn(1, 1000, 8), Positions())
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), torch.ones(1, 1000, 8), rtol=0, atol=2**-8)


@pytest.mark.parametrize("architecture", ["gpt-neox", "palm"])
def test_matrices_start_with_the_spread_of_the_paper(architecture: str) -> None:
    torch.manual_seed(0)
    config = small(architecture, num_layers=3, num_heads=4, hidden_size=160)
    expected = {
        ("gpt-neox", "blocks.1.attention.query.weight"): math.sqrt(2 / (5 * 160)),
        ("gpt-neox", "blocks.1.attention.output.weight"): 2 / (3 * math.sqrt(160)),
        ("gpt-neox", "blocks.1.ffn.output.weight"): 2 / (3 * math.sqrt(160)),
        ("gpt-neox", "head.weight"): math.sqrt(2 / (5 * 160)),
        ("palm", "embedding.weight"): 1.0,
        ("palm", "blocks.1.attention.query.weight"): 1 / math.sqrt(160),
        ("palm", "blocks.1.ffn.output.weight"): 1 / math.sqrt(640),
    }
    parameters = dict(Decoder(config, 600).named_parameters())
    for (_, name), std in [item for item in expected.items() if item[0][0] == architecture]:
        assert float(parameters[name].detach().std()) == pytest.approx(std, rel=0.02), name
        assert initial_std(config, name, parameters[name].shape[1]) == std


def test_z_loss_is_the_squared_logarithm_of_the_normaliser() -> None:
    logits = torch.tensor([[[0.0, math.log(3)], [9.0, 9.0]]])  # the last position predicts nothing
    assert z_loss(logits, torch.zeros(1, 2, dtype=torch.long)).item() == pytest.approx(math.log(4) ** 2)


def test_settings_of_another_architecture_are_errors() -> None:
    with pytest.raises(ConfigError, match="head_size is 8: expected null, or for palm"):
        small("gpt-neox", head_size=8)
    with pytest.raises(ConfigError, match="alibi is bloom: palm has rotary positions"):
        small("palm", alibi="bloom")
    with pytest.raises(ConfigError, match="6 heads of 5 have 5 rotary dimensions"):
        small("palm", hidden_size=30)


def test_a_head_of_rotary_positions_has_dimensions_that_are_rotated() -> None:
    """Without any, the model would not know the order of its tokens."""
    for size in range(1, 8):
        with pytest.raises(ConfigError, match=rf"heads of {size} have [01] rotary dimensions, .* choose another"):
            small("gpt-neox", hidden_size=6 * size)
    assert small("gpt-neox", hidden_size=6 * 8).num_rotary == 2
    assert small("palm", hidden_size=6 * 2).num_rotary == 2


@pytest.mark.parametrize(
    "config",
    [small("bloomberggpt", alibi="bloom"), small("bloomberggpt", num_heads=8), small("gpt-neox"), small("palm")],
    ids=["bloom", "bloom-8-heads", "gpt-neox", "palm-as-cohere"],
)
def test_logits_equal_those_of_transformers(config: ModelConfig) -> None:
    transformers = pytest.importorskip("transformers")
    ours = random_model(config)
    meta = ModelMeta(model=config, vocab_size=VOCAB, sequence_length=32, eot_id=60, tokenizer="")
    values = hugging_face_config(meta)
    theirs = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    ).eval()
    state = hugging_face_tensors(config, ours.state_dict())
    missing, unexpected = theirs.load_state_dict(state, strict=False)
    assert unexpected == []
    assert set(missing) <= {"lm_head.weight"}  # tied
    theirs.tie_weights()
    ids = torch.randint(0, VOCAB, (2, 32))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-5, atol=1e-5)


def test_bloom_has_no_class_for_the_papers_slopes() -> None:
    meta = ModelMeta(model=small("bloomberggpt"), vocab_size=VOCAB, sequence_length=32, eot_id=60, tokenizer="")
    with pytest.raises(ConfigError, match=r"6 heads with the paper's slopes.*alibi: bloom"):
        hugging_face_config(meta)


@pytest.mark.parametrize("architecture", ["bloomberggpt", "gpt-neox", "palm"])
def test_a_masked_document_has_the_logits_that_it_has_alone(architecture: Any) -> None:
    """Documents of several lengths, one cut off by the beginning, one by the end, two empty; in one sequence or two."""
    end = VOCAB - 1
    model = random_model(small(architecture)).double()
    model.masked_at = end
    torch.manual_seed(1)
    lengths = ((5, 1, 9, 0, 0, 3, 6), (0, 12, 10, 3))  # with the id before each document but the first: 30 and 28
    rows = []
    for row in lengths:
        parts = [torch.randint(0, end, (length,)) for length in row]
        rows.append([parts[0], *(torch.cat([torch.tensor([end]), part]) for part in parts[1:])])
    width = min(sum(map(len, row)) for row in rows)
    ids_BT = torch.stack([torch.cat(row)[:width] for row in rows])
    with torch.no_grad():
        together_BTV = model(ids_BT)
        model.masked_at = None
        assert not torch.allclose(together_BTV, model(ids_BT))
        for number, row in enumerate(rows):
            start = 0
            for part in row:
                alone = part[: width - start]
                if len(alone):
                    found = together_BTV[number, start : start + len(alone)]
                    torch.testing.assert_close(found, model(alone[None])[0], rtol=1e-9, atol=1e-9)
                start += len(alone)
            assert start == width
