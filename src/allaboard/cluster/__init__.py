"""How the agents of several hosts meet, elect a leader and notice a lost host."""
