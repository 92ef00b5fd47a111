"""`python -m finpile_cli`."""

from __future__ import annotations

from finpile_cli.main import main

main()
