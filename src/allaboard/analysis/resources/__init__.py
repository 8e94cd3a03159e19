"""Limits, load and what will run out."""
