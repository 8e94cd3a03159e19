"""The job-wide view and what follows from it. The state machine knows no socket and no clock."""
