"""Tokenizers: one interface (`protocol`), kinds of files (`kinds`), and how they are found and opened (`opening`)."""
