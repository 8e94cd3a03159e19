"""Events, commands and process keys that the shells exchange with the job state."""
