"""Evaluations of models: held-out text, tasks, memorization."""
