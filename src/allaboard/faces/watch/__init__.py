"""`allaboard watch`: a run in the terminal, from its feed."""
