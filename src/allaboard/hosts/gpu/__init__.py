"""The GPUs of this host: their driver is asked in a process of its own."""
