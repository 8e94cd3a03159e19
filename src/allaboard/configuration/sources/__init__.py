"""Sources of configuration, one file each, which ends in `SOURCE = ConfigurationSource(...)`."""
