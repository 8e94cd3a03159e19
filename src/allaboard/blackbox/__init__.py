"""Reading of the memory-mapped files that the probe writes."""
