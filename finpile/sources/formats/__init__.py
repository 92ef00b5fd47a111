"""The built-in source formats, one per module; each module's `FORMAT` is what `finpile.plugins.format` describes."""
