"""One ClusterSpec from an environment and files; every value keeps its origin."""

from allaboard.configuration.resolve import read_sources, resolve

__all__ = ["read_sources", "resolve"]
