"""Reports: Tables 1 to 3 of the paper for any corpus, in Markdown, CSV, TeX, JSON and on one HTML page."""
