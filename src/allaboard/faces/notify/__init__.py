"""Tells people about faults of a run: a client of the feed. Needs apprise (extra `notify`) for messages."""
