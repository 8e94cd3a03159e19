"""The metrics of a run for Prometheus: a client of the feed. Needs prometheus-client (extra `metrics`)."""
