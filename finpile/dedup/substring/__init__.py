"""Repeated substrings: windows found by minimizers, cut at word or line ends."""
