"""The built-in filters, one per module; each module's `FILTER` is what `finpile.plugins.filter` describes."""
