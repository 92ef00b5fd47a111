"""The pinned corpus, measurement of processes, result files, and checks of whole checkouts."""
