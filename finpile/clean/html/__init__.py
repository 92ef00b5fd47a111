"""HTML to text: pages, markup, tables, Inline XBRL, dates of pages."""
