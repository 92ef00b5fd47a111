"""The models of the papers, and their exports."""
