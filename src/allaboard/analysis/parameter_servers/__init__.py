"""Jobs with parameter servers: who serves, who waits, for whom."""
