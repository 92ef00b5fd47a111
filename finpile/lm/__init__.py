"""The reference trainer: BloombergGPT's architecture and optimisation in PyTorch, at any size.

Read in this order: model, optimizer, presets, data, train, checkpoint, losses, evaluate. Needs the extra `train`.
"""
