"""Batch scripts held against the files that their commands start."""
