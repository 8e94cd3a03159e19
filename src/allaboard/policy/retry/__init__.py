"""What whoever started a job should do once it has failed: try it again, where, or not. Pure."""
