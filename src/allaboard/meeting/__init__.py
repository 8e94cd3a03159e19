"""Where the agents of several hosts meet: sockets, and the few bytes that are said over them."""
