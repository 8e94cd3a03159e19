"""Who is slow, and since when."""
