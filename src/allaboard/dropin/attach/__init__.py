"""The agent of a process that somebody else started."""
