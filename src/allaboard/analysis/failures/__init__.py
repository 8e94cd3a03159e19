"""Failures of members: which came first, why, and which were only consequences."""
