"""Readers of text formats that keep positions and are bounded in depth, size and time."""
