"""The reference trainer: architecture and optimisation of BloombergGPT, GPT-NeoX-20B and PaLM in PyTorch, at any size.

Reading order: model, training (presets, optimizer, data, trainer, checkpoint), train, evaluation, tasks.
Requires the extra `train`.
"""
