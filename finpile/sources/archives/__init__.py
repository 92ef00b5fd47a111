"""Archives of files: tar and zip."""
