"""Evaluations of small models that are trained on real documents."""
