"""Stack dumps, tracebacks, flight records and log lines read into structures."""
