"""Shuffles tables between hash partitions."""
