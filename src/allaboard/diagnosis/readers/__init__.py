"""One file a witness: what frameworks, launchers and debuggers leave behind, and what it means."""
