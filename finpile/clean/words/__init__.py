"""Words of texts, and what filters count of them."""
