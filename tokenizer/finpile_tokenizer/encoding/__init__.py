"""Encoding: the automaton that finds the most probable segmentation, and the offsets of ids in their text."""
