"""The decoder is the paper's: its printed parameter counts, its equations one by one, its initialisation."""

# ruff: noqa: N806 (names end in the axes of their tensors)

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from finpile_trainer.model.model import Decoder, ModelConfig, alibi_slopes, attention_bias, initial_std, next_token_loss
from finpile_trainer.training.presets import BLOOMBERGGPT_50B, preset

from finpile.errors import ConfigError

#: Appendix A.5 as printed: our parameters of a group, the group's total size, and its grand total.
APPENDIX_A5 = {
    "W_em": ("embedding.weight", 1_006_632_960),
    "gamma_em": ("embedding_norm.weight", 7_680),
    "beta_em": ("embedding_norm.bias", 7_680),
    "gamma_in": ("attention_norm.weight", 537_600),
    "beta_in": ("attention_norm.bias", 537_600),
    "W_q": ("attention.query.weight", 4_128_768_000),
    "W_k": ("attention.key.weight", 4_128_768_000),
    "W_v": ("attention.value.weight", 4_128_768_000),
    "U": ("attention.output.weight", 4_128_768_000),
    "b_q": ("attention.query.bias", 537_600),
    "b_k": ("attention.key.bias", 537_600),
    "b_v": ("attention.value.bias", 537_600),
    "c": ("attention.output.bias", 537_600),
    "gamma_at": ("ffn_norm.weight", 537_600),
    "beta_at": ("ffn_norm.bias", 537_600),
    "W_f": ("ffn.input.weight", 16_515_072_000),
    "U_f": ("ffn.output.weight", 16_515_072_000),
    "b_f": ("ffn.input.bias", 2_150_400),
    "c_f": ("ffn.output.bias", 537_600),
    "gamma_f": ("final_norm.weight", 7_680),
    "beta_f": ("final_norm.bias", 7_680),
}
TOTAL_A5 = 50_558_868_480


def group_of(name: str) -> str:
    """The parameter's name without its block: `blocks.3.ffn.input.bias` is `ffn.input.bias`."""
    return name.split(".", 2)[2] if name.startswith("blocks.") else name


def test_every_group_of_bloomberggpt_has_the_size_that_the_paper_prints() -> None:
    with torch.device("meta"):
        model = Decoder(BLOOMBERGGPT_50B.model, BLOOMBERGGPT_50B.vocab_size or 0)
    sizes: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        sizes[group_of(name)] = sizes.get(group_of(name), 0) + parameter.numel()
    assert sizes == dict(APPENDIX_A5.values())
    assert sum(sizes.values()) == BLOOMBERGGPT_50B.model.num_parameters(131_072) == TOTAL_A5


def twin_logits(model: Decoder, ids: list[int]) -> np.ndarray:
    """Equations 1 to 22 in the paper's own layout: columns are positions, one head after the other, 1-based indices."""
    weight = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    T, N = len(ids), model.config.num_heads

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=0)
        scaled = centred / np.sqrt((centred**2).mean(axis=0) + 1e-5)
        return scaled * weight[f"{name}.weight"][:, None] + weight[f"{name}.bias"][:, None]

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return weight[f"{name}.weight"] @ x + weight[f"{name}.bias"][:, None]

    H = norm("embedding_norm", weight["embedding.weight"][ids].T)
    for layer in range(model.config.num_layers):
        block = f"blocks.{layer}"
        X = norm(f"{block}.attention_norm", H)
        Q, K, V = (np.split(linear(f"{block}.attention.{map_}", X), N) for map_ in ("query", "key", "value"))
        mixed = []
        for n in range(1, N + 1):
            power = max(2**k for k in range(20) if 2**k <= N)  # (14)
            step = 1 + (n - 1) % power - 0.5 * ((n - 1) // power)  # (15)
            S = np.zeros((T, T))
            for i in range(1, T + 1):  # key
                for j in range(1, T + 1):  # query
                    alibi = 2 ** (-8 / N * step) * (i - j) * (i < j)  # (16)
                    score = alibi + K[n - 1][:, i - 1] @ Q[n - 1][:, j - 1] / math.sqrt(len(Q[n - 1]))  # (10)
                    S[i - 1, j - 1] = math.exp(score) if i <= j else 0.0  # (11), (17)
            mixed.append(V[n - 1] @ (S / S.sum(axis=0)))  # (12)
        H = H + linear(f"{block}.attention.output", np.concatenate(mixed))  # (13), (3)
        h = linear(f"{block}.ffn.input", norm(f"{block}.ffn_norm", H))
        h = 0.5 * h * (1 + np.tanh(0.79788456 * h * (1 + 0.044715 * h**2)))  # (21)
        H = H + linear(f"{block}.ffn.output", h)  # (22), (4)
    return (weight["embedding.weight"] @ norm("final_norm", H)).T  # (5)


@pytest.mark.parametrize("num_heads", [1, 3, 4, 6])
def test_logits_are_those_of_the_equations_written_out(num_heads: int) -> None:
    torch.manual_seed(num_heads)
    config = ModelConfig(num_layers=2, num_heads=num_heads, hidden_size=12)
    model = Decoder(config, vocab_size=17).double()
    for parameter in model.parameters():  # gains and biases too must matter
        torch.nn.init.normal_(parameter, std=0.5)
    ids = [3, 1, 4, 1, 5, 9, 2, 6, 16, 0]
    ours = model(torch.tensor([ids]))[0].detach().numpy()
    np.testing.assert_allclose(ours, twin_logits(model, ids), rtol=1e-6, atol=1e-6)  # 0.79788456 has eight digits


@pytest.mark.parametrize("num_heads", [1, 2, 8, 32])
def test_slopes_of_a_power_of_two_are_one_geometric_sequence(num_heads: int) -> None:
    ratio = 2 ** (-8 / num_heads)
    assert alibi_slopes(num_heads) == pytest.approx([ratio**n for n in range(1, num_heads + 1)])


def test_slopes_of_forty_heads_fill_the_gaps_of_thirty_two() -> None:
    exponents = [-math.log2(slope) * 40 / 8 for slope in alibi_slopes(40)]
    assert exponents == pytest.approx([*range(1, 33), 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5])


def test_bias_falls_with_distance_and_hides_the_future() -> None:
    bias = attention_bias(torch.tensor([0.5, 0.25]), 3)
    inf = math.inf
    assert bias[0].tolist() == [[0, -inf, -inf], [-0.5, 0, -inf], [-1, -0.5, 0]]
    assert bias[1].tolist() == [[0, -inf, -inf], [-0.25, 0, -inf], [-0.5, -0.25, 0]]


def test_a_position_sees_nothing_that_comes_after_it() -> None:
    torch.manual_seed(0)
    model = Decoder(ModelConfig(num_layers=2, num_heads=3, hidden_size=12), vocab_size=50)
    ids = torch.randint(0, 50, (1, 9))
    changed = ids.clone()
    changed[0, 5] = (ids[0, 5] + 1) % 50
    before, after = model(ids)[0], model(changed)[0]
    assert torch.equal(before[:5], after[:5])
    assert (before[5:] - after[5:]).abs().amax(dim=1).min() > 0


def test_initial_spread_is_that_of_appendix_a5() -> None:
    assert initial_std(BLOOMBERGGPT_50B.model, "embedding.weight", 0) == pytest.approx(0.006588, abs=5e-7)
    torch.manual_seed(0)
    config = ModelConfig(num_layers=3, num_heads=4, hidden_size=160)
    rescaled = {"attention.output.weight", "ffn.output.weight"}
    for name, parameter in Decoder(config, vocab_size=600).named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        else:
            expected = 1 / math.sqrt(3 * 160) / (math.sqrt(2 * 3) if group_of(name) in rescaled else 1)
            assert float(parameter.detach().std()) == pytest.approx(expected, rel=0.02), name
            assert abs(float(parameter.detach().mean())) < 0.05 * expected, name


def first_loss(hidden_size: int, vocab_size: int) -> float:
    torch.manual_seed(0)
    model = Decoder(ModelConfig(num_layers=2, num_heads=4, hidden_size=hidden_size), vocab_size)
    ids = torch.randint(0, vocab_size, (4, 64))
    with torch.no_grad():
        return next_token_loss(model(ids), ids).item()


def test_an_untrained_model_is_nearly_uniform() -> None:
    assert first_loss(16, 1000) == pytest.approx(math.log(1000), abs=0.25)
    assert first_loss(32, 4000) == pytest.approx(math.log(4000), abs=0.25)


@pytest.mark.parametrize(("hidden_size", "vocab_size"), [(32, 1000), (192, 4000), (400, 1000)])
def test_the_first_loss_exceeds_ln_v_by_the_effect_of_tied_embeddings(hidden_size: int, vocab_size: int) -> None:
    expected = math.log(vocab_size * math.exp(1 / 6) + math.exp(math.sqrt(hidden_size / 3)))
    assert first_loss(hidden_size, vocab_size) == pytest.approx(
        expected, rel=0.06
    )  # the blocks dampen the echo a little


def test_loss_is_the_mean_surprise_of_the_next_token() -> None:
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, 0.0], [9.0, 9.0]]])  # the last position predicts nothing here
    assert next_token_loss(logits, torch.tensor([[0, 1, 0]])).item() == pytest.approx(
        (math.log(4 / 3) + math.log(2)) / 2
    )


def test_errors_for_impossible_shapes_name_possible_ones() -> None:
    with pytest.raises(ConfigError, match="hidden_size is 100, which 6 heads do not divide; 96 would do"):
        ModelConfig(num_layers=1, num_heads=6, hidden_size=100)
    with pytest.raises(ConfigError, match="num_layers is 0"):
        ModelConfig(num_layers=0, num_heads=1, hidden_size=8)
    with pytest.raises(ConfigError, match="dropout is 1"):
        ModelConfig(num_layers=1, num_heads=1, hidden_size=8, dropout=1.0)
    with pytest.raises(ConfigError, match="known: bloomberggpt-50b, bloomberggpt-tiny, gpt-neox-20b"):
        preset("bloomberg")
