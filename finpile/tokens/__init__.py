"""Token shards: packing of token streams into training sequences, and memory-mapped reading."""

from finpile.tokens.store import TokenMeta, TokenStore, write_token_shard

__all__ = ["TokenMeta", "TokenStore", "write_token_shard"]
