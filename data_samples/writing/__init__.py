"""The pens that write the sample corpus: a small grammar, word banks, and one module per genre."""
