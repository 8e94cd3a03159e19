"""The feed: snapshots, findings and notes of a job as JSON lines, for faces in other processes and on other
hosts."""
