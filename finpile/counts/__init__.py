"""Counts of documents: their sums by stage and source (`stages`), of texts (`texts`), of files (`published`)."""
