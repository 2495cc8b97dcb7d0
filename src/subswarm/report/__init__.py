"""Reports: self-contained HTML pages, and the summaries of a selection."""
