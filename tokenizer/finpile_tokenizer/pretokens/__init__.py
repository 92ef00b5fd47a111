"""Pretokens: the runs of bytes that no piece crosses, and their frequencies in a text."""
