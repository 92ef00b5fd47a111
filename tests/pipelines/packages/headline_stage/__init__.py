"""A package that adds a dedup stage to FinPile by an entry point."""
