"""Stragglers and slow steps."""
