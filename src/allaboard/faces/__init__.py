"""Faces: what people look at. They render the feed, and compute nothing."""
