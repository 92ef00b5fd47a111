"""Corpora of gigabytes: generation, runs, and the rates that `finpile plan` uses."""
