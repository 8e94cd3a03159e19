"""After the fact, and without having been there: from what is left of a job to what is known of it."""
