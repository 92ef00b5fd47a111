"""Near duplicates: MinHash keys, candidate pairs, verified clusters."""
