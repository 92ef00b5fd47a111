"""The stages that remove documents and passages, and the steps that they share."""
