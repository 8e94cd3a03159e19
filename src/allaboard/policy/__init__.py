"""When to end a job, and when to restart what failed. Pure decisions."""
