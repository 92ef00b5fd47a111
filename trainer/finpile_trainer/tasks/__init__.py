"""The tasks of the papers."""
