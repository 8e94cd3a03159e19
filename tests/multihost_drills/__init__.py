"""Faults between hosts, staged on a test bed of network namespaces; the runner judges the reports."""
