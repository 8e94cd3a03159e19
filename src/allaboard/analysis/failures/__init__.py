"""Which member failed first, why, and who failed as a consequence."""
