"""Templates: lines and paragraphs that earlier documents of a group have, counted and cut."""
