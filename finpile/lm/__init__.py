"""The reference trainer: architecture and optimisation of BloombergGPT, GPT-NeoX-20B and PaLM in PyTorch, at any size.

Reading order: model_config, model, optimizer, presets, data, train, checkpoint, losses, evaluate, hugging_face.
Requires the extra `train`.
"""
