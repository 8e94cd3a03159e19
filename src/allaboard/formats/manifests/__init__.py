"""Kubernetes and Compose documents read into workloads, with the position of every field."""
