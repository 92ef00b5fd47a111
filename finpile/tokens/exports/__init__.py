"""Formats of other training systems: each module has its `EXPORT`."""
