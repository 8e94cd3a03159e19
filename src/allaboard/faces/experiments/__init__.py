"""A run in experiment trackers: scalars, and findings as text. A client of the feed."""
