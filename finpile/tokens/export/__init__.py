"""Token shards in the formats of other training systems."""

from finpile.tokens.export.formats import FORMATS, Exported, export_tokens

__all__ = ["FORMATS", "Exported", "export_tokens"]
