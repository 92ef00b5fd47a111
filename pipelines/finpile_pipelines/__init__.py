"""Beam pipelines of FinPile: they schedule shards and exchange partitions; the work itself is done by `finpile`."""
