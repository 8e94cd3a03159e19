"""allaboard: distributed training that starts, or says which worker is missing and why."""

__version__ = "0.1.0"
