"""Configurations and environments compared between members."""
