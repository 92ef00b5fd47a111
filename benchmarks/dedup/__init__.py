"""Deduplication: speed, memory and quality beside its peers."""
