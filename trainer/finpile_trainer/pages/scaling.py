"""Figure 1 of BloombergGPT as SVG: large models beside the compute-optimal sizes of Chinchilla."""

from __future__ import annotations

import math

from finpile.report.drawing.lines import Label, Line, LineChart
from finpile_trainer.training.compute_budget import Optimum, chinchilla

#: Parameters and training tokens as each paper reports them.
MODELS = {
    "Gopher": (280e9, 300e9),
    "Chinchilla": (70e9, 1.4e12),
    "GPT-NeoX": (20.6e9, 472e9),
    "OPT": (175e9, 180e9),
    "PaLM": (540e9, 780e9),
    "MT-NLG": (530e9, 270e9),
    "BLOOM": (176e9, 366e9),
    "LLaMA-33B": (32.5e9, 1.4e12),
    "BloombergGPT": (50.6e9, 569e9),
}
#: Exponents of the budgets that the lines run through, in tenths.
_BUDGETS = range(215, 256)


def scaling_figure(planned: Optimum | None = None) -> bytes:
    """The figure; `planned` is a model of one's own."""
    curves = list(zip(*(chinchilla(10 ** (tenths / 10)) for tenths in _BUDGETS), strict=True))
    models = dict(MODELS) if planned is None else {**MODELS, "this plan": (planned.parameters, planned.tokens)}
    return LineChart(
        title="Compute-optimal models (Hoffmann et al. 2022) and large language models",
        x_title="parameters (log10)",
        y_title="training tokens (log10)",
        lines=[
            Line(
                points=[(math.log10(entry.parameters), math.log10(entry.tokens)) for entry in curve],
                label=f"optimal, approach {curve[0].approach}",
                colour="main" if curve[0].approach == 1 else "faint",
            )
            for curve in curves
        ],
        labels=[
            Label(point=(math.log10(size), math.log10(tokens)), text=name) for name, (size, tokens) in models.items()
        ],
    ).to_svg()
