"""One file a fault: how it is put into a real job, and what must be said of it."""
