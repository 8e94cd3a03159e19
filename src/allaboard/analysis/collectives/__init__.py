"""Collective calls compared between ranks."""
