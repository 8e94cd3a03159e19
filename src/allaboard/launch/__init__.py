"""Starting and signalling processes on this host."""
