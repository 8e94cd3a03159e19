"""Links and addresses between hosts."""
