"""The server loop that is run for a script that has none; each file is run by path, on its own."""
