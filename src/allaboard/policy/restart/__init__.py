"""From how a job failed and what its user allowed to what is started again, and why. Pure."""
