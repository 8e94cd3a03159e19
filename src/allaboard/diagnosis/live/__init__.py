"""Diagnosis of processes that are running now."""
