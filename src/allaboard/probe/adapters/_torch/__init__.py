"""Hooks for PyTorch, one file per subject."""
