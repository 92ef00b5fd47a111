"""Token shards: packing token streams into training sequences, and reading them back memory-mapped."""

from finpile.tokens.store import TokenMeta, TokenStore, write_token_shard

__all__ = ["TokenMeta", "TokenStore", "write_token_shard"]
