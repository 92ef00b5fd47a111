"""The tokenizer: training and encoding beside its peers."""
