"""Jobs whose processes have roles: which tasks there are, and which of them the script serves
itself."""
