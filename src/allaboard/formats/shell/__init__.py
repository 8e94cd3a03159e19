"""Shell scripts read as far as they are literal; nothing is executed."""
