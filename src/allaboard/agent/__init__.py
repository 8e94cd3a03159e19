"""The parent of the workers of one host: thin shells around the pure parts."""
