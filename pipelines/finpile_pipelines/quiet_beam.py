"""Imports Beam without its warnings about packages that it does not find; the log stays the caller's to set up."""

import logging

from finpile_pipelines.runner.lean_imports import silent_log

_HANDLER = logging.NullHandler()
logging.root.addHandler(_HANDLER)  # the first warning without a handler would add one for good
try:
    with silent_log():
        import apache_beam  # noqa: F401
finally:
    logging.root.removeHandler(_HANDLER)
