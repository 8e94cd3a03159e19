"""Options of allaboard whose values are secrets, or may hold one."""

from __future__ import annotations

SECRET_FLAGS = frozenset(["--notify", "--heartbeat-url", "--on-finding", "--otlp"])
"""Whoever knows the URL of a chat, a pager or a monitor may write there; a command may contain a password."""
