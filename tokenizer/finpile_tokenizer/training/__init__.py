"""The steps of training: seeds, lattices, expectation and maximisation, pruning, and the checkpoint of a state."""
