"""Tables of what frameworks, launchers and libraries write, and what it means; the readers search by them."""
