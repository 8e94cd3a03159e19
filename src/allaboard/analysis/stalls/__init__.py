"""Reasons why members that make no progress do not move."""
