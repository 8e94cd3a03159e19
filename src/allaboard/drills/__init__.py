"""Faults that are put into real jobs on one host, and what must be reported of them."""
