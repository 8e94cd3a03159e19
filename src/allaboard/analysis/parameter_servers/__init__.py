"""Jobs with parameter servers: which tasks serve, which wait, and for whom."""
