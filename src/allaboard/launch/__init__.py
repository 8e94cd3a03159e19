"""One file a way to place processes."""
