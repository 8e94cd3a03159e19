"""Families of drills: each file is a table of faults of one kind, DRILLS, by the name that a person types."""
