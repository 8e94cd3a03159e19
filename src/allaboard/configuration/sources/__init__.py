"""One file a source of configuration, named after it, ending in `SOURCE = ConfigurationSource(...)`."""
