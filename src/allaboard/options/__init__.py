"""The face of `allaboard run`: its options, and what is refused."""
