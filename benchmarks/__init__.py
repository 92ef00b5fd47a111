"""Measurements of FinPile beside its peers. Run from the root of the repository: `python -m benchmarks.PACKAGE...`."""
