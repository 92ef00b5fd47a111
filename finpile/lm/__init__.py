"""The reference trainer: architecture and optimisation of BloombergGPT in PyTorch, at any size.

Reading order: model, optimizer, presets, data, train, checkpoint, losses, evaluate. Requires the extra `train`.
"""
