"""The report of a run, or of a diagnosis, as one page, as Markdown and as traces for other viewers."""
