"""What workers of this host are started with: the plan, their environments, their Python."""
