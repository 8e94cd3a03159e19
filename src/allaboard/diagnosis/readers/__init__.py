"""One file a reader: what frameworks, launchers and debuggers leave behind, and what it means."""
