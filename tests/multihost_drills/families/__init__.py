"""Families of drills between hosts: each file is a table of faults of one kind, DRILLS, by name."""
