"""What the scheduler that started a job is told about it: by files, and in the scheduler's own words."""
