"""What other packages add: formats, filters and stages, and the registries that find them."""
