"""One file a source of configuration, named after it, ending in `RESOLVER = Resolver(...)`."""
