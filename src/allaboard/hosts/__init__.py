"""Measurements of this host: one file each. They read; they never change anything."""
