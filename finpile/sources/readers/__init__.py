"""From files to documents: which files, in which pieces, with which limits and accounts."""
