"""Hooks for JAX, one file per subject."""
