"""Counts of documents: sums by stage and source (`stages`), of texts (`texts`), of files (`published`); `shares`."""
