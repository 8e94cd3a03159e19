"""One file a framework: the modules to hook, what to hook in them, and what its init was told.

Each ends in ``MODULES``: module name -> function that is given that module right after the user's
code has imported it. ``ports(size)`` is how many ports a job of that size needs, and
``environment(index, size, ports)`` what the framework asks a worker's environment for; both are
used by ``allaboard run -n``. ``before_import()``, where it is there, is called just before the import.
"""
