"""From URLs to bytes: requests, streams, compression, members of streams, encodings."""
