"""Readers and cleaning: damaged and hostile input."""
