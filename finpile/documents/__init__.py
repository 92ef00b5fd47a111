"""Documents: batches of them, labels, names, digests, the split, and the ledger of what was removed."""
