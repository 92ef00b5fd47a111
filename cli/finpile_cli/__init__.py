"""The `finpile` command: one module per command group, imported when called."""
