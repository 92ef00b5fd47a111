"""Drawing of charts, for all pages and SVG files."""
