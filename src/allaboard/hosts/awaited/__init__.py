"""What a process waits to read from, and who holds the other end."""
