"""Findings about jobs that were started without allaboard, or that have ended."""
