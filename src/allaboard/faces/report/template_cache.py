"""Compiled templates are kept as Python keeps compiled modules: compiling takes longer than a page does."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from hashlib import sha256
from importlib.util import cache_from_source
from pathlib import Path

from jinja2 import BytecodeCache, compiler
from jinja2.bccache import Bucket


class TemplateCache(BytecodeCache):
    """Templates of one folder, in files of its ``__pycache__``.

    As with modules, the variables PYTHONDONTWRITEBYTECODE and PYTHONPYCACHEPREFIX are heeded, and a folder
    that cannot be written costs only the time to compile again. ``options``: the file that makes the
    environment.
    """

    def __init__(self, folder: Path, options: Path) -> None:
        self._folder, self._options = folder, options

    @cached_property
    def _compiler(self) -> bytes:
        """What a compiled template depends on besides its source: our options and jinja2 itself."""
        own = Path(compiler.__file__).stat()
        return self._options.read_bytes() + f"{own.st_mtime_ns} {own.st_size}".encode()

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the name itself: all templates are of one folder."""
        return name

    def get_source_checksum(self, source: str) -> str:
        """Return what must be equal for a compiled template to be used again."""
        return sha256(self._compiler + source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket, if the template was compiled before."""
        try:
            with self._path(bucket).open("rb") as file:
                bucket.load_bytecode(file)
        except (OSError, NotImplementedError, EOFError, ValueError, TypeError):
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a template that has just been compiled."""
        if sys.dont_write_bytecode:
            return
        try:
            path = self._path(bucket)
            new = path.with_name(f"{path.name}.{os.getpid()}")
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                new.write_bytes(bucket.bytecode_to_string())
                # At once: a process that starts meanwhile finds the old one, or the new one.
                new.replace(path)
            finally:
                new.unlink(missing_ok=True)
        except (OSError, NotImplementedError):
            return

    def _path(self, bucket: Bucket) -> Path:
        return Path(cache_from_source(str(self._folder / bucket.key)))
