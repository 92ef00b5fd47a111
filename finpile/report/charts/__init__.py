"""Charts as SVG: documents by year, grouped bars, lines; they share their files, figures and colours (`svg`)."""
