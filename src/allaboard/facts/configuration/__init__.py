"""What a job's configuration says: cluster, files and manifests, each value with its origin."""
