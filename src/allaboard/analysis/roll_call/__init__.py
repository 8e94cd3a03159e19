"""Who is here: pure decisions on what the members declared."""
