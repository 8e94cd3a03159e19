"""Runs a drill and judges what was reported."""
