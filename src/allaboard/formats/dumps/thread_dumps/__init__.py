"""Stacks of all threads of a process as tools and programs write them."""
