"""One ClusterSpec from an environment and files; every value keeps its origin."""
