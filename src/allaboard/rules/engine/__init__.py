"""Loading, running and ordering of the rules."""
