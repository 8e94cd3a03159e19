"""Reader of shell scripts, as far as they are literal; it runs nothing."""
