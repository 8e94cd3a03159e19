"""Faces: they render what is known, and compute nothing."""
