"""What is known of each framework before a program imports it: one light file each. The hooks are in the file
of the same name in `adapters`, loaded when a program imports one of the packages."""
