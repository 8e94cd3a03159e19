"""Gathers what `check` and `spec` judge: this environment, or files, as facts. Runs nothing."""
