"""`python -m finpile.cli`."""

from __future__ import annotations

from finpile.cli.main import main

main()
