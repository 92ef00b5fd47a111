"""Snapshots of a finished build: what `finpile append` and `finpile remove` do."""
