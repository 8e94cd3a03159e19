"""Logs that somebody packed before sending them: compressed files and archives of many."""
