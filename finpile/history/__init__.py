"""The history of a document through the stages, and of a token back to its bytes."""
