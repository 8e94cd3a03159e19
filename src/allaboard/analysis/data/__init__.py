"""How ranks went through their data."""
