"""Server loops that run for scripts that have none; each file is run by path, on its own."""
