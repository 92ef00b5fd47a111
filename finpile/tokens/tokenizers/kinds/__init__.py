"""Kinds of tokenizers, one in each module: its `KIND`."""
