"""The picture of a job that faces show."""
