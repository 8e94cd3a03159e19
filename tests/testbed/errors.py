"""What a bed raises."""

from __future__ import annotations


class CannotMake(Exception):
    """A bed, or a service on it, cannot be made here; the message says why."""


class CommandFailed(Exception):
    """A command on a host ended with another code than 0; the message has its output."""
